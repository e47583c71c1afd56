package protocol

import (
	"context"
	"fmt"
	"net/http"

	"tare/areas/decision/model"
)

// Manage asks, by POST to path, a process of tare's own to do what the path stands for. It returns when that is done.
func (s *Session) Manage(ctx context.Context, path string) error {
	return s.manage(ctx, request{method: http.MethodPost, path: path}, http.StatusNoContent)
}

// A Module is a policy of OPA by its ID, and its package.
type Module struct{ ID, Package string }

// OPAModule is the module that Load makes under name.
func OPAModule(name string) Module { return Module{name, "tare." + identifier(name)} }

// Put makes the policies of set the whole text of a module. It returns when OPA decides by them. mark makes the text
// another one each time: OPA does nothing about a text that it has.
func (m Module) Put(ctx context.Context, s *Session, set model.Set, mark int) error {
	text := fmt.Appendf(set.Rego(m.Package), "\n# %d\n", mark)
	return s.manage(ctx, request{method: http.MethodPut, path: m.path(), media: "text/plain", body: text}, http.StatusOK)
}

// manage makes a request that changes policies or pace.
func (s *Session) manage(ctx context.Context, r request, want int) error {
	status, body, err := s.do(ctx, r, loadTimeout)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if status != want {
		return fmt.Errorf("%s %s: %s", r.method, r.path, s.describeStatus(status, body))
	}
	return nil
}
