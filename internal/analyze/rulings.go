package analyze

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// rulings compares what the treatments' controls decided about the same requests with what the baseline's did, and
// takes what each says of itself that no request shows.
func (a *analysis) rulings() {
	if a.pairing != nil {
		a.pairing.rulings(a.rep)
		return
	}
	last := lastRulings(a.rec)
	for i := range a.rep.Treatments {
		if t := &a.rep.Treatments[i]; t.Control == "" {
			t.Unshown = last[t.ID].Unasked
		}
	}
	base := slices.IndexFunc(a.rep.Treatments, func(t report.Treatment) bool { return t.Baseline })
	if base < 0 {
		return
	}
	of := last[a.rep.Treatments[base].ID]
	for i := range a.rep.Treatments {
		t := &a.rep.Treatments[i]
		is, asked := last[t.ID]
		if i != base && t.Control == "" && asked {
			compareRulings(t, of, is)
			t.Unshown = append(t.Unshown, is.Unasked...)
		}
	}
}

// lastRulings are what the controls of a record decided, by treatment. A run that was resumed has prepared more than
// once: the last preparation counts.
func lastRulings(r *record.Record) map[string]record.Prepare {
	last := map[string]record.Prepare{}
	for _, p := range r.Prepared {
		if len(p.Permitted)+len(p.Refused)+len(p.Undecided)+len(p.Unasked) > 0 {
			last[p.Treatment] = p
		}
	}
	return last
}

// compareRulings says what a treatment's control decides otherwise than a base's about the same requests.
func compareRulings(t *report.Treatment, base, is record.Prepare) {
	t.Permits, t.Refuses = inBoth(base.Refused, is.Permitted), inBoth(base.Permitted, is.Refused)
	t.Alters = alterations(base, is)
	t.Unshown = slices.Concat(dropped(t.Alters), unshown(base, is, t.Permits))
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

// dropped says which requests come back without a value that the baseline gives them: it may be what guarded.
func dropped(alters []report.Alteration) []string {
	var lack []string
	for _, a := range alters {
		if len(a.Baseline) > 0 {
			lack = append(lack, a.Request)
		}
	}
	if len(lack) == 0 {
		return nil
	}
	some, come := lack[0], "comes"
	if n := len(lack) - 1; n > 0 {
		some, come = some+" and "+unit.Count(n, "other"), "come"
	}
	return []string{fmt.Sprintf("%s %s back without a value that the baseline gives, and no answer shows what that "+
		"permits: %s", unit.Count(len(lack), "request"), come, some)}
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

// unshown says of which requests no answer shows whether they are permitted although the baseline refuses them.
func unshown(base, is record.Prepare, permits []string) []string {
	open := slices.DeleteFunc(slices.Concat(base.Refused, base.Undecided), func(request string) bool {
		return slices.Contains(is.Refused, request) || slices.Contains(permits, request)
	})
	if len(open) == 0 {
		return nil
	}
	are := "are"
	if len(open) == 1 {
		are = "is"
	}
	return []string{fmt.Sprintf("no answer shows whether %s %s permitted that the baseline refuses, or may refuse: %s",
		unit.Count(len(open), "request"), are, strings.Join(open, ", "))}
}

func permitsMore(t report.Treatment) bool { return len(t.Permits) > 0 }

// saidOf is what is said of treatments, such as what they permit that the baseline refuses; empty: nothing.
func saidOf(r *report.Report, says func(t *report.Treatment) string) string {
	var out []string
	for i := range r.Treatments {
		if text := says(&r.Treatments[i]); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}
