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
	for i := range a.rec.Plan.Treatments {
		id := a.rec.Plan.Treatments[i].ID
		n, calls, names := a.undecidedOf(id)
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("the target let %s pass that %s should have decided and did not answer",
			unit.Count(int(n), "request"), fewNames(names))
		few := float64(n) < mostUndecided*float64(calls) && !a.question().Drive.Overloads
		if few || a.question().Trespass > 0 || failed[id] != "" {
			a.warn(id, "%s", text)
			continue
		}
		failed[id] = text
		a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf("%s was not in force: %s", id, text))
	}
}

// fewNames lists names, of many the first.
func fewNames(names []string) string {
	if len(names) > 2 {
		return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
	}
	return strings.Join(names, " and ")
}

// undecidedOf returns how many requests one control let pass undecided in the trials of a treatment, the most of any,
// since several may be asked about one request; of how many calls; and which controls did so.
func (a *analysis) undecidedOf(treatment string) (most, calls uint64, names []string) {
	by := map[string]uint64{}
	for _, t := range a.trials() {
		if t.Treatment != treatment {
			continue
		}
		calls += uint64(t.Log().Len())
		for _, s := range t.Served {
			for _, p := range s.Parts {
				if p.Part == area.Undecided {
					by[p.Name] += p.Count
				}
			}
		}
	}
	for _, name := range sortedKeys(by) {
		if by[name] > 0 {
			most, names = max(most, by[name]), append(names, name)
		}
	}
	return most, calls, names
}
