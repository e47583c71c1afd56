package analyze

import (
	"math"
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

const (
	// leastStall is the shortest stall that is told, in seconds, and standsOut how many times the usual response it must
	// last at least.
	leastStall, standsOut = 0.5, 8
	// nearlyAll is the share of the calls that came due in the first half of a stall that must have waited for all of the
	// second: the quantiles of a window tell less than all.
	nearlyAll = 0.65
)

// stalls are the windows of an open loop that end a time in which the target answered nearly none of the calls that
// came due. The longest response says how long that was: of the calls that were due in its first half, nearly all
// waited longer than the second. What the generator's own delays or an outage explain is left out.
func (s *soak) stalls() (out []report.Stall) {
	var usual []float64
	for i := range s.slices {
		usual = append(usual, slowest(&s.slices[i], func(o *record.SliceOperation) float64 { return o.P90 }))
	}
	if s.rate <= 0 || len(usual) == 0 {
		return nil
	}
	slices.Sort(usual)
	least := max(leastStall, standsOut*usual[len(usual)/2])
	before := false
	for i := s.first; i < len(s.slices); i++ {
		x := &s.slices[i]
		longest := slowest(x, func(o *record.SliceOperation) float64 { return o.Max })
		waited, _ := beyondIn(x, "", longest/2)
		due := s.rate * longest / 2
		is := longest-x.LatenessMax >= least && due >= fewestExpected && waited >= nearlyAll*due &&
			!s.out[i] && (i == 0 || !s.out[i-1])
		if is && !before {
			out = append(out, report.Stall{Ended: s.at(x.Start), Seconds: longest - x.LatenessMax})
		}
		before = is
	}
	return out
}

// slowest is the largest value of the operations of a window.
func slowest(x *record.Slice, of func(*record.SliceOperation) float64) (out float64) {
	for i := range x.Operations {
		out = math.Max(out, of(&x.Operations[i]))
	}
	return out
}
