package load

import (
	"iter"
	"math"
	"sort"
	"time"
)

// A Log is calls in the order of their intended instants, in memory or in a file.
type Log interface {
	// Due yields the calls that were due in [from, to), in order. What is yielded may change once the iteration is over:
	// copy what is to be kept.
	Due(from, to time.Duration) iter.Seq[*Call]
	// Len returns the number of all calls.
	Len() int
}

// Calls are a Log in memory.
type Calls []Call

// CallsOf returns all calls of a log; none of nil.
func CallsOf(l Log) Calls {
	switch l := l.(type) {
	case nil:
		return nil
	case Calls:
		return l
	}
	out := make(Calls, 0, l.Len())
	for c := range l.Due(math.MinInt64, math.MaxInt64) {
		out = append(out, *c)
	}
	return out
}

// Len implements Log.
func (c Calls) Len() int { return len(c) }

// All yields all calls, in order.
func (c Calls) All() iter.Seq[*Call] {
	return func(yield func(*Call) bool) {
		for i := range c {
			if !yield(&c[i]) {
				return
			}
		}
	}
}

// Due implements Log.
func (c Calls) Due(from, to time.Duration) iter.Seq[*Call] {
	return func(yield func(*Call) bool) {
		for i := sort.Search(len(c), func(i int) bool { return c[i].Intended >= from }); i < len(c); i++ {
			if c[i].Intended >= to || !yield(&c[i]) {
				return
			}
		}
	}
}
