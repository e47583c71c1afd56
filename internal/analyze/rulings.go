package analyze

import (
	"slices"
	"strings"

	"tare/internal/record"
	"tare/internal/report"
)

// rulings compares what the treatments' controls decided about the same requests with what the baseline's did.
func (a *analysis) rulings() {
	last := map[string]record.Prepare{} // a run that was resumed has prepared more than once
	for _, p := range a.rec.Prepared {
		if p.Error == "" {
			last[p.Treatment] = p
		}
	}
	base := slices.IndexFunc(a.rep.Treatments, func(t report.Treatment) bool { return t.Baseline })
	if base < 0 {
		return
	}
	of := last[a.rep.Treatments[base].ID]
	for i := range a.rep.Treatments {
		if t := &a.rep.Treatments[i]; i != base && t.Control == "" {
			t.Permits, t.Refuses = inBoth(of.Refused, last[t.ID].Permitted), inBoth(of.Permitted, last[t.ID].Refused)
			t.Alters = alterations(of, last[t.ID])
		}
	}
}

// alterations are the requests of which two controls made different objects, of all of which that is known of both.
func alterations(base, is record.Prepare) (out []report.Alteration) {
	for _, request := range is.Permitted {
		here, known := is.Changed[request]
		there, both := base.Changed[request]
		if known && both && !slices.Equal(here, there) {
			out = append(out, report.Alteration{
				Request: request, Here: lacking(here, there), Baseline: lacking(there, here),
			})
		}
	}
	return out
}

// lacking returns what stands in the first list only.
func lacking(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// inBoth returns what stands in both lists.
func inBoth(a, b []string) (out []string) {
	for _, x := range a {
		if slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

func permitsMore(t report.Treatment) bool { return len(t.Permits) > 0 }

// morePermitted says what treatments permit that the baseline refuses; empty: nothing.
func morePermitted(r *report.Report) string {
	var out []string
	for i := range r.Treatments {
		if text := r.Treatments[i].PermitsMore(); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}
