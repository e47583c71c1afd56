package signature

import (
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// separateByLoad computes whether rejections depend on the number of calls in flight: for every call that was sent in
// the window it counts the accepted calls in flight, and compares rejected with accepted calls.
func (f *features) separateByLoad(e Evidence) {
	if f.rejected == 0 || f.good == 0 {
		return
	}
	accepted, refused := present(e.Calls, f.window, f.rejects)
	if len(accepted) < 5 || len(refused) < 5 {
		return
	}
	f.separation = 2*auc(refused, accepted) - 1
	// The level is what most rejected calls met; a few met one less, because the client sees ends a little late.
	f.level = int(stat.Quantile(refused, 0.5))
}

// present counts, for each call sent in w, the good calls (of all calls) that had been sent and not ended.
func present(calls []load.Call, w Window, rejects func(load.Call) bool) (accepted, refused []float64) {
	type edge struct {
		at   time.Duration
		step int // +1: a good call is sent, −1: one ends, 0: a rejected call is sent
	}
	var edges []edge
	for _, c := range calls {
		if c.Sent == 0 || c.Sent > w.End {
			continue
		}
		if c.Done != 0 && !c.Outcome.Good() && rejects(c) {
			edges = append(edges, edge{c.Sent, 0})
			continue
		}
		if c.Done == 0 || !c.Outcome.Good() { // judged by the eventual outcome: it was in flight
			continue
		}
		edges = append(edges, edge{c.Sent, 1}, edge{c.Done, -1})
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.step - b.step
	})
	n := 0
	for _, x := range edges {
		if in := x.at >= w.Start && x.at <= w.End; in && x.step == 1 {
			accepted = append(accepted, float64(n))
		} else if in && x.step == 0 {
			refused = append(refused, float64(n))
		}
		n += x.step
	}
	return accepted, refused
}

// auc returns the probability that a value of a is larger than one of b, counting ties half (Mann–Whitney).
func auc(a, b []float64) float64 {
	slices.Sort(b)
	sum := 0.0
	for _, v := range a {
		lo, _ := slices.BinarySearch(b, v)
		hi, _ := slices.BinarySearchFunc(b, v, func(x, v float64) int {
			if x <= v {
				return -1
			}
			return 1
		})
		sum += float64(lo) + float64(hi-lo)/2
	}
	return sum / float64(len(a)) / float64(len(b))
}
