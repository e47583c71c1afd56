// Package analyze computes a report from a record. It is pure: the same record gives the same report, and a newer tare
// reads an early record again.
package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/probe"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// Options change what is computed. The zero value is the usual.
type Options struct {
	// Budget replaces the budgets that the run was given; nil keeps them.
	Budget []string
	// Fit makes it an error, a Misfit, if a budget does not fit what the record can have.
	Fit bool
}

// A Misfit is a budget that no record of this experiment could decide.
type Misfit struct {
	Text    string
	Refusal *budget.Refusal
}

// Error implements error.
func (m *Misfit) Error() string { return fmt.Sprintf("%q: %v", m.Text, m.Refusal) }

// Analyze computes the report of r. A record of a run that was cut short gives a partial report that says so. It fails
// only if the record's question is not known or its files cannot be read.
func Analyze(r *record.Record, o Options) (*report.Report, error) {
	return newAnalysis(r).conclude(o)
}

// conclude computes the whole report.
func (a *analysis) conclude(o Options) (*report.Report, error) {
	r := a.rec
	lines := map[string]int{}
	if o.Budget == nil {
		o.Budget, lines = r.Plan.Budget, budgetLines(r)
	}
	budgets, err := parsed(o.Budget)
	if err != nil {
		return nil, err
	}
	a.treatments()
	for _, w := range r.Warned {
		a.warn(w.Treatment, "%s", w.Text)
	}
	if err := a.answer(budgets); err != nil {
		return nil, err
	}
	a.targetReadings()
	a.answerChecks()
	a.wrongAnswers()
	a.generator()
	a.stolen()
	a.ending()
	a.withdrawEffects()
	if o.Fit && a.flaws.measured {
		if err := misfit(a.scope(), budgets); err != nil {
			return nil, err
		}
	}
	a.budgets(budgets)
	for i := range a.rep.Budgets {
		a.rep.Budgets[i].Line = lines[a.rep.Budgets[i].Text]
	}
	a.rep.Verdict, a.rep.Reason = verdict(a.rep, a.flaws)
	for _, calls := range a.logs {
		if err := calls.Err(); err != nil {
			return nil, err
		}
	}
	return a.rep, nil
}

func newAnalysis(r *record.Record) *analysis {
	return &analysis{
		rec: r, rep: head(r), traces: map[string]*capacity.Trace{}, searched: map[string]capacity.Result{},
		operationNames: map[string][]string{},
		steal:          map[string][]float64{}, counted: map[key]*counts{},
	}
}

