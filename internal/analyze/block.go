package analyze

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/design"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/signature"
	"tare/internal/stat"
	"tare/internal/unit"
)

// An extract is what one trial measured.
type extract struct {
	trial    *record.Trial
	measures []*measure // of one block
	batched  bool
	// counted are the calls by operation, seconds the length of the window in which they came.
	counted []counted
	seconds float64
	// busy is how long the target needed for the calls; behind: it did not keep up with its turns.
	busy    float64
	behind  bool
	audit   audited
	opinion signature.GeneratorOpinion
}

// dataset takes the complete blocks out of the record, block by block: raw calls are read once and only what is needed
// of them is kept.
func (a *analysis) dataset() (*dataset, error) {
	d := &dataset{
		arms: unique(a.rec.Plan.Treatments), negative: map[key]bool{}, index: map[key]*measure{},
		unblocked: a.rec.Plan.Unblocked, fellBehind: map[string]int{}, did: map[string][]float64{},
	}
	d.idle = &dataset{arms: d.arms, index: map[key]*measure{}, unblocked: d.unblocked}
	trials := a.trials()
	nothing := idle(trials)
	per := trialsByBlock(trials)
	complete := a.complete(d.arms, per)
	var loss losses
	var kept []*block
	for _, n := range complete {
		b, err := a.block(d, n, per[n])
		if err != nil {
			return nil, fmt.Errorf("analyze block %d: %w", n, err)
		}
		if loss.add(b) {
			kept = append(kept, b)
		}
	}
	d.dropped, d.late = len(loss.dropped), len(loss.late)
	a.spoiled(len(complete), loss.dropped, loss.limit)
	if a.late(len(complete), &loss) {
		for _, b := range kept {
			b.untimed()
		}
	}
	for _, b := range kept {
		a.takeIn(d, b, nothing)
	}
	a.behind(d)
	d.complete()
	d.idle.complete()
	if d.sparse || d.idle.sparse {
		a.warn("", "what was measured in hardly any block is left out: the record is damaged")
	}
	return d, nil
}

// A block is what its trials measured, in the order of the arms.
type block struct {
	number   int
	extracts []*extract
	limit    string // why the generator was the limit in one of them
	late     string // why its times cannot be given, though every call was sent
}

// block reads the trials of one block.
func (a *analysis) block(d *dataset, number int, trials map[string]*record.Trial) (*block, error) {
	b := &block{number: number}
	for _, arm := range d.arms {
		t := trials[arm.ID]
		if !ended(t) {
			continue // of results without blocks
		}
		var x *extract
		var err error
		if len(t.Batches) > 0 {
			x = a.batches(t)
		} else if x, err = a.calls(t); err != nil {
			return nil, fmt.Errorf("trial of %s: %w", t.Treatment, err)
		}
		b.extracts = append(b.extracts, x)
		under := ", under " + arm.ID
		switch {
		case x.audit.Valid:
		case x.late() && b.late == "":
			b.late = signature.Late(x.audit.LatenessP99, x.audit.Limit) + under
		case !x.late() && b.limit == "":
			b.limit = x.audit.Reason + under
		}
	}
	return b, nil
}

// takeIn adds a block to the dataset, and to those parts of the report that add up over trials. What the operations
// cost that do nothing goes into a dataset of its own.
func (a *analysis) takeIn(d *dataset, b *block, nothing map[string]bool) {
	d.blocks = append(d.blocks, b.number)
	d.idle.blocks = d.blocks
	for _, x := range b.extracts {
		a.targets(x.trial)
		for _, name := range x.trial.Operations {
			d.of(name, nothing).mention(name)
		}
		for _, m := range x.measures {
			to := d.of(m.operation, nothing)
			to.mention(m.operation)
			to.add(m)
		}
		for _, name := range x.trial.Negative {
			d.negative[key{treatment: x.trial.Treatment, operation: name}] = true
		}
		if x.behind {
			d.fellBehind[x.trial.Treatment]++
			d.did[x.trial.Treatment] = append(d.did[x.trial.Treatment], x.did(a.rec.Plan.Load.Rate))
		}
		d.batched = d.batched || x.batched
		a.count(x)
	}
}

