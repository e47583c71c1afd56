package analyze

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// A Run is a record and what people call it.
type Run struct {
	Name   string
	Record *record.Record
}

// Arms are two treatments that are compared with each other: one of the run that is the base, one of the other.
type Arms struct {
	Base, Treated string
	// Likely: they have different levels, and nobody said that they correspond; they are what is left on both sides.
	Likely bool
}

// CompareOptions are what a comparison of records is judged by.
type CompareOptions struct {
	// Budget are limits as in an experiment file. The runs' own ones are not judged: they were set for another question.
	Budget []string
	// Margin is the largest effect, as a share of the base, that counts as equivalent; 0: that of the treated run.
	Margin float64
	// Alone are treatments that have no counterpart, as "run:treatment".
	Alone []string
}

// SameRun reports whether two records are of one run, so that equal blocks were taken together: the same start, seed
// and experiment.
func SameRun(a, b *record.Record) bool {
	return a.Header.Started.Equal(b.Header.Started) && a.Header.Experiment.Seed == b.Header.Experiment.Seed &&
		a.Header.Experiment.SHA256 == b.Header.Experiment.SHA256
}

// CompareRuns estimates what the treated arms cost against their base arms. Arms of one run are compared block by
// block. Those of two runs, and imported ones, were taken at different times: their effects are of two independent
// samples of block values (Mann–Whitney, Hodges– Lehmann), and never equivalent. Of searches, soaks and guards, which
// have no blocks, it compares the figures by their intervals. A run that is invalid makes the comparison invalid. It
// fails if the records answer different questions, or their files cannot be read.
func CompareRuns(base, treated Run, arms []Arms, o CompareOptions) (*report.Report, error) {
	x, y := base.Record.Header.Question, treated.Record.Header.Question
	p := &pairing{base: base, treated: treated, arms: arms, alone: o.Alone, same: SameRun(base.Record, treated.Record)}
	switch a, b := question.Of(x).Drive, question.Of(y).Drive; {
	case x != y && (!a.InBlocks || !b.InBlocks):
		return nil, fmt.Errorf("%s asks for %s, and %s for %s: they have no figure in common; compare runs that ask the same",
			base.Name, x, treated.Name, y)
	case !a.InBlocks:
		return p.compareOutcomes(o)
	}
	return p.compareBlocks(o)
}

// compareBlocks compares arms by the values of their blocks.
func (p *pairing) compareBlocks(o CompareOptions) (*report.Report, error) {
	p.blocked = p.same && len(p.arms) == 1 && !p.base.Record.Plan.Unblocked
	a := newAnalysis(p.record(o.Margin))
	a.pairing = p
	sides, err := p.judgeSides(a, o.Budget)
	if err != nil {
		return nil, err
	}
	if o.Budget == nil {
		o.Budget = []string{}
	}
	rep, err := a.conclude(Options{Budget: o.Budget, Fit: true})
	if err != nil {
		return nil, err
	}
	p.label(rep)
	if p.blocked {
		rep.AA = sides[0].AA
	}
	return rep, nil
}

// pairing is a comparison of records in the making: the arms become treatments of one record, which is then analysed
// like any other.
type pairing struct {
	base, treated Run
	arms          []Arms
	alone         []string // treatments without a counterpart
	same          bool     // the arms are of one run
	blocked       bool
}

// judgeSides analyses the runs by themselves: what makes one of them invalid makes their comparison invalid.
func (p *pairing) judgeSides(a *analysis, budgets []string) ([]*report.Report, error) {
	runs := []Run{p.base, p.treated}
	if p.same {
		runs = runs[:1]
	}
	var out []*report.Report
	for _, r := range runs {
		rep, err := Analyze(r.Record, Options{Budget: budgets})
		if err != nil {
			return nil, fmt.Errorf("analyze %s: %w", r.Name, err)
		}
		out = append(out, rep)
		if rep.Verdict == report.Invalid {
			a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf("%s is invalid: %s", r.Name, rep.Reason))
		}
		if rep.Status != report.Complete {
			a.warn("", "%s did not come to its end (%s): only its complete blocks are compared", r.Name, rep.Status)
		}
	}
	return out, nil
}

