package analyze

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
)

// defaultMargin is of records that do not say theirs.
const defaultMargin = 0.02

// A comparison is what the question compare, or scale, asks of a dataset.
type comparison struct {
	*dataset
	margin float64
	gates  gates
	// alphas are the errors at which Holm's procedure tested the gating effects: a budget uses the same interval as the
	// verdict.
	alphas map[string]map[gate]float64
	// measured names the metrics of an operation, for budgets that ask for another one.
	measured map[string]string
	// answered is the same comparison if calls that failed were never answered; nil: none failed.
	answered *comparison
}

// compare answers what each treatment adds to its baseline.
func (a *analysis) compare(budgets []budget.Budget) error {
	a.asked = map[string]bool{}
	for i := range budgets {
		a.asked[budgets[i].Metric] = true
	}
	d, err := a.dataset()
	if err != nil {
		return err
	}
	c := &comparison{
		dataset: d, margin: a.rec.Plan.Margin, alphas: map[string]map[gate]float64{}, measured: map[string]string{},
	}
	if !(c.margin > 0) || math.IsInf(c.margin, 0) {
		c.margin = defaultMargin
	}
	a.cmp = c
	a.windowOperations()
	budgets = a.judgeable(budgets)
	c.gates = c.gating(budgets)
	c.answered = c.ifNeverAnswered()
	a.design(c)
	a.metrics(c)
	a.harness(c)
	a.blockValues(c)
	a.percentiles(c)
	if len(d.blocks) < minBlocks && !d.unblocked {
		a.flaws.open = append(a.flaws.open, tooFew(d))
	} else {
		a.effects(c)
		a.describeEffects()
		a.checks(c)
		a.carryover(c)
	}
	a.growth(c, budgets)
	a.noise(c)
	a.warnOfSteps(c)
	a.skew(c)
	a.surroundings()
	return nil
}

func tooFew(d *dataset) string {
	if len(d.arms) == 0 {
		return "the record does not say which treatments were planned"
	}
	return fmt.Sprintf("%s complete: an effect needs at least %d", wereBlocks(len(d.blocks)), minBlocks)
}

func wereBlocks(n int) string {
	if n == 1 {
		return "1 block is"
	}
	return fmt.Sprintf("%d blocks are", n)
}

// design says how the experiment was laid out and how far it came.
func (a *analysis) design(c *comparison) {
	p := &a.rec.Plan
	out := &report.Design{
		Blocks: len(c.blocks), Planned: p.Blocks, Looks: p.Looks, Alpha: stat.LookAlpha, Margin: c.margin,
		Unblocked: p.Unblocked,
		Late:      c.late, Dropped: c.dropped, SlowerRate: c.slower,
	}
	if t := p.Load.Turns; t != nil {
		out.Turn, out.Rounds = t.Length.Seconds(), t.Rounds
	}
	out.Trials = p.Load.NoTurns
	per := trialsByBlock(a.rec.Trials)
	for _, b := range c.blocks {
		if renewed(per[b]) {
			out.Renewed++
		}
	}
	if out.Planned == 0 && len(c.arms) > 0 {
		out.Planned = len(p.Trials) / len(c.arms)
	}
	for _, f := range p.Factors {
		addOnce(&out.Factors, f.Name)
	}
	for _, l := range slices.Backward(a.rec.Looks) {
		if l.Stop {
			out.Stopped = strings.TrimSuffix(l.Reason, ", the A/A arm is quiet") // which early records say without evidence
			break
		}
	}
	a.rep.Design = out
}

// renewed reports whether what every treatment of a block needs was started afresh for it.
func renewed(trials map[string]*record.Trial) bool {
	for _, t := range trials {
		if !t.Renewed {
			return false
		}
	}
	return true
}

// baselineOf is the treatment that t is compared with: with factors that are crossed, the one at the same levels of
// them.
func (c *comparison) baselineOf(t *design.Treatment) (design.Treatment, bool) {
	if t.Control == design.AA {
		i := slices.IndexFunc(c.arms, func(x design.Treatment) bool { return x.ID == t.Of })
		if i < 0 {
			return design.Treatment{}, false
		}
		return c.arms[i], true
	}
	var bases []design.Treatment
	var levels []map[string]string
	for _, x := range c.arms {
		if x.Baseline {
			bases, levels = append(bases, x), append(levels, x.Levels)
		}
	}
	for _, b := range bases {
		if design.Beside(b.Levels, t.Levels, levels) {
			return b, true
		}
	}
	return design.Treatment{}, false
}

// wholeMix reports whether an operation stands for all calls: the only one, or all together.
func (c *comparison) wholeMix(operation string) bool {
	return operation == "" || len(c.operations) == 1
}

// fewest is the least number of samples in a block of m's metric, over all arms. Blocks from which none are taken,
// since the generator was late, do not count, unless an arm has no others.
func (c *comparison) fewest(m *measure) int {
	least := math.MaxInt
	for _, x := range c.ofSubject[subject{m.operation, m.metric.Name}] {
		some := false
		for _, s := range x.samples {
			if s != nil {
				least, some = min(least, s.Len()), true
			}
		}
		if !some {
			return 0
		}
	}
	return least
}