// of is the dataset that an operation belongs to.
func (d *dataset) of(operation string, nothing map[string]bool) *dataset {
	if nothing[operation] {
		return d.idle
	}
	return d
}

// mention takes in the name of an operation; "" is all of them together.
func (d *dataset) mention(operation string) {
	if operation == "" || d.mentioned[operation] {
		return
	}
	if d.mentioned == nil {
		d.mentioned = map[string]bool{}
	}
	d.mentioned[operation] = true
	d.operations = append(d.operations, operation)
}

func unique(treatments []design.Treatment) []design.Treatment {
	var out []design.Treatment
	for _, t := range treatments {
		if !slices.ContainsFunc(out, func(x design.Treatment) bool { return x.ID == t.ID }) {
			out = append(out, t)
		}
	}
	return out
}

func trialsByBlock(trials []*record.Trial) map[int]map[string]*record.Trial {
	per := map[int]map[string]*record.Trial{}
	for _, t := range trials {
		if t.Block < 0 || t.Block >= mostBlocks {
			continue
		}
		if per[t.Block] == nil {
			per[t.Block] = map[string]*record.Trial{}
		}
		per[t.Block][t.Treatment] = t
	}
	return per
}

func ended(t *record.Trial) bool { return t != nil && t.Complete() }

// complete lists the blocks in which every arm's trial came to its end.
func (a *analysis) complete(arms []design.Treatment, per map[int]map[string]*record.Trial) []int {
	var out []int
	for b, trials := range per {
		whole := len(arms) > 0
		for _, arm := range arms {
			whole = whole && ended(trials[arm.ID])
		}
		if a.rec.Plan.Unblocked { // a number that arms share says nothing: each has its own repetitions
			whole = slices.ContainsFunc(arms, func(arm design.Treatment) bool { return ended(trials[arm.ID]) })
		}
		if whole {
			out = append(out, b)
		}
	}
	slices.Sort(out)
	if n := len(per) - len(out); n > 0 {
		a.warn("", "%s left out, since not every treatment was measured there", unit.Count(n, "block"))
	}
	return out
}

// mostUnread bounds the calls of a block that a record may say nobody can read.
const mostUnread = 1_000_000_000

// batches are what a trial's operations with clocks of their own cost: the block's value is the median of its rounds,
// of shares and goodput their mean.
func (a *analysis) batches(t *record.Trial) *extract {
	x := &extract{trial: t, batched: true, audit: audited{Valid: true}}
	per := map[key]*measure{}
	for i := range t.Batches {
		b := &t.Batches[i]
		found, ok := probe.Known(b.Metric, a.rep.Quantities...)
		if !ok {
			a.warn("", "the record holds batches of %q, a metric that this tare does not know", b.Metric)
			continue
		}
		k := key{t.Treatment, b.Operation, found.Name}
		if per[k] == nil {
			per[k] = &measure{key: k, metric: found, of: "batches", weight: []float64{0}, unread: []int{0}}
			x.measures = append(x.measures, per[k])
		}
		if b.Step > 0 && isFinite(b.Step) {
			per[k].step = max(per[k].step, b.Step)
		}
		per[k].unread[0] += min(max(b.Unread, 0), mostUnread)
		values := measuredOnly(b.Values)
		per[k].value = append(per[k].value, values...)
		per[k].weight[0] += float64(b.N) * float64(len(values))
	}
	for _, m := range x.measures {
		slices.Sort(m.value)
		v := stat.SortedMedian(m.value)
		if meansOnly(m.metric) {
			v = stat.Mean(m.value)
		}
		m.samples, m.value = []blockSample{costs{m.value}}, []float64{v}
	}
	return x
}

// blockList names blocks as people count them, from 1.
func blockList(blocks []int) string {
	const most = 8
	var names []string
	for _, b := range blocks[:min(most, len(blocks))] {
		names = append(names, fmt.Sprint(b+1))
	}
	s := "block "
	if len(blocks) > 1 {
		s = "blocks "
	}
	s += strings.Join(names, ", ")
	if n := len(blocks) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
