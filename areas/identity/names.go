package identity

import (
	"net/url"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/kit"
	"tare/internal/unit"
)

// Adapters lists the protocols that can be measured, with one line on each.
func (Area) Adapters() map[string]string {
	help := map[string]string{}
	for _, a := range adapters() {
		help[a.name] = a.help
	}
	return help
}

// Presets lists the embedded endpoint's presets, with one line on each.
func (Area) Presets() map[string]string {
	help := map[string]string{}
	for _, name := range reference.Presets() {
		help[name] = reference.PresetHelp(name)
	}
	return help
}

// Creates says what a run of s makes on this host, for the plan.
func (s *Spec) Creates(treatments []area.Treatment) []string {
	n, groups := 0, 0
	for _, t := range treatments {
		p, err := s.plan(t)
		if err != nil || p.url != nil {
			continue
		}
		n++
		if p.knobs.CPUQuota > 0 {
			groups++
		}
	}
	if n == 0 {
		return []string{"nothing: the endpoint is there already"}
	}
	out := []string{unit.Count(2*n, "process") + " on loopback: an endpoint and a token service for each treatment"}
	if groups > 0 {
		out = append(out, unit.Count(groups, "control group")+" for the CPU limit, where the host allows them")
	}
	return out
}

// LockKey names the endpoint that is measured, so that two runs do not measure each other; empty for embedded ones,
// which every run has for itself.
func (s *Spec) LockKey() string {
	u, err := url.Parse(s.URL)
	if s.URL == "" || err != nil || u.Host == "" {
		return ""
	}
	return kit.HostPort(u)
}