// acts reports whether a treatment can act on an operation. Where it cannot, an effect would be an artefact.
func (c *comparison) acts(treatment, operation string) bool {
	return !c.negative[key{treatment, operation, ""}]
}

// describeEffects notes what reports need to word effects: whether somebody set the margin, and how much of the
// baseline's figure is the harness.
func (a *analysis) describeEffects() {
	harness := map[[3]string]*float64{}
	for i := range a.rep.Treatments {
		t := &a.rep.Treatments[i]
		for k := range t.Metrics {
			if m := &t.Metrics[k]; m.Quantile == "" {
				harness[[3]string{t.ID, m.Operation, m.Name}] = m.Harness
			}
		}
	}
	for _, set := range [][]report.Effect{a.rep.Effects, a.rep.Additions} {
		for i := range set {
			e := &set[i]
			e.MarginGiven = a.rec.Plan.MarginGiven
			if e.Quantile == "" {
				e.BaselineHarness = harness[[3]string{e.Baseline, e.Operation, e.Metric}]
			}
		}
	}
}

// contrast sets up the test of one gate between two arms, or says why there is none.
func (c *comparison) contrast(base, treated string, g gate) (*contrast, error) {
	x, y := c.find(base, g.operation, g.metric), c.find(treated, g.operation, g.metric)
	if x == nil || y == nil {
		return nil, fmt.Errorf("%s was not measured under both", g.metric)
	}
	out, err := c.between(x, y, g.quantile, false)
	if err != nil {
		return nil, err
	}
	out.unsettled = func(worse, better bool) string { return c.unsettled(treated, base, y.metric, worse, better) }
	out.setMargin(x.values(g.quantile), c.margin)
	e := &out.effect
	e.Treatment, e.Baseline, e.Operation, e.Quantile = treated, base, y.operation, g.quantile
	if err := c.alsoAnswered(out, base, treated, g); err != nil {
		return nil, err
	}
	return out, out.estimate(stat.LookAlpha)
}

// fewGates is how many gating metrics a treatment should have: Holm's procedure tests the first of m at α ÷ m.
const fewGates = 5

// effects estimates every effect on every treated arm and judges it.
func (a *analysis) effects(c *comparison) {
	var explored []*contrast
	skipped, most := skips{}, 0
	for i := range c.arms {
		t := &c.arms[i]
		base, ok := c.baselineOf(t)
		if t.Control != design.None || !ok || base.ID == t.ID || t.Baseline {
			continue
		}
		gating := c.family(base.ID, t.ID, c.gatesOf(t.ID), skipped)
		c.holm(t.ID, gating)
		a.noteLeftOpen(gating)
		a.notePowerless(undecidable(gating, "gating", stat.Holm))
		most = max(most, len(gating))
		others := c.family(base.ID, t.ID, c.exploratory(t.ID), skipped)
		explored = append(explored, others...)
		a.contrasts = append(a.contrasts, slices.Concat(gating, others)...)
	}
	if most > fewGates {
		addOnce(&a.rep.Notes, fmt.Sprintf(
			"%d metrics gate for a treatment, and each more makes all of them harder to decide: name those that matter in the "+
				"budget, %d at most",
			most, fewGates,
		))
	}
	explore(explored)
	a.notePowerless(undecidable(explored, "exploratory", stat.BenjaminiHochberg))
	a.additions(c)
	a.contrasts = slices.DeleteFunc(a.contrasts, func(x *contrast) bool {
		if x.unbounded() {
			skipped.add(x.failed, gate{x.effect.Operation, x.effect.Metric, x.effect.Quantile})
		}
		return x.unbounded()
	})
	for _, x := range a.contrasts {
		a.rep.Effects = append(a.rep.Effects, x.effect)
	}
	for _, why := range sortedKeys(skipped) {
		addOnce(&a.rep.Notes, fmt.Sprintf("no effect on %s: %s", strings.Join(skipped[why].on, ", "), why))
	}
	if _, ok := a.baseline(); (ok || !c.unblocked) && len(a.contrasts) == 0 && a.question().Answer == question.Effects {
		a.flaws.open = append(a.flaws.open, "no effect could be estimated")
	}
}

// additions estimates what each control of a treatment that has several costs in the presence of the others: the
// treatment against those that lack one of them.
func (a *analysis) additions(c *comparison) {
	var all []*contrast
	for _, t := range c.arms {
		for _, fewer := range design.Fewer(t, c.arms) {
			all = append(all, c.family(fewer.ID, t.ID, c.gatesOf(t.ID), skips{})...)
		}
	}
	explore(all)
	for _, x := range slices.DeleteFunc(all, (*contrast).unbounded) {
		a.rep.Additions = append(a.rep.Additions, x.effect)
	}
}

// family estimates the contrasts of one treatment. What cannot be estimated is noted by its reason.
func (c *comparison) family(base, treated string, gates []gate, skipped skips) []*contrast {
	var out []*contrast
	for _, g := range gates {
		x, err := c.contrast(base, treated, g)
		if err != nil {
			skipped.add(err.Error(), g)
			continue
		}
		out = append(out, x)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
