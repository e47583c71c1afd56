package hist

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// An Exact keeps every value, in ascending order: each as a varint of its distance from the one before it, which is
// little more than a byte where values are many. The zero value is empty.
type Exact struct {
	n         int
	distances []byte
	marks     []mark
	last      int64
}

// A mark is every markEvery-th value, from the first, and where the distance of the next one begins.
type mark struct {
	value int64
	next  int
}

const markEvery = 128

// Len returns the number of values.
func (e *Exact) Len() int { return e.n }

// add appends a value that is not below the last one.
func (e *Exact) add(v int64) {
	switch d := uint64(v - e.last); {
	case e.n%markEvery == 0:
		e.marks = append(e.marks, mark{v, len(e.distances)})
	case d < 0x80:
		e.distances = append(e.distances, byte(d))
	default:
		e.distances = binary.AppendUvarint(e.distances, d)
	}
	e.n++
	e.last = v
}

// At returns the i-th smallest value, from 0.
func (e *Exact) At(i int) int64 {
	c := e.from(i / markEvery)
	for range i%markEvery + 1 {
		c.next()
	}
	return c.value
}

// AtMost returns how many values are at most v.
func (e *Exact) AtMost(v int64) int {
	m := sort.Search(len(e.marks), func(i int) bool { return e.marks[i].value > v }) - 1
	if m < 0 {
		return 0
	}
	c := e.from(m)
	for c.next() && c.value <= v {
	}
	if c.value <= v {
		return c.i
	}
	return c.i - 1
}

// Each calls f with the values in ascending order, from the i-th smallest on, until f returns false.
func (e *Exact) Each(i int, f func(v int64) bool) {
	c := e.from(i / markEvery)
	for c.next() {
		if c.i > i && !f(c.value) {
			return
		}
	}
}

// A cursor is positioned after the i smallest values; value is the last of them.
type cursor struct {
	of    *Exact
	i, at int
	value int64
}

// from returns a cursor before the m-th mark.
func (e *Exact) from(m int) cursor { return cursor{of: e, i: m * markEvery} }

// next moves to the next value; it reports false after the last one.
func (c *cursor) next() bool {
	if c.i >= c.of.n {
		return false
	}
	if c.i%markEvery == 0 {
		m := c.of.marks[c.i/markEvery]
		c.value, c.at = m.value, m.next
	} else if d := c.of.distances[c.at]; d < 0x80 {
		c.value += int64(d)
		c.at++
	} else {
		d, n := binary.Uvarint(c.of.distances[c.at:])
		c.value += int64(d)
		c.at += n
	}
	c.i++
	return true
}

// MergeExact returns the values of all parts together.
func MergeExact(parts ...*Exact) *Exact {
	switch len(parts) {
	case 0:
		return &Exact{}
	case 1:
		return parts[0]
	}
	half := len(parts) / 2
	return merged(MergeExact(parts[:half]...), MergeExact(parts[half:]...))
}

func merged(x, y *Exact) *Exact {
	out := &Exact{distances: make([]byte, 0, len(x.distances)+len(y.distances))}
	a, b := x.from(0), y.from(0)
	more, others := a.next(), b.next()
	for more && others {
		if a.value <= b.value {
			out.add(a.value)
			more = a.next()
		} else {
			out.add(b.value)
			others = b.next()
		}
	}
	for ; more; more = a.next() {
		out.add(a.value)
	}
	for ; others; others = b.next() {
		out.add(b.value)
	}
	return out
}

// A Sorter turns values in any order into an Exact, and keeps only a few of them uncompressed. The zero value is ready.
type Sorter struct {
	values []int64
	runs   []*Exact
}

// sorterRun is how many values a Sorter keeps uncompressed.
const sorterRun = 1 << 17

// leastGrowth is how many more values a Sorter makes room for at first.
const leastGrowth = 16

// Add adds a value.
func (s *Sorter) Add(v int64) {
	if n := len(s.values); n == cap(s.values) {
		s.values = slices.Grow(s.values, max(n, leastGrowth))
	}
	if s.values = append(s.values, v); len(s.values) >= sorterRun {
		s.compress()
	}
}

// Sorted returns all values that were added, and forgets them.
func (s *Sorter) Sorted() *Exact {
	s.compress()
	out := MergeExact(s.runs...)
	*s = Sorter{}
	return out
}

// compress makes a run of the values, and merges it with those before it that are not longer.
func (s *Sorter) compress() {
	if len(s.values) == 0 {
		return
	}
	s.sort()
	run := &Exact{distances: make([]byte, 0, len(s.values)*9/8)}
	for _, v := range s.values {
		run.add(v)
	}
	s.values = s.values[:0]
	for n := len(s.runs); n > 0 && s.runs[n-1].n <= run.n; n-- {
		run, s.runs = merged(s.runs[n-1], run), s.runs[:n-1]
	}
	s.runs = append(s.runs, run)
}

const (
	digitBits = 11
	fewValues = 1024 // below which comparing is faster than counting digits
)

// sort sorts the values in ascending order: a radix sort over the digits in which they differ, the least significant
// first.
func (s *Sorter) sort() {
	if len(s.values) < fewValues {
		slices.Sort(s.values)
		return
	}
	least, most := slices.Min(s.values), slices.Max(s.values)
	spare := make([]int64, len(s.values))
	for shift := 0; shift < bits.Len64(uint64(most)-uint64(least)); shift += digitBits {
		var at [1 << digitBits]int
		digit := func(v int64) int { return int((uint64(v) - uint64(least)) >> shift & (1<<digitBits - 1)) }
		for _, v := range s.values {
			at[digit(v)]++
		}
		sum := 0
		for d, n := range at {
			at[d], sum = sum, sum+n
		}
		for _, v := range s.values {
			d := digit(v)
			spare[at[d]] = v
			at[d]++
		}
		s.values, spare = spare, s.values
	}
}
