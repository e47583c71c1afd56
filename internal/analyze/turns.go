package analyze

import (
	"sort"
	"time"

	"tare/internal/load"
	"tare/internal/record"
)

// turns are the parts of a window in which the treatment was called: all of it, where treatments have trials.
type turns struct {
	list   []record.Turn // in order, apart from each other
	settle time.Duration
	taken  bool // treatments took turns
}

// turnsOf returns the turns of a trial in its window, without those that overlap in a damaged record.
func turnsOf(t *record.Trial, w load.Segment) turns {
	if t.Window == nil || len(t.Window.Turns) == 0 {
		return turns{list: []record.Turn{{Start: w.Start, End: w.End}}}
	}
	out := turns{settle: t.Window.Settle, taken: true}
	end := w.Start
	for _, x := range t.Window.Turns {
		if x.Start < end || x.End <= x.Start || x.End > w.End {
			x.Start, x.End = end, end // it keeps its place among the rounds, and has no calls
		}
		end = x.End
		out.list = append(out.list, x)
	}
	return out
}

// of returns the round of an instant, and whether times of calls that are due then count.
func (t *turns) of(at time.Duration) (round int, settled, ok bool) {
	round = sort.Search(len(t.list), func(i int) bool { return t.list[i].End > at })
	if round == len(t.list) || at < t.list[round].Start {
		return 0, false, false
	}
	return round, at >= t.list[round].Start+t.settle, true
}

func (t *turns) length() (sum time.Duration) {
	for _, x := range t.list {
		sum += x.End - x.Start
	}
	return sum
}

// rounds are the response times of the calls of each round, in seconds.
type rounds [][]float64

func (r *rounds) add(round int, seconds ...float64) {
	for len(*r) <= round {
		*r = append(*r, nil)
	}
	(*r)[round] = append((*r)[round], seconds...)
}

// join adds the calls of others.
func (r *rounds) join(others *rounds) {
	for i, calls := range *others {
		r.add(i, calls...)
	}
}
