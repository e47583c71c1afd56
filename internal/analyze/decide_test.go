package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

// until is the record as it was after so many blocks.
func until(r *record.Record, blocks int) *record.Record {
	out := *r
	out.Trials = nil
	for _, t := range r.Trials {
		if t.Block < blocks {
			out.Trials = append(out.Trials, t)
		}
	}
	return &out
}

// grown runs an experiment as the runner does: it is judged at its looks, and ends at the first that says so.
func grown(t *testing.T, x experiment) (*report.Report, int) {
	t.Helper()
	r := x.record()
	for _, look := range r.Plan.Looks {
		rep := reportOf(t, until(r, look))
		if stop, _ := Decide(rep); stop || look == r.Plan.Looks[len(r.Plan.Looks)-1] {
			return rep, look
		}
	}
	t.Fatal("no look")
	return nil, 0
}

// TestExperimentsOfNothing: two hundred experiments whose treatment does nothing, on a host with noise of every kind,
// judged at every look. At most one in twenty, give or take three standard deviations, may differ from 0 or find itself
// unreliable; none may be called worse or better than the margin. A treatment that costs 5 % is found in nearly all of
// as many, and with its size.
func TestExperimentsOfNothing(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	const n = 200
	const sure = 20 // 0.053·200 = 10.6, and three standard deviations of 3.2
	for _, truth := range []float64{1, 1.05} {
		counts := map[string]int{}
		blocks := 0
		for seed := range uint64(n) {
			rep, look := grown(t, experiment{
				blocks: 80, seed: 1000 + seed, block: .2, arm: .008, batch: .06, heavy: .03, cost: slower(truth),
				operations: []string{"open", "exec"},
			})
			blocks += look
			if rep.Verdict == report.Invalid {
				counts["invalid"]++
				continue
			}
			for _, name := range []string{"open.cpu", "exec.cpu"} {
				e := effectOn(t, rep.Effects, name)
				counts[string(e.Verdict)]++
				if e.Lo > truth-1 || e.Hi < truth-1 {
					counts["missed"]++
				}
			}
		}
		t.Logf("truth %v: %v, %.1f blocks on average", truth, counts, float64(blocks)/n)
		if truth == 1 {
			if wrong := counts["invalid"] + counts["slower"] + counts["faster"]; wrong > sure || counts["regressed"] > 0 ||
				counts["improved"] > 0 {
				t.Errorf("%d of %d experiments of nothing found something, at most %d may: %v", wrong, n, sure, counts)
			}
			if counts["equivalent"] < n*2*9/10 {
				t.Errorf("%v: with so many blocks nearly all should be equivalent", counts)
			}
			continue
		}
		if counts["regressed"] < n*2*85/100 || counts["improved"]+counts["faster"]+counts["equivalent"] > 0 ||
			counts["invalid"] > sure {
			t.Errorf("+5 %%: %v", counts)
		}
		// Two effects and up to four looks: an interval misses the truth in about one of twenty experiments.
		if counts["missed"] > 2*sure {
			t.Errorf("%d intervals miss the truth", counts["missed"])
		}
	}
}

// TestDecide is pure: what it says depends on the report alone.
func TestDecide(t *testing.T) {
	t.Parallel()
	quiet := &report.AA{Reliable: true, Effects: []report.Effect{{Treatment: "aa"}}}
	effect := func(v report.EffectVerdict, gating bool) report.Effect {
		n := 60
		return report.Effect{
			Treatment: "x", Metric: "cpu", Operation: "open", Kind: kindRatio, Estimate: .03, Lo: .01, Hi: .05, Verdict: v,
			Gating: gating, BlocksToDecide: &n,
		}
	}
	type effects = []report.Effect
	type verdicts = []report.Verdict
	regressed, open := effect(report.Regressed, true), effect(report.Slower, true)
	for _, c := range []struct {
		name    string
		aa      *report.AA
		effects effects
		budgets verdicts
		invalid string
		stop    bool
		reason  string
	}{
		{
			"decided", quiet,
			effects{regressed, effect(report.Equivalent, true), effect(report.Slower, false)},
			nil, "",
			true, "2 effects decided",
		},
		{
			"open effect", quiet, effects{regressed, open}, nil, "", false, "open.cpu under x: +3.0 % [1.0, 5.0] so far, " +
				"higher, but perhaps by less than the margin (about 60 blocks in all would decide)",
		},
		{"budgets decide", quiet, effects{open}, verdicts{report.Pass, report.Fail}, "", true, "2 budgets decided"},
		{"open budget", quiet, effects{regressed}, verdicts{report.Pass, report.Inconclusive}, "", false, "about 90 blocks"},
		{
			"a budget that cannot be measured is not waited for", quiet, nil,
			verdicts{report.Pass, report.NotMeasured},
			"",
			true, "1 budget decided",
		},
		{
			"no budget can be measured", quiet,
			effects{effect(report.Faster, true)},
			verdicts{report.NotMeasured},
			"",
			false, "higher",
		},
		{
			"nothing gates", quiet,
			effects{effect(report.Regressed, false)},
			nil, "", false,
			"nothing that was measured decides",
		},
		{"no A/A", nil, effects{regressed}, nil, "", false, "A/A"},
		{
			"A/A differs", &report.AA{Effects: quiet.Effects},
			effects{regressed},
			nil, "unreliable on this host: aa", false,
			"unreliable",
		},
	} {
		rep := &report.Report{AA: c.aa, Effects: c.effects, Reason: c.invalid}
		if c.invalid != "" {
			rep.Verdict = report.Invalid
		}
		for _, v := range c.budgets {
			rep.Budgets = append(rep.Budgets, report.Budget{
				Text: "open.cpu <= +5%", Treatment: "x", Verdict: v, Reason: "20 blocks; about 90 blocks in all would decide",
			})
		}
		if stop, reason := Decide(rep); stop != c.stop || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: stop %v: %s", c.name, stop, reason)
		}
	}
}

