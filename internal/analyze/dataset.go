package analyze

import (
	"math"
	"slices"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
)

// mostBlocks bounds what a damaged record can make a report hold; no experiment comes near it.
const mostBlocks = 100_000

// A dataset is what the complete blocks of a comparison measured. Only they count: in a block that lacks an arm the
// others have nothing to be compared with.
type dataset struct {
	arms   []design.Treatment
	blocks []int // numbers of the complete blocks, ascending; all values are in this order
	// dropped counts the complete blocks that are not among them, late those of them that have no times.
	dropped, late int
	// operations in the order of the record; "" is all of a mix together.
	operations []string
	mentioned  map[string]bool // operations
	// negative are the operations on which a treatment cannot act: keys without a metric.
	negative map[key]bool
	// fellBehind are the treatments under which the target did not keep up in turns, with the number of blocks.
	fellBehind map[string]int
	// did are the calls a second that it did then, by block; slower is a rate that it keeps up with, 0: not needed.
	did    map[string][]float64
	slower float64
	// batched: the operations have a clock of their own.
	batched   bool
	unblocked bool

	measures []*measure
	// parts are what single parts of the target measured; only growth is told of each.
	parts []*measure
	index map[key]*measure
	// ofMetric and ofSubject are the measures by what they are of, in their order, when the dataset is complete.
	ofMetric  map[string][]*measure
	ofSubject map[subject][]*measure
	room      room // for blocks in which a measure has no value
	listing   room // for blocks of which a report lists that they have none
	// sparse: measures were left out, since hardly any block has them.
	sparse bool
	// idle has what the operations that do nothing cost, in the same blocks; nil in itself.
	idle *dataset
}

type key struct{ treatment, operation, metric string }

// A measure is one metric of one operation under one treatment, block by block.
type measure struct {
	key
	metric metric.Metric
	part   string // of the target; "": all of it. Then the key names it, too
	// main is the quantile that value holds: "p50" for times of calls, "" where there is only one value, or a median of
	// batches.
	main    string
	value   []float64     // by block; NaN: not measured
	samples []blockSample // by block; nil: none
	of      string        // what samples are: "calls", "batches", or "" where a block has one value only
	// rounds are the times of the calls of each block by round, where treatments take turns.
	rounds []rounds
	// weight is how many calls a block's value is of; of shares and batches.
	weight []float64
	// unread is how many further calls of a block nobody can read, at most; of another tool's.
	unread []int
	// step is the resolution of the clock of another tool: a time can be longer or shorter by so much than it says.
	step float64
	// known are the values that were computed from samples, by quantile.
	known map[string][]float64
}

// find returns the measure of a metric under a treatment, or nil. Without an operation it is of all of them
// together, or of the only one.
func (d *dataset) find(treatment, operation, name string) *measure {
	if m := d.index[key{treatment, operation, name}]; m != nil || operation != "" {
		return m
	}
	if len(d.operations) == 1 {
		return d.index[key{treatment, d.operations[0], name}]
	}
	return nil
}

// add takes in one measure of one block, the latest.
func (d *dataset) add(m *measure) {
	x := d.index[m.key]
	d.room.filled++
	had := 0
	if x != nil {
		had = len(x.value)
	}
	if !d.room.take(len(d.blocks) - 1 - had) {
		d.sparse = true
		return
	}
	if x == nil {
		x = &measure{key: m.key, metric: m.metric, part: m.part, main: m.main, of: m.of}
		d.index[m.key] = x
		if m.part != "" {
			d.parts = append(d.parts, x)
		} else {
			d.measures = append(d.measures, x)
		}
	}
	if x.pad(len(d.blocks) - 1); len(x.value) >= len(d.blocks) || x.of != m.of {
		return // a damaged record may name one operation twice, or in two ways
	}
	x.value, x.step = append(x.value, m.value...), max(x.step, m.step)
	if len(m.weight) > 0 {
		x.weight = append(append(x.weight, make([]float64, len(x.value)-1-len(x.weight))...), m.weight...)
	}
	if len(m.unread) > 0 && m.unread[0] > 0 {
		x.unread = append(append(x.unread, make([]int, len(x.value)-1-len(x.unread))...), m.unread...)
	}
	if len(m.rounds) > 0 {
		for len(x.rounds) < len(x.value)-1 {
			x.rounds = append(x.rounds, nil)
		}
		x.rounds = append(x.rounds, m.rounds...)
	}
	if x.of != "" {
		x.samples = append(x.samples, m.samples...)
	}
}

// A room bounds the memory for blocks without a value. A damaged record can name thousands of measures and thousands of
// blocks, with one value for each measure.
type room struct{ filled, empty int }

// roomAtFirst is the number of empty blocks allowed without any value; each value allows more.
const (
	roomAtFirst  = 100_000
	roomPerValue = 4
)

// take reports whether there is room for n more empty values, and takes it.
func (r *room) take(n int) bool {
	n = max(n, 0)
	if r.empty+n > roomAtFirst+roomPerValue*r.filled {
		return false
	}
	r.empty += n
	return true
}

// complete fills in the blocks in which measures have no value, and leaves out those that hardly any block has.
func (d *dataset) complete() {
	withoutRoom := func(m *measure) bool {
		if d.room.take(len(d.blocks) - len(m.value)) {
			m.pad(len(d.blocks))
			return false
		}
		delete(d.index, m.key)
		d.sparse = true
		return true
	}
	d.measures = slices.DeleteFunc(d.measures, withoutRoom)
	d.parts = slices.DeleteFunc(d.parts, withoutRoom)
	d.ofMetric, d.ofSubject = map[string][]*measure{}, map[subject][]*measure{}
	for _, m := range d.measures {
		s := subject{m.operation, m.metric.Name}
		d.ofMetric[s.metric], d.ofSubject[s] = append(d.ofMetric[s.metric], m), append(d.ofSubject[s], m)
	}
}

// pad fills in the blocks in which m was not measured.
func (m *measure) pad(blocks int) {
	for len(m.value) < blocks {
		m.value = append(m.value, math.NaN())
	}
	for m.of != "" && len(m.samples) < blocks {
		m.samples = append(m.samples, nil)
	}
}

// canonical is the name under which a quantile of m is kept.
func (m *measure) canonical(quantile string) string {
	switch {
	case quantile == "":
		return m.main
	case quantile == "mean" && meansOnly(m.metric):
		return m.main
	case m.main == "" && quantile == "p50":
		return ""
	}
	return quantile
}

// values are a quantile's values by block, NaN where a block has none; nil if m has no such quantile.
func (m *measure) values(quantile string) []float64 {
	if quantile == m.main || quantile == "mean" && m.of == "" { // one value a block is a mean over its calls
		return m.value
	}
	if m.of == "" {
		return nil
	}
	if known, ok := m.known[quantile]; ok {
		return known
	}
	out := make([]float64, len(m.samples))
	for i, s := range m.samples {
		out[i] = summarize(s, quantile)
	}
	if m.known == nil {
		m.known = map[string][]float64{}
	}
	m.known[quantile] = out
	return out
}

// pooled is the fraction of a quantile that is estimated from the pooled samples of all blocks: a block may have too
// few beyond it, and a median over blocks would hide those that are unlike the others.
func (m *measure) pooled(quantile string) (q float64, ok bool) {
	if m.of == "" || quantile == m.main {
		return 0, false
	}
	return budget.Fraction(quantile)
}

// meansOnly reports whether a metric's main value is a mean: its median over blocks would hide what comes in few of
// them, such as failures.
func meansOnly(m metric.Metric) bool { return m.Unit == metric.Ratio || m.Name == metric.Goodput.Name }
