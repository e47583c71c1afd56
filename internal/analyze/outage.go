package analyze

import (
	"slices"

	"tare/internal/record"
	"tare/internal/report"
)

// fewestExpected is how many calls must usually end in a slice for one in which none ended to tell of an outage: by
// chance that happens once in 20,000 slices.
const fewestExpected = 10

// goodIn counts the calls of a slice that were answered well, and those that were not.
func goodIn(x *record.Slice) (good, bad uint64) {
	for i := range x.Operations {
		for _, o := range x.Operations[i].Outcomes {
			if o.Outcome.Good() {
				good += o.Count
			} else {
				bad += o.Count
			}
		}
	}
	return good, bad
}

// outages marks the slices in which calls ended and none of them well, and those in which none ended though many should
// have.
func (s *soak) outages() {
	s.out = make([]bool, len(s.slices))
	var rates []float64
	for i := range s.slices {
		x := &s.slices[i]
		good, _ := goodIn(x)
		if good > 0 {
			rates = append(rates, float64(good)/(x.End-x.Start).Seconds())
		}
	}
	usual := 0.0
	if len(rates) > 0 {
		slices.Sort(rates)
		usual = rates[len(rates)/2]
	}
	for i := range s.slices {
		x := &s.slices[i]
		good, bad := goodIn(x)
		// At the very beginning no call has had the time to end.
		silent := good+bad == 0 && i > 0 && usual*(x.End-x.Start).Seconds() >= fewestExpected
		s.out[i] = good == 0 && (bad > 0 || silent)
	}
}

// listOutages joins what is marked.
func (s *soak) listOutages() []report.Outage {
	var out []report.Outage
	for i := range s.slices {
		if !s.out[i] {
			continue
		}
		x := &s.slices[i]
		if i == 0 || !s.out[i-1] {
			out = append(out, report.Outage{Start: s.at(x.Start)})
		}
		_, bad := goodIn(x)
		o := &out[len(out)-1]
		o.End = s.at(x.End)
		o.Calls += bad
	}
	return out
}