// baseID is a base arm's name beside the treated ones, which have theirs.
func (p *pairing) baseID(id string) string {
	if p.same {
		return id
	}
	return p.base.Name + ":" + id
}

// pairLevel is the level that leads from a treated arm to its own base: all bases are crossed with it.
const pairLevel = "pair"

// record makes the arms into one record. What was measured stays as it is; only names and, of what was not taken
// together, block numbers change.
func (p *pairing) record(margin float64) *record.Record {
	out := *p.treated.Record
	out.Header.Question = design.Compare
	out.Header.Experiment.Name = p.title()
	out.Looks, out.Resumed, out.Changes, out.Notes, out.Unknown = nil, nil, nil, nil, nil
	out.Trials, out.Prepared, out.Verified, out.Warned, out.Warnings = nil, nil, nil, nil, nil
	out.Finish = &record.Finish{Status: record.Complete}
	if f := p.treated.Record.Finish; f != nil {
		out.Finish.Seconds = f.Seconds
	}
	given := margin > 0
	if !given {
		margin, given = p.treated.Record.Plan.Margin, p.treated.Record.Plan.MarginGiven
	}
	out.Plan = record.Plan{
		Load: p.treated.Record.Plan.Load, Margin: margin, MarginGiven: given, Unblocked: !p.blocked,
		Quantities: append(slices.Clone(p.treated.Record.Plan.Quantities), p.base.Record.Plan.Quantities...),
	}
	offset := 0
	if !p.blocked {
		offset = 1 + lastBlock(p.treated.Record)
	}
	for _, x := range p.arms {
		level := map[string]string{pairLevel: "of " + x.Treated} // no number: it is no size of anything
		base := design.Treatment{ID: p.baseID(x.Base), Baseline: true, Levels: level}
		if !slices.ContainsFunc(out.Plan.Treatments, func(t design.Treatment) bool { return t.ID == base.ID }) {
			out.Plan.Treatments = append(out.Plan.Treatments, base)
			p.take(&out, p.base, x.Base, base.ID, offset)
		}
		out.Plan.Treatments = append(out.Plan.Treatments, design.Treatment{ID: x.Treated, Levels: level})
		p.take(&out, p.treated, x.Treated, x.Treated, 0)
	}
	p.remarks(&out)
	return &out
}

// take adds what a run has of one arm.
func (p *pairing) take(out *record.Record, from Run, id, as string, offset int) {
	for _, t := range from.Record.Trials {
		if t.Treatment == id {
			moved := *t
			moved.Treatment, moved.Block = as, t.Block+offset
			out.Trials = append(out.Trials, &moved)
		}
	}
	for _, v := range from.Record.Verified {
		if v.Treatment == id {
			v.Treatment = as
			out.Verified = append(out.Verified, v)
		}
	}
}

// remarks carries over what the runs warned of, with their names.
func (p *pairing) remarks(out *record.Record) {
	runs := []Run{p.base, p.treated}
	if p.same {
		runs = runs[:1]
	}
	for _, r := range runs {
		for _, w := range r.Record.Warned {
			out.Warned = append(out.Warned, record.Warning{Text: p.of(r) + of(w.Treatment) + w.Text})
		}
		for _, w := range r.Record.Warnings {
			out.Warned = append(out.Warned, record.Warning{Text: p.of(r) + "record: " + w})
		}
		if r.Record.Plan.Unblocked {
			continue // its notes are on what was imported and what was not
		}
		for _, n := range r.Record.Plan.Notes {
			out.Notes = append(out.Notes, record.Note{Text: p.of(r) + n})
		}
		for _, n := range r.Record.Notes {
			if p.same && (n.Treatment == "" || p.involves(n.Treatment)) {
				out.Notes = append(out.Notes, n)
			}
		}
	}
}

