package limit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/unit"
)

const (
	// byChance is how likely it may be at most that refusals met no call of an operation by chance.
	byChance = 1e-6
	// mostNamed is how many operations are named; of more, their number.
	mostNamed = 3
)

// Answered is how many calls of one operation were answered well in a search, and how many were refused.
type Answered struct {
	Operation     string
	Good, Refused int
}

// answeredBy counts the calls of a trace by operation, whose names are given.
func answeredBy(trace *capacity.Trace, names []string) []Answered {
	if len(names) < 2 || trace.Calls == nil {
		return nil
	}
	out := make([]Answered, len(names))
	for i, name := range names {
		out[i].Operation = name
	}
	for c := range trace.Calls.Due(0, math.MaxInt64) {
		switch of := int(c.Operation); {
		case of >= len(out) || c.Done == 0:
		case c.Outcome.Good():
			out[of].Good++
		case c.Outcome == load.Refused:
			out[of].Refused++
		}
	}
	return out
}

// refusedOnly returns the operations of whose calls some were refused, and their share of all calls, where none of the
// others' were, and that is no chance: the operation of each call is drawn. seen says so; it is "" otherwise.
func (e *Evidence) refusedOnly() (of []string, share float64, seen string) {
	var spared []string
	var sparedCalls, calls, refused int
	for _, a := range e.Answered {
		n := a.Good + a.Refused
		switch {
		case n == 0:
			continue
		case a.Refused > 0:
			of, calls, refused = append(of, a.Operation), calls+n, refused+a.Refused
		default:
			spared, sparedCalls = append(spared, a.Operation), sparedCalls+n
		}
	}
	if len(of) == 0 || len(spared) == 0 {
		return nil, 0, ""
	}
	share = float64(calls) / float64(calls+sparedCalls)
	if math.Pow(share, float64(refused)) > byChance {
		return nil, 0, ""
	}
	return of, share, fmt.Sprintf("only calls of %s were refused, %d of %d, and none of the %d of %s", several(of),
		refused, calls, sparedCalls, several(spared))
}

// ofOperations says of a limit that refuses calls whether it refuses only those of some operations.
func (v *Verdict) ofOperations(f *facts) {
	of, _, seen := f.refusedOnly()
	if seen == "" || v.Known() && v.Kind != RateLimit && v.Kind != Slots {
		return
	}
	if v.Known() {
		v.Operations = of
	}
	v.Evidence = slices.Insert(v.Evidence, min(1, len(v.Evidence)), seen)
}

// several lists operations, or says how many there are.
func several(names []string) string {
	switch n := len(names); {
	case n > mostNamed:
		return unit.Count(n, "operation")
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}
