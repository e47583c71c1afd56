package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/kit"
)

// Validate implements area.Spec.
func (s *Spec) Validate(q area.Asked, treatments []design.Treatment) []area.Finding {
	out := s.judgePlaces(treatments)
	out = append(out, kit.CheckHeaders("", s.Headers, s.SecretHeaders, "content-type")...)
	if err := s.TLS.Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), ":")
		out = append(out, area.Fault("tls."+field, err, ""))
	}
	if len(out) > 0 {
		return out
	}
	return kit.JudgeEach(treatments, func(t design.Treatment) []area.Finding {
		if found := s.judge(t); len(found) > 0 || !q.Trespasses {
			return found
		}
		return s.judgeTrespasses(t)
	})
}

// judgeTrespasses refuses a treatment in which nothing is permitted.
func (s *Spec) judgeTrespasses(t design.Treatment) []area.Finding {
	p, err := s.plan(t)
	if err != nil || len(p.permitted(nil)) > 0 {
		return nil
	}
	path := "position"
	if len(s.Requests) > 0 {
		path = "requests"
	}
	return []area.Finding{kit.FaultIn(t, path, fmt.Errorf("%s: %w", path, errNothingPermitted))}
}

// judgePlaces refuses two ways of saying where the decision point is.
func (s *Spec) judgePlaces(treatments []design.Treatment) (out []area.Finding) {
	varied := func(name string) bool {
		return slices.ContainsFunc(treatments, func(t design.Treatment) bool { return t.Levels[name] != "" })
	}
	for _, x := range []struct {
		name  string
		given bool
	}{
		{"url", s.URL != ""},
		{"adapter", s.Adapter != ""},
		{"policies", s.Policies > 0},
		{"position", s.Position != ""},
		{"batch", s.Batch > 0},
	} {
		if x.given && varied(x.name) {
			out = append(out, kit.FaultVaried(x.name, x.name))
		}
	}
	if s.Embedded != nil && s.Embedded.Engine != "" && varied("engine") {
		out = append(out, kit.FaultVaried("embedded.engine", "engine"))
	}
	if s.Embedded != nil && s.Embedded.Data != nil && s.Embedded.Data.Times > 0 && varied("data.times") {
		out = append(out, kit.FaultVaried("embedded.data.times", "data.times"))
	}
	return out
}

// judge looks at what one treatment makes of the section. Findings that only come with a treatment name it.
func (s *Spec) judge(t design.Treatment) []area.Finding {
	p, err := s.plan(t)
	if err == nil {
		err = p.checkConnection()
	}
	if err == nil {
		err = p.compileBundle()
	}
	if err == nil {
		return nil
	}
	return []area.Finding{kit.FaultIn(t, s.pathOf(err), err)}
}

// checkConnection looks at TLS, secrets that others could read, and options of other adapters.
func (p *plan) checkConnection() error {
	s := p.spec
	if s.TLS != nil && p.url != nil && !secure(p.url.Scheme) {
		return errors.New("tls: the url is not https")
	}
	if p.url != nil {
		if err := kit.CheckExposure(p.url, s.TLS, s, s.ExposeSecrets); err != nil {
			return fmt.Errorf("url: %w", err)
		}
	}
	for _, other := range protocol.Adapters() {
		if other.Section != p.adapter.Section && kit.HasSection(s, other.Section) {
			return fmt.Errorf("%s: these are options of %s, not of %s", other.Section, other.Name, p.adapter.Name)
		}
	}
	return nil
}

// secure reports whether a scheme means TLS.
func secure(scheme string) bool { return scheme == "https" || scheme == "grpcs" }

// pathOf finds the field that an error of plan begins with.
func (s *Spec) pathOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	section, _, _ := strings.Cut(name, ".")
	section, _, _ = strings.Cut(section, "[")
	switch section {
	case "engine", "planted", "data":
		if s.Embedded == nil {
			return ""
		}
		return "embedded." + name
	}
	if kit.Section(s, section).IsValid() {
		return name
	}
	return ""
}