func parsed(texts []string) ([]budget.Budget, error) {
	out := make([]budget.Budget, 0, len(texts))
	for _, text := range texts {
		b, err := budget.Parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// answer answers the record's question.
func (a *analysis) answer(budgets []budget.Budget) error {
	for _, t := range a.trials() {
		if t.End != nil && t.End.Error != "" {
			a.warn(t.Treatment, "the trial failed: %s", t.End.Error)
		}
	}
	do, ok := analyses[a.question().Drive]
	if !ok {
		return fmt.Errorf("this tare cannot analyze question %q", a.rec.Header.Question)
	}
	return do(a, budgets)
}

// analyses answer a question from what its drive recorded. This is the only list.
var analyses = map[question.Drive]func(*analysis, []budget.Budget) error{
	question.Blocks: (*analysis).compare,
	question.Search: func(a *analysis, _ []budget.Budget) error { return a.searches() },
	question.Long:   func(a *analysis, budgets []budget.Budget) error { a.soaks(budgets); return nil },

	question.Guarded: func(a *analysis, _ []budget.Budget) error { return a.guards() },
}

// AddForTest adds an analysis of what a drive recorded until the test ends.
func AddForTest(t interface{ Cleanup(func()) }, d question.Drive, do func(*record.Record, *report.Report) error) {
	before := analyses
	analyses = maps.Clone(analyses)
	analyses[d] = func(a *analysis, _ []budget.Budget) error { return do(a.rec, a.rep) }
	t.Cleanup(func() { analyses = before })
}

// question is what the record asks, with its properties.
func (a *analysis) question() *question.Question { return question.Of(a.rec.Header.Question) }

// analysis is a report in the making.
type analysis struct {
	rec *record.Record
	rep *report.Report
	// flaws are why the run is invalid, open why it stays inconclusive even without budgets.
	flaws flaws
	// audits are of the trials, for the generator's part of the report.
	audits []report.Generator
	// traces and the names of operations, by treatment; logs are the calls of the traces.
	traces         map[string]*capacity.Trace
	logs           []*record.CallLog
	searched       map[string]capacity.Result // what each trace licenses to say
	operationNames map[string][]string
	// steal are the shares of CPU time that the hypervisor took, by treatment.
	steal map[string][]float64

	// Of the questions compare and scale:
	cmp       *comparison
	pairing   *pairing    // that the arms are of, the runs of which have been analysed and checked
	contrasts []*contrast // of rep.Effects, in their order
	negatives []*contrast
	asked     map[string]bool // metrics that budgets name
	limited   string          // why the generator makes the run invalid
	advice    string          // what would help to rule the generator out
	tardy     string          // what the generator, which sent all, spoiled by sending late
	// soaked are the long trials of the question soak, by treatment.
	soaked map[string]*soak
	// counted are the calls by treatment and operation, countedOrder the same in the order of the record.
	counted      map[key]*counts
	countedOrder []*counts
	phased       []*phase     // of long calls
	areaFigures  []areaFigure // of guards
}

// flaws are what keeps a run from a verdict.
type flaws struct {
	invalid, open []string
	measured      bool   // some trial came to its end
	failure       string // why a run that ended in an error did
}

// head fills in what does not depend on results.
func head(r *record.Record) *report.Report {
	h := &r.Header
	rep := &report.Report{
		Schema: report.Schema,
		Tool:   report.Tool{Version: h.Tool.Version, Commit: h.Tool.Commit},
		Experiment: report.Experiment{
			Name: h.Experiment.Name, File: h.Experiment.File, SHA256: h.Experiment.SHA256, Seed: h.Experiment.Seed,
		},
		Area:       h.Area,
		Question:   h.Question,
		Started:    h.Started,
		Seconds:    r.Seconds(),
		Status:     report.Killed,
		Treatments: []report.Treatment{},
		Environment: report.Environment{
			Host: h.Host.Name, Kernel: h.Host.Kernel, CPUs: h.Host.CPUs, Go: h.Host.Go, Tare: h.Tool.Version,
		},
	}
	if f := r.Finish; f != nil {
		switch f.Status {
		case record.Complete:
			rep.Status = report.Complete
		case record.Interrupted:
			rep.Status = report.Interrupted
		case record.Errored, record.Dropped:
			rep.Status = report.Errored
		default:
			rep.Status = report.Errored
		}
	}
	for _, q := range r.Plan.Quantities {
		if _, taken := probe.Known(q.Name, rep.Quantities...); !taken && q.Valid() == nil {
			rep.Quantities = append(rep.Quantities, q)
		}
	}
	for _, n := range r.Plan.Notes {
		remark(&rep.Notes, n)
	}
	for _, n := range r.Notes {
		remark(&rep.Notes, of(n.Treatment)+n.Text)
	}
	return rep
}

// mostRemarks bounds the notes and warnings that a damaged record can make a report hold.
const mostRemarks = 1000

// remark adds a note or a warning, if there is room.
func remark(list *[]string, s string) {
	switch n := len(*list); {
	case n < mostRemarks:
		addOnce(list, s)
	case n == mostRemarks:
		*list = append(*list, "there are more such remarks than a report holds: they are in the record")
	}
}

// addOnce keeps remarks from being repeated for every treatment.
func addOnce(list *[]string, s string) {
	if !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

func of(treatment string) string {
	if treatment == "" {
		return ""
	}
	return treatment + ": "
}

// warn adds a warning; with one treatment there is no need to name it.
func (a *analysis) warn(treatment, format string, args ...any) {
	if len(a.rec.Plan.Treatments) < 2 {
		treatment = ""
	}
	remark(&a.rep.Warnings, of(treatment)+fmt.Sprintf(format, args...))
}

// treatments says which arms there were and whether each was proved in force.
func (a *analysis) treatments() {
	proved, failed, unproved := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, v := range a.rec.Verified {
		if before, seen := proved[v.Treatment]; seen && !before {
			continue // one failed proof is enough
		}
		if proved[v.Treatment] = v.OK; v.Unproved != "" {
			unproved[v.Treatment] = v.Unproved
		}
		if !v.OK {
			failed[v.Treatment] = v.Error
			a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf("%s was not in force%s: %s", v.Treatment, v.When(), v.Error))
		}
	}
	a.undecided(failed)
	for _, t := range a.rec.Plan.Treatments {
		a.rep.Treatments = append(a.rep.Treatments, report.Treatment{
			ID: t.ID, Baseline: t.Baseline, Control: t.Control, Levels: t.Levels,
			Verified: proved[t.ID] && unproved[t.ID] == "", NotInForce: failed[t.ID], Unproved: unproved[t.ID],
		})
		who := t.ID
		if len(unproved) == len(a.rec.Plan.Treatments) {
			who = "" // it is so of all
		}
		if why := unproved[t.ID]; why != "" {
			remark(&a.rep.Notes, of(who)+why)
		}
	}
	a.rulings()
	for _, p := range a.rec.Prepared {
		if p.Error != "" {
			a.warn(p.Treatment, "its preparation failed: %s", p.Error)
		}
	}
}

// trials are the last attempts at each trial, since earlier ones were dropped and run again. They are in the order of
// the file's treatments, not in the random order in which they ran.
func (a *analysis) trials() []*record.Trial {
	type key struct {
		treatment string
		block     int
	}
	last := map[key]*record.Trial{}
	for _, t := range a.rec.Trials {
		last[key{t.Treatment, t.Block}] = t
	}
	out := slices.DeleteFunc(
		slices.Clone(a.rec.Trials), func(t *record.Trial) bool { return last[key{t.Treatment, t.Block}] != t },
	)
	place := func(t *record.Trial) int {
		return slices.IndexFunc(a.rec.Plan.Treatments, func(x design.Treatment) bool { return x.ID == t.Treatment })
	}
	slices.SortStableFunc(out, func(s, t *record.Trial) int {
		return cmp.Or(cmp.Compare(place(s), place(t)), cmp.Compare(s.Block, t.Block))
	})
	return out
}

// alreadyReported reports whether an error is that of a preparation or of a proof, which has been said.
func (a *analysis) alreadyReported(err string) bool {
	if slices.ContainsFunc(
		a.rec.Verified, func(v record.Verify) bool { return v.Error != "" && strings.Contains(err, v.Error) },
	) {
		return true
	}
	return slices.ContainsFunc(
		a.rec.Prepared, func(p record.Prepare) bool { return p.Error != "" && strings.Contains(err, p.Error) },
	)
}

// failure is why the run ended in an error, as its record says; "" if it does not.
func (a *analysis) failure() string {
	if f := a.rec.Finish; f != nil && f.Error != "" {
		return f.Error
	}
	for _, t := range a.rec.Trials {
		if t.End != nil && t.End.Error != "" {
			return t.End.Error
		}
	}
	return ""
}

// ending says how the run and the reading of its record ended.
func (a *analysis) ending() {
	a.flaws.measured = slices.ContainsFunc(a.trials(), (*record.Trial).Complete)
	a.flaws.failure = "the run failed" + because(a.failure())
	if f := a.rec.Finish; f != nil && f.Error != "" && !a.alreadyReported(f.Error) {
		a.warn("", "the run failed: %s", f.Error)
	}
	if n := len(a.rec.Pending()); n > 0 {
		addOnce(&a.rep.Warnings, fmt.Sprintf(
			"%s to the system still to be undone; run: tare undo %s", unit.Count(n, "change"), a.rec.Dir,
		))
	}
	if n := len(a.trials()); n < len(a.rec.Plan.Trials) && a.rep.Status != report.Complete {
		a.warn("", "the run came to %d of its %d trials", n, len(a.rec.Plan.Trials))
	}
	if a.question().Answer == question.Rate && len(a.rep.Capacity) == 0 {
		a.flaws.open = append(a.flaws.open, "no capacity was measured")
	}
	for _, u := range a.rec.Unknown {
		a.warn("", "the record holds %q, which this tare does not know; a newer one may say more", u.Kind)
	}
	for _, w := range a.rec.Warnings {
		a.warn("", "record: %s", w)
	}
}
