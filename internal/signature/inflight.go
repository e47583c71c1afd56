package signature

import (
	"slices"
	"time"

	"tare/internal/stat"
)

// separateByLoad computes whether rejections depend on the number of calls in flight: for every call that was sent in
// the window it counts the accepted calls in flight, and compares rejected with accepted calls.
func (f *features) separateByLoad() {
	if f.rejected == 0 || f.good == 0 {
		return
	}
	// The target is done with a call before its answer arrives: what it refuses at once shows how long the way takes.
	served := min(f.BaseP50.Seconds(), f.acceptance.p50)
	ways := []float64{f.rejection.p10}
	if 4*f.rejection.p10 > served { // it delays refusals
		ways[0] = 0
		for way := served / 5; way > served/100; way /= 1.5 {
			ways = append(ways, way)
		}
	}
	f.separation = -1
	for _, way := range ways {
		accepted, refused := f.inFlight(time.Duration(way * 1e9))
		if len(accepted) < 5 || len(refused) < 5 {
			f.separation = 0
			return
		}
		if x := 2*auc(refused, accepted) - 1; x > f.separation {
			// The level is what most rejected calls met; a few met one less, because the client sees ends a little late.
			f.separation, f.level = x, refused[stat.NearestRank(len(refused), 0.5)-1]
		}
	}
}

// What an edge says of its instant, in the order in which those of one instant are taken.
const (
	goodEnds = iota
	rejectedSent
	goodSent
	edgeKinds
)

// inFlight returns the numbers of good calls (of all) that were in flight when accepted and rejected calls were sent in
// the window, each ascending. A call is in flight until way before its answer arrives.
func (f *features) inFlight(way time.Duration) (accepted, refused []int) {
	w := f.window
	n := 0            // good calls in flight
	var edges []int64 // of the window: nanoseconds after its beginning × edgeKinds + kind
	add := func(at time.Duration, kind int64) {
		if at >= w.Start && at <= w.End {
			edges = append(edges, int64(at-w.Start)*edgeKinds+kind)
		}
	}
	for c := range f.until(w.End) {
		switch {
		case c.Sent == 0 || c.Sent > w.End || c.Done == 0:
		case c.Outcome.Good(): // judged by the eventual outcome: it was in flight
			ends := max(c.Sent, c.Done-way)
			if c.Sent < w.Start && ends >= w.Start {
				n++
			}
			add(c.Sent, goodSent)
			add(ends, goodEnds)
		case f.rejects(c):
			add(c.Sent, rejectedSent)
		}
	}
	slices.Sort(edges)
	for _, x := range edges {
		switch x % edgeKinds {
		case goodEnds:
			n--
		case rejectedSent:
			refused = append(refused, n)
		case goodSent:
			accepted = append(accepted, n)
			n++
		}
	}
	slices.Sort(accepted)
	slices.Sort(refused)
	return accepted, refused
}

// auc returns the probability that a value of a is larger than one of b, counting ties half (Mann–Whitney). Both
// ascend.
func auc(a, b []int) float64 {
	sum := 0.0 // of halves of integers, and exact
	below, upTo := 0, 0
	for _, x := range a {
		for below < len(b) && b[below] < x {
			below++
		}
		for upTo < len(b) && b[upTo] <= x {
			upTo++
		}
		sum += float64(below+upTo) / 2
	}
	return sum / float64(len(a)) / float64(len(b))
}