// TestStatusesOfComparisons: what was measured is told whatever became of the run.
func TestStatusesOfComparisons(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end     record.Status
		status  report.Status
		verdict report.Verdict
		exit    int
	}{
		{record.Complete, report.Complete, report.Pass, ExitPass},
		{record.Interrupted, report.Interrupted, report.Inconclusive, ExitInterrupted},
		{"killed", report.Killed, report.Inconclusive, ExitInterrupted},
		{record.Errored, report.Errored, report.Inconclusive, ExitError},
	} {
		x := experiment{blocks: 12, end: c.end, seed: 1, budget: []string{"open.cpu <= +5%"}}
		x.drop = func(treatment string, block int) bool {
			return c.end != record.Complete && block == 11 && treatment == design.AAArm
		}
		rep := measured(t, x)
		blocks := 11
		if c.end == record.Complete {
			blocks = 12
		}
		if rep.Status != c.status || rep.Verdict != c.verdict || ExitCode(rep) != c.exit || rep.Design.Blocks != blocks {
			t.Errorf(
				"%s: %s, %s (%s), exit %d, %d blocks", c.end, rep.Status, rep.Verdict, rep.Reason, ExitCode(rep), rep.Design.Blocks,
			)
		}
		if e := effectOn(t, rep.Effects, "open.cpu"); e.Verdict != report.Equivalent || e.Blocks != blocks {
			t.Errorf("%s: %+v", c.end, e)
		}
	}
}

// blockValues are the values of all metrics, block by block, that the complete blocks of a comparison measured: one
// entry for each arm, operation and metric, in the metric's main quantile. Of results that were taken without blocks,
// each repetition is a value. It fails if the record's files cannot be read or if its question has no blocks.
func blockValues(rec *record.Record) ([]report.BlockValues, error) {
	if q := rec.Header.Question; !question.Of(q).Drive.InBlocks {
		return nil, fmt.Errorf("the question %q has no blocks to compare", q)
	}
	a := newAnalysis(rec)
	d, err := a.dataset()
	if err != nil {
		return nil, err
	}
	var out []report.BlockValues
	for _, m := range d.measures {
		out = append(out, d.valuesOf(m, m.main))
	}
	return out, nil
}

// TestBlockValues are those that effects are estimated from.
func TestBlockValues(t *testing.T) {
	t.Parallel()
	r := experiment{blocks: 10, seed: 3, cost: slower(1.1), block: .3}.record()
	all, err := blockValues(r)
	must(t, err)
	per := map[string][]float64{}
	for _, b := range all {
		if b.Operation != "open" || b.Unit != "s" && b.Unit != "CPU-s" {
			t.Errorf("%+v", b)
		}
		for _, v := range b.Values {
			per[b.Treatment+" "+b.Metric] = append(per[b.Treatment+" "+b.Metric], *v)
		}
	}
	if len(all) != 6 {
		t.Errorf("%d entries, want cpu and wall of three arms", len(all))
	}
	e, err := judgedAlone(estimator{}, per["enforcer=none cpu"], per[seccomp+" cpu"], .02)
	must(t, err)
	want := effectOn(t, analyzedRecord(t, r).Effects, "open.cpu")
	if e.Estimate != want.Estimate || e.Lo != want.Lo || e.Hi != want.Hi || e.Verdict != want.Verdict || e.Blocks != 10 {
		t.Errorf("%+v\nwant %+v", e, want)
	}
	if _, err := judgedAlone(estimator{}, []float64{1}, []float64{2}, .02); err == nil {
		t.Error("one block gives an effect")
	}
	if _, err := blockValues(&record.Record{Header: record.Header{Question: design.Capacity}}); err == nil {
		t.Error("a capacity search has blocks")
	}
	if !slices.IsSorted([]float64{e.Lo, e.Estimate, e.Hi}) {
		t.Errorf("%+v", e)
	}
}
