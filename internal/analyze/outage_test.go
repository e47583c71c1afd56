package analyze

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/record"
)

// windowed makes the windows of a soak of a minute, 1.1 s each, at 100/s: takes is the response of a call that is due
// at an instant, all in seconds.
func windowed(takes func(due float64) float64, late float64) *record.Trial {
	const rate, window, seconds = 100, 1.1, 60
	in := make([][]float64, 54) // whole ones
	for i := range rate * seconds {
		due := float64(i) / rate
		took := takes(due)
		if at := int((due + took) / window); at < len(in) {
			in[at] = append(in[at], took)
		}
	}
	trial := &record.Trial{TrialBegin: record.TrialBegin{Operations: []string{"a"}}}
	for i, all := range in {
		slices.Sort(all)
		o := record.SliceOperation{Operation: "a"}
		if n := len(all); n > 0 {
			o.Outcomes = []record.SliceOutcome{{Outcome: load.OK, Count: uint64(n)}}
			o.P50, o.P90, o.P99, o.Max = all[n/2], all[n*9/10], all[n*99/100], all[n-1]
		}
		start := time.Duration(float64(i) * window * float64(time.Second))
		trial.Slices = append(trial.Slices, record.Slice{
			Start: start, End: start + time.Duration(window*float64(time.Second)), LatenessMax: late,
			Operations: []record.SliceOperation{o},
		})
	}
	return trial
}

// TestStalls: a target that stands still for longer than a window is seen to do so each time, be it as an outage or as
// a stall. Slow calls, a wait of half of the calls, a slow target and the generator's own delays are not taken for one.
func TestStalls(t *testing.T) {
	t.Parallel()
	standing := func(lasts float64) func(float64) float64 {
		return func(due float64) float64 { // it stands still every 9.3 s, from 5 s on
			for from := 5.0; from < 60; from += 9.3 {
				if due >= from && due < from+lasts {
					return from + lasts - due + 0.002
				}
			}
			return 0.002
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for name, x := range map[string]struct {
		takes func(float64) float64
		late  float64
		rate  float64
		want  int // times that it stood still
	}{
		"1.5 s":           {takes: standing(1.5), rate: 100, want: 6},
		"0.8 s":           {takes: standing(0.8), rate: 100, want: 6},
		"0.2 s":           {takes: standing(0.2), rate: 100},
		"3 s":             {takes: standing(3), rate: 100, want: 6},
		"the generator's": {takes: standing(0.8), rate: 100, late: 0.8},
		"a closed loop":   {takes: standing(0.8)},
		"half of the calls": {rate: 100, takes: func(due float64) float64 {
			if r.IntN(2) == 0 {
				return 0.002
			}
			return standing(0.8)(due)
		}},
		"slow calls": {rate: 100, takes: func(float64) float64 {
			if r.IntN(10) == 0 {
				return 1.5
			}
			return 0.002
		}},
		"a slow target": {rate: 100, takes: func(float64) float64 { return 1 + r.Float64() }},
	} {
		s := newSoak(windowed(x.takes, x.late))
		s.rate = x.rate
		stalls, outages := s.stalls(), s.listOutages()
		outage := 0
		for _, o := range outages {
			if o.End < 60 {
				outage++
			}
		}
		if got := len(stalls) + outage; got != x.want && (x.rate > 0 || len(stalls) > 0) {
			t.Errorf("%s: %d stalls %+v and %d outages, want %d", name, len(stalls), stalls, outage, x.want)
		}
		for _, stall := range stalls {
			if stall.Seconds > 3.003 || stall.Seconds < 0.5 {
				t.Errorf("%s: %+v", name, stall)
			}
		}
	}
}