// rulings compares what the controls of the arms decided about the same requests. Each run also says how its arms
// differ from its own baseline so that no request shows it. What both arms differ in alike is left out.
func (p *pairing) rulings(rep *report.Report) {
	bases, all := lastRulings(p.base.Record), lastRulings(p.treated.Record)
	for _, x := range p.arms {
		base, known := bases[x.Base]
		is, asked := all[x.Treated]
		i := slices.IndexFunc(rep.Treatments, func(t report.Treatment) bool { return !t.Baseline && t.ID == x.Treated })
		if i < 0 || !known && !asked || !isOrdinary(p.base.Record, x.Base) || !isOrdinary(p.treated.Record, x.Treated) {
			continue
		}
		if !known || !asked {
			addOnce(&rep.Warnings, fmt.Sprintf("what the controls of %s and %s decided about each request is known of one of "+
				"them: whether %s permits what the other one refuses is not known", p.baseID(x.Base), x.Treated, x.Treated))
			continue
		}
		t := &rep.Treatments[i]
		compareRulings(t, base, is)
		t.Unshown = slices.Concat(t.Unshown, lacking(is.Unasked, base.Unasked))
		for _, text := range lacking(base.Unasked, is.Unasked) {
			t.Unshown = append(t.Unshown, fmt.Sprintf("%s differs from the baseline of its run: %s", p.baseID(x.Base), text))
		}
	}
}

// isOrdinary reports whether the file names a treatment: tare adds others, without the control or with it again.
func isOrdinary(r *record.Record, id string) bool {
	return slices.ContainsFunc(r.Plan.Treatments, func(t design.Treatment) bool {
		return t.ID == id && t.Control == design.None
	})
}

func (p *pairing) involves(id string) bool {
	return slices.ContainsFunc(p.arms, func(x Arms) bool { return x.Base == id || x.Treated == id })
}

// of names the run where there are two.
func (p *pairing) of(r Run) string {
	if p.same {
		return ""
	}
	return r.Name + ": "
}

func (p *pairing) title() string {
	if p.same {
		return p.base.Name
	}
	return p.base.Name + " → " + p.treated.Name
}

func lastBlock(r *record.Record) int {
	last := 0
	for _, t := range r.Trials {
		last = max(last, min(t.Block, mostBlocks))
	}
	return last
}

// label gives the treatments their own levels back, and says what kind of comparison it is.
func (p *pairing) label(rep *report.Report) {
	levels := map[string]map[string]string{}
	for _, x := range p.arms {
		levels[p.baseID(x.Base)], levels[x.Treated] = levelsIn(p.base.Record, x.Base), levelsIn(p.treated.Record, x.Treated)
	}
	for i := range rep.Treatments {
		rep.Treatments[i].Levels = levels[rep.Treatments[i].ID]
	}
	rep.Growth = nil // pairs of arms are no row of sizes
	if d := rep.Design; d != nil {
		d.Factors = nil
		if !p.blocked {
			d.Blocks = fewestBlocks(rep)
		}
		d.Planned = d.Blocks
	}
	if !p.blocked {
		rep.Warnings = append([]string{p.whyUnblocked()}, rep.Warnings...)
	}
	p.noteUnpaired(rep)
	if !p.same {
		rep.Diff = p.diff()
		p.warnOfDifferences(rep)
	}
}

// diff says what is compared with what.
func (p *pairing) diff() *report.Diff {
	d := &report.Diff{A: p.base.Name, B: p.treated.Name, Unpaired: p.alone}
	for _, x := range p.arms {
		d.Pairs = append(d.Pairs, report.Pair{A: x.Base, B: x.Treated, Likely: x.Likely})
	}
	return d
}

func (p *pairing) whyUnblocked() string {
	return "unblocked: taken at different times; cannot be called equivalent. Of equals measured one after the other, " +
		"such tests find a difference in " +
		"11–67 % of cases at a nominal 5 %: to be sure, measure both in one run"
}

// noteUnpaired says what only the base has: what only the treated arm has is among the effects that could not be
// estimated.
func (p *pairing) noteUnpaired(rep *report.Report) {
	measured := map[string]map[string]bool{}
	for _, t := range rep.Treatments {
		measured[t.ID] = map[string]bool{}
		for _, m := range t.Metrics {
			measured[t.ID][gate{m.Operation, m.Name, ""}.String()] = true
		}
	}
	for _, x := range p.arms {
		var alone []string
		for _, name := range sortedKeys(measured[p.baseID(x.Base)]) {
			if !measured[x.Treated][name] {
				alone = append(alone, name)
			}
		}
		if len(alone) > 0 {
			addOnce(&rep.Notes, fmt.Sprintf("only under %s, so not compared: %s", p.baseID(x.Base), strings.Join(alone, ", ")))
		}
	}
}

