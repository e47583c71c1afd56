package identity

import (
	"context"
	"fmt"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/probe"
)

// Preflight implements area.Area. It tries what each treatment will need: an address that two treatments share is tried
// once.
func (Area) Preflight(ctx context.Context, s area.Spec, env area.Env) []area.Finding {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	var v preview
	tried := map[string][]area.Finding{}
	for _, t := range kit.AtLeastOne(env.Treatments) {
		if t.Control == design.AA {
			continue // it repeats another
		}
		v.treatments++
		p, err := spec.plan(t)
		switch {
		case err != nil:
			v.add(t, area.Fault("", err, ""))
		case p.url == nil:
			v.add(t, hostFindings(p.knobs)...)
		default:
			key := fmt.Sprint(p.url, p.identities) // what else a level can change does not matter before a call is made
			if _, ok := tried[key]; !ok {
				tried[key] = p.preflight(ctx, p.spec, env)
			}
			v.add(t, tried[key]...)
		}
	}
	return v.findings()
}

// A preview collects what was found for each treatment, and says once what holds for several.
type preview struct {
	treatments int
	order      []area.Finding
	of         map[area.Finding][]string
}

func (v *preview) add(t design.Treatment, findings ...area.Finding) {
	if v.of == nil {
		v.of = map[area.Finding][]string{}
	}
	for _, f := range findings {
		if len(v.of[f]) == 0 {
			v.order = append(v.order, f)
		}
		v.of[f] = append(v.of[f], t.ID)
	}
}

// findings names the treatments that a finding is about, unless it is about all.
func (v *preview) findings() []area.Finding {
	var out []area.Finding
	for _, f := range v.order {
		if ids := v.of[f]; len(ids) < v.treatments {
			f.Message = "treatment " + list(ids) + ": " + f.Message
		}
		out = append(out, f)
	}
	return out
}

// Forecast is area.Says.Forecast. Of an endpoint behind a URL only its answers are seen.
func (s *Spec) Forecast(_ area.Asked, t design.Treatment) area.Forecast {
	p, err := s.plan(t)
	if err != nil {
		return area.Forecast{Open: true}
	}
	f := area.Forecast{Operations: []string{p.operation}, Metrics: []string{probe.Distinct.Name}}
	if p.url != nil {
		f.Unread, f.Instead = "the endpoint is behind a url", "leave the budget out, or limit response, error or goodput"
		return f
	}
	f.Metrics = append(f.Metrics, probe.Upstream.Name, probe.CacheHits.Name, probe.CacheMisses.Name,
		probe.CacheRenewed.Name)
	f.Metrics = append(f.Metrics, kit.ProcessMetrics()...)
	return f
}
