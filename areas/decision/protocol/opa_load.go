package protocol

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tare/areas/decision/model"
)

// loadOPA uses the policy API (rest-api#create-or-update-a-policy): one module, whose ID is name and whose package is
// tare.<name> with underscores for what no identifier holds. It replaces a module of the same name.
func loadOPA(ctx context.Context, s *Session, set model.Set, name string) (Options, error) {
	o := s.Options
	m := OPAModule(name)
	r := request{method: http.MethodPut, path: m.path(), media: "text/plain", body: set.Rego(m.Package)}
	status, body, err := s.do(ctx, r, loadTimeout)
	if err != nil {
		return o, fmt.Errorf("load %d policies: %w", set.N, err)
	}
	if status != http.StatusOK {
		return o, fmt.Errorf("load %d policies: PUT %s: %s", set.N, r.path, s.describeStatus(status, body))
	}
	o.Section = &OPA{Path: strings.ReplaceAll(m.Package, ".", "/") + "/" + model.RegoRule}
	return o, nil
}

// unloadOPA deletes the module.
func unloadOPA(ctx context.Context, s *Session, name string) error {
	r := request{method: http.MethodDelete, path: OPAModule(name).path()}
	status, body, err := s.do(ctx, r, loadTimeout)
	if err != nil {
		return fmt.Errorf("take the policies out again: %w", err)
	}
	if status != http.StatusOK && status != http.StatusNotFound {
		return fmt.Errorf("take the policies out again: DELETE %s: %s", r.path, s.describeStatus(status, body))
	}
	return nil
}

func (m Module) path() string { return "/v1/policies/" + url.PathEscape(m.ID) }

// identifier returns name as an identifier of Rego, of at least two characters, so that it is none of its keywords.
func identifier(name string) string {
	return "p_" + strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
			return r
		}
		return '_'
	}, name)
}