// fewestBlocks is the number of blocks of the effect that has the fewest.
func fewestBlocks(rep *report.Report) int {
	n := math.MaxInt
	for i := range rep.Effects {
		n = min(n, rep.Effects[i].Blocks)
	}
	if len(rep.Effects) == 0 {
		return 0
	}
	return n
}

func levelsIn(r *record.Record, id string) map[string]string {
	for _, t := range r.Plan.Treatments {
		if t.ID == id {
			return maps.Clone(t.Levels)
		}
	}
	return nil
}

// A twoValues is what two runs say of one thing.
type twoValues struct{ what, a, b string }

// differing says where the values differ. What a record does not say cannot differ.
func differing(values []twoValues) (out []string) {
	for _, v := range values {
		if v.a != v.b && v.a != "" && v.b != "" {
			out = append(out, fmt.Sprintf("the runs differ in %s: %s and %s", v.what, v.a, v.b))
		}
	}
	return out
}

// warnOfDifferences says first where the surroundings of two runs differ, and last what else does.
func (p *pairing) warnOfDifferences(rep *report.Report) {
	rep.Warnings = slices.Concat(p.surroundings(), rep.Warnings, p.differences())
}

// surroundings are where and with what two runs were made, where that differs.
func (p *pairing) surroundings() []string {
	a, b := p.base.Record, p.treated.Record
	x, y := &a.Header.Host, &b.Header.Host
	values := []twoValues{
		{"host", x.Name, y.Name},
		{"kernel", x.Kernel, y.Kernel},
		{"CPUs", count(x.CPUs), count(y.CPUs)},
		{"architecture", x.Arch, y.Arch},
	}
	for _, key := range sortedKeys(a.Plan.Made) {
		values = append(values, twoValues{key, a.Plan.Made[key], b.Plan.Made[key]})
	}
	return differing(values)
}

// differences are what else was not the same in two runs, besides the treatments.
func (p *pairing) differences() []string {
	a, b := p.base.Record, p.treated.Record
	values := append([]twoValues{{"area", a.Header.Area, b.Header.Area}}, loadValues(&a.Plan.Load, &b.Plan.Load)...)
	if !a.Plan.Unblocked && !b.Plan.Unblocked { // tare measured them, and not two result files, which always differ
		values = append(values,
			twoValues{"tare", a.Header.Tool.Version, b.Header.Tool.Version},
			twoValues{"experiment file", short(a.Header.Experiment.SHA256), short(b.Header.Experiment.SHA256)},
		)
	}
	return differing(values)
}

// loadValues are what two runs may have been offered differently.
func loadValues(a, b *record.Load) []twoValues {
	seconds := func(s float64) string {
		if s == 0 {
			return ""
		}
		return unit.Seconds(s)
	}
	perSecond := func(rate float64) string {
		if rate == 0 {
			return ""
		}
		return unit.PerSecond(rate)
	}
	out := []twoValues{
		{"load.rate", perSecond(a.Rate), perSecond(b.Rate)},
		{"load.workers", count(a.Workers), count(b.Workers)},
		{"load.duration", seconds(a.Duration), seconds(b.Duration)},
		{"load.timeout", seconds(a.Timeout), seconds(b.Timeout)},
		{"load.max_connections", count(a.MaxConnections), count(b.MaxConnections)},
		{"load.engine", a.Engine, b.Engine},
		{"load.arrivals", a.Arrivals, b.Arrivals},
	}
	if len(a.Rates) > 0 && len(b.Rates) > 0 {
		out = append(out, twoValues{"load.rates", fmt.Sprint(a.Rates), fmt.Sprint(b.Rates)})
	}
	if (a.Workers > 0) != (b.Workers > 0) {
		kind := map[bool]string{true: "a closed loop of workers", false: "an open loop"}
		out = append(out, twoValues{"load", kind[a.Workers > 0], kind[b.Workers > 0]})
	}
	return out
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func short(sum string) string { return sum[:min(len(sum), 12)] }
