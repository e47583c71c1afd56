package decision

import (
	"fmt"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/unit"
)

// Adapters lists the protocols that can be measured, with one line on each.
func (Area) Adapters() map[string]string {
	help := map[string]string{}
	for _, a := range protocol.Adapters() {
		help[a.Name] = a.Help
	}
	return help
}

// Presets lists the embedded decision points, with one line on each.
func (Area) Presets() map[string]string {
	help := map[string]string{}
	for _, k := range engine.Kinds() {
		help[string(k)] = k.Help()
	}
	return help
}

// untried says which policies of the user's only their engine compiles.
func (s *Spec) untried(treatments []area.Treatment) string {
	for _, t := range treatments {
		p, err := s.plan(t)
		if err != nil || p.bundle == "" {
			continue
		}
		switch p.kind {
		case engine.OPA:
			return "its Rego was not compiled: 'tare plan --try' has OPA compile it"
		case engine.OpenFGA:
			return "OpenFGA has not taken its model: 'tare plan --try' has it do so"
		case engine.ATT, engine.AuthzForce:
			return "functions and attributes of its XACML were not looked at: the engine knows them"
		case engine.Cedar, engine.PDPX:
		}
	}
	return ""
}

// Creates says what a run of s makes on this host, and elsewhere, for the plan.
func (s *Spec) Creates(treatments []area.Treatment) []string {
	var out []string
	embedded := map[engine.Kind]int{}
	loads := map[string]int{}
	for _, t := range treatments {
		p, err := s.plan(t)
		switch {
		case err != nil:
		case p.url == nil:
			embedded[p.kind]++
		case p.spec.Load:
			loads[p.url.Host]++
		}
	}
	for _, k := range engine.Kinds() {
		if n := embedded[k]; n > 0 {
			out = append(out, fmt.Sprintf("%s on loopback: %s", unit.Count(n, "process"), k))
		}
	}
	for host, n := range loads {
		out = append(out, fmt.Sprintf("%s in the decision point at %s, taken out again at the end",
			unit.Count(n, "set of policies"), host))
	}
	if len(out) == 0 {
		return []string{"nothing: the decision point is there already"}
	}
	return out
}

// LockKey names the decision point that is measured, so that two runs do not measure each other; empty for embedded
// ones, which every run has for itself.
func (s *Spec) LockKey() string {
	p, err := s.plan(design.Treatment{})
	if err != nil || p.url == nil {
		return ""
	}
	return kit.HostPort(p.url)
}
