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
	accepted, refused := f.inFlight()
	if len(accepted) < 5 || len(refused) < 5 {
		return
	}
	f.separation = 2*auc(refused, accepted) - 1
	// The level is what most rejected calls met; a few met one less, because the client sees ends a little late.
	f.level = refused[stat.NearestRank(len(refused), 0.5)-1]
}

// What an edge says of its instant, in the order in which those of one instant are taken.
const (
	goodEnds = iota
	rejectedSent
	goodSent
	edgeKinds
)

// inFlight returns the numbers of good calls (of all) that were in flight when accepted and rejected calls were sent in
// the window, each ascending.
func (f *features) inFlight() (accepted, refused []int) {
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
			if c.Sent < w.Start && c.Done >= w.Start {
				n++
			}
			add(c.Sent, goodSent)
			add(c.Done, goodEnds)
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

// auc returns the probability that a value of a is larger than one of b, which ascends, counting ties half
// (Mann–Whitney).
func auc(a, b []int) float64 {
	sum := 0.0 // of halves of integers, and exact
	for _, x := range a {
		below, _ := slices.BinarySearch(b, x)
		upTo, _ := slices.BinarySearch(b, x+1)
		sum += float64(below+upTo) / 2
	}
	return sum / float64(len(a)) / float64(len(b))
}
