package analyze

import (
	"fmt"
	"strings"

	"tare/area"
	"tare/internal/unit"
)

// mostUndecided is the share of a treatment's calls from which on what was measured is not the control.
const mostUndecided = 0.01

// undecided says of which requests the target let pass since a control that should have decided did not answer: calls
// that ended well, and were not judged. From mostUndecided of the calls on, and for any of them in a search, whose
// figure is of the calls at the highest rates, the treatment was not in force. A guard sees that by its trespasses.
func (a *analysis) undecided(failed map[string]string) {
	byTreatment := a.unjudged()
	for i := range a.rec.Plan.Treatments {
		id := a.rec.Plan.Treatments[i].ID
		x := byTreatment[id]
		n, names := x.most()
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("the target let %s pass that %s should have decided and did not answer",
			unit.Count(int(n), "request"), fewNames(names))
		few := float64(n) < mostUndecided*float64(x.calls) && !a.question().Drive.Overloads
		if few || a.question().Trespass > 0 || failed[id] != "" {
			a.warn(id, "%s", text)
			continue
		}
		failed[id] = text
		a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf("%s was not in force: %s", id, text))
	}
}

// unjudged are the requests of a treatment's trials that were let pass undecided, by the control that did not answer.
type unjudged struct {
	calls uint64 // of the trials
	by    map[string]uint64
}

// unjudged returns them for each treatment that has some trial.
func (a *analysis) unjudged() map[string]*unjudged {
	out := map[string]*unjudged{}
	for _, t := range a.trials() {
		x := out[t.Treatment]
		if x == nil {
			x = &unjudged{by: map[string]uint64{}}
			out[t.Treatment] = x
		}
		x.calls += uint64(t.Log().Len())
		for _, s := range t.Served {
			for _, p := range s.Parts {
				if p.Part == area.Undecided {
					x.by[p.Name] += p.Count
				}
			}
		}
	}
	return out
}

// most is how many requests one control let pass, the most of any, since several may be asked about one request; and
// which controls did so.
func (x *unjudged) most() (n uint64, names []string) {
	if x == nil {
		return 0, nil
	}
	for _, name := range sortedKeys(x.by) {
		if x.by[name] > 0 {
			n, names = max(n, x.by[name]), append(names, name)
		}
	}
	return n, names
}

// fewNames lists names, of many the first.
func fewNames(names []string) string {
	if len(names) > 2 {
		return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
	}
	return strings.Join(names, " and ")
}
