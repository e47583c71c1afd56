package signature

import (
	"maps"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// separateByLoad computes whether rejections depend on the number of calls in flight: for every call that was sent in
// the window it counts the accepted calls in flight, and compares rejected with accepted calls.
func (f *features) separateByLoad() {
	if f.rejected == 0 || f.good == 0 {
		return
	}
	accepted, refused := f.inFlight(f.window, f.rejects)
	if accepted.n < 5 || refused.n < 5 {
		return
	}
	f.separation = 2*auc(refused, accepted) - 1
	// The level is what most rejected calls met; a few met one less, because the client sees ends a little late.
	f.level = refused.quantile(0.5)
}

// levels counts calls by how many others were in flight when they were sent.
type levels struct {
	count map[int]int
	n     int
}

func (l *levels) add(level int) {
	if l.count == nil {
		l.count = map[int]int{}
	}
	l.count[level]++
	l.n++
}

func (l *levels) quantile(p float64) int {
	rank, level := stat.NearestRank(l.n, p), 0
	for _, level = range slices.Sorted(maps.Keys(l.count)) {
		if rank -= l.count[level]; rank <= 0 {
			break
		}
	}
	return level
}

// What an edge says of its instant, in the order in which those of one instant are taken.
const (
	goodEnds = iota
	rejectedSent
	goodSent
	edgeKinds
)

// inFlight counts, for each call sent in w, the good calls (of all calls) that had been sent and not ended.
func (f *features) inFlight(w Window, rejects func(*load.Call) bool) (accepted, refused levels) {
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
		case rejects(c):
			add(c.Sent, rejectedSent)
		}
	}
	slices.Sort(edges)
	for _, x := range edges {
		switch x % edgeKinds {
		case goodEnds:
			n--
		case rejectedSent:
			refused.add(n)
		case goodSent:
			accepted.add(n)
			n++
		}
	}
	return accepted, refused
}

// auc returns the probability that a value of a is larger than one of b, counting ties half (Mann–Whitney).
func auc(a, b levels) float64 {
	sum, below := 0.0, 0 // the sum is of halves of integers, and exact
	others := slices.Sorted(maps.Keys(b.count))
	for _, level := range slices.Sorted(maps.Keys(a.count)) {
		for len(others) > 0 && others[0] < level {
			below, others = below+b.count[others[0]], others[1:]
		}
		sum += float64(a.count[level]) * (float64(below) + float64(b.count[level])/2)
	}
	return sum / float64(a.n) / float64(b.n)
}
