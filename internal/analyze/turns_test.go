package analyze

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
)

// turned is an experiment whose arms took turns on a host that is slow in every other second.
type turned struct {
	blocks int
	factor float64 // of the treated arm's response times
	late   bool    // a stall delays every call of some turns
	carry  float64 // of the response times of turns that follow the treated arm's; 0: none
	refuse int     // every so-many-th call of the treated arm is refused at once; 0: none
	down   bool    // all calls of every arm are
	// slotOn and slotOff are for how long a call occupies an arm that serves one at a time; 0: calls do not wait.
	slotOn, slotOff time.Duration
	workers         int // of a closed loop
	budget          []string
	seed            uint64
}

var turnLayout = design.Turns{Length: 50 * time.Millisecond, Rounds: 20, Settle: 5 * time.Millisecond}

const callsPerTurn = 10

func (x turned) record(t *testing.T) *record.Record {
	t.Helper()
	rng := rand.New(rand.NewPCG(x.seed, 1))
	arms := design.Arms([]design.Treatment{{ID: "off", Baseline: true}, {ID: "on"}})
	trials := design.Plan(design.Experiment{Treatments: arms, Blocks: x.blocks, Seed: x.seed})
	w, err := record.Create(t.TempDir(), record.Header{
		Experiment: record.Experiment{Name: "turns", Seed: x.seed}, Area: "turnpike", Question: design.Compare,
	}, []byte("name: turns\narea: turnpike\nquestion: compare\n"), clock.NewFake(epoch))
	must(t, err)
	must(t, w.Plan(record.Plan{
		Treatments: arms, Trials: trials, Margin: .02, Blocks: x.blocks, Looks: design.Looks(x.blocks), Budget: x.budget,
		Load: record.Load{Engine: "fast", Rate: 200, Timeout: 5, Workers: x.workers, Turns: &turnLayout},
	}))
	for b := range x.blocks {
		calls, windows := map[string][]load.Call{}, map[string]*record.Window{}
		for _, a := range arms {
			windows[a.ID] = &record.Window{
				Treatment: a.ID, Block: b, Start: time.Second,
				End: time.Second + 3*turnLayout.Block(1), Settle: turnLayout.Settle,
			}
		}
		at, before := time.Second, ""
		for range turnLayout.Rounds {
			for _, k := range rng.Perm(len(arms)) {
				id := arms[k].ID
				windows[id].Turns = append(windows[id].Turns, record.Turn{Start: at, End: at + turnLayout.Length})
				calls[id] = append(calls[id], x.turn(id, before, at, rng)...)
				before = id
				at += turnLayout.Length
			}
		}
		for _, trial := range trials[b*len(arms) : (b+1)*len(arms)] {
			must(t, w.TrialBegin(record.TrialBegin{Trial: trial, Operations: []string{"get"}}))
			its := calls[trial.Treatment]
			cpu := func(v float64) []metric.Sample {
				return []metric.Sample{{Subject: "endpoint", Metric: "cpu", Value: v}}
			}
			around(t, w, trial, cpu(1), cpu(1+1e-3*float64(len(its))))
			must(t, w.Window(*windows[trial.Treatment]), w.Calls(trial.Treatment, b, its))
			must(t, w.TrialEnd(record.TrialEnd{Treatment: trial.Treatment, Block: b, Seconds: 3, Status: record.Complete}))
		}
	}
	must(t, w.Finish(record.Finish{Status: record.Complete, Seconds: 30}), w.Close())
	return opened(t, w.Dir())
}

// turn returns the calls of one turn. The first meets a server at rest.
func (x turned) turn(arm, before string, at time.Duration, rng *rand.Rand) (out []load.Call) {
	took := 1e6
	if x.carry > 0 && before == "on" {
		took *= x.carry
	}
	if arm == "on" {
		took *= x.factor
	}
	if at/time.Second%2 == 0 {
		took *= 1.6
	}
	stall := time.Duration(0)
	if x.late && rng.IntN(10) == 0 {
		stall = 20 * time.Millisecond
	}
	free, slot := at, x.slotOff
	if arm == "on" {
		slot = x.slotOn
	}
	for i := range callsPerTurn {
		c := load.Call{Conn: 1, Intended: at + time.Duration(i)*5*time.Millisecond, Status: 200}
		d := took * math.Exp(rng.NormFloat64()*.05)
		if i == 0 {
			d *= 10
		}
		c.Ready = c.Intended + 1
		c.Sent = c.Ready + stall + 1000
		c.FirstByte = c.Sent + time.Duration(d)
		c.Done = c.FirstByte + 1000
		if x.down || arm == "on" && x.refuse > 0 && i%x.refuse == 0 {
			c.Outcome, c.Status, c.FirstByte, c.Done = load.Refused, 503, c.Sent+1000, c.Sent+2000
		}
		if slot > 0 {
			free = max(free, c.Sent) + slot
			c.FirstByte, c.Done = free-1000, free
		}
		out = append(out, c)
	}
	return out
}

// TestTurnsFindSmallDifferences on a host whose modes last longer than a round, and differ by more than the effect.
func TestTurnsFindSmallDifferences(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]turned{
		"quiet": {blocks: 12, factor: 1.03, seed: 1}, "with stalls": {blocks: 12, factor: 1.03, late: true, seed: 2},
	} {
		t.Run(name, func(t *testing.T) {
			rep := analyzedRecord(t, x.record(t))
			var e *report.Effect
			for i := range rep.Effects {
				if nameOf(&rep.Effects[i]) == "get.response.p50" {
					e = &rep.Effects[i]
				}
			}
			if e == nil || !e.Gating || e.Blocks != x.blocks || e.Estimate < .02 || e.Estimate > .04 || e.Lo <= 0 || e.Hi > .05 {
				t.Errorf("the effect is %+v", e)
			}
			if rep.AA == nil || !rep.AA.Reliable || len(rep.AA.Effects) == 0 {
				t.Errorf("A/A %+v", rep.AA)
			}
			if d := rep.Design; d.Turn != .05 || d.Rounds != 20 || d.Late != 0 || d.Dropped != 0 {
				t.Errorf("design %+v", d)
			}
			if rep.Verdict == report.Invalid {
				t.Errorf("invalid: %s", rep.Reason)
			}
		})
	}
}

// TestCarryoverIsSaid: an arm that slows the turn after its own is named, and no other one.
func TestCarryoverIsSaid(t *testing.T) {
	t.Parallel()
	for carry, want := range map[float64]bool{1.15: true, 0: false} {
		rep := analyzedRecord(t, turned{blocks: 20, factor: 1.03, carry: carry, seed: 5}.record(t))
		said := slices.ContainsFunc(rep.Warnings, func(w string) bool {
			return strings.Contains(w, "turns that follow those of on take +1")
		})
		if said != want {
			t.Errorf("carry-over %v: %q", carry, rep.Warnings)
		}
	}
}

// TestFirstCallsOfTurns are counted, and their times are not: they would be most of the 90th percentile.
func TestFirstCallsOfTurns(t *testing.T) {
	t.Parallel()
	rep := analyzedRecord(t, turned{blocks: 6, factor: 1, seed: 3}.record(t))
	all := uint64(6 * turnLayout.Rounds * callsPerTurn)
	for i := range rep.Operations {
		o := &rep.Operations[i]
		if o.Outcomes.OK != all || math.Abs(*o.Offered-200) > 1e-6 || math.Abs(*o.Goodput-200) > 1e-6 {
			t.Errorf("%s: %+v offered %v goodput %v", o.Treatment, o.Outcomes, *o.Offered, *o.Goodput)
		}
		if o.Response.N != all*9/10 || *o.Response.P90 > 3e-3 {
			t.Errorf("%s: %d response times, p90 %v", o.Treatment, o.Response.N, *o.Response.P90)
		}
	}
	for i := range rep.Treatments {
		for _, m := range rep.Treatments[i].Metrics {
			if m.Name == "cpu" && math.Abs(m.Value-1e-3) > 1e-9 {
				t.Errorf("%s: %v CPU-seconds a call", rep.Treatments[i].ID, m.Value)
			}
		}
	}
}

// TestDamagedTurns: overlapping turns, and turns outside of the window, have no calls, and nothing panics.
func TestDamagedTurns(t *testing.T) {
	t.Parallel()
	sec := time.Second
	for _, list := range [][]record.Turn{
		{{Start: 3 * sec, End: 2 * sec}, {Start: sec, End: 2 * sec}},
		{{Start: sec, End: 3 * sec}, {Start: 2 * sec, End: 4 * sec}},
		{{Start: 0, End: 2 * sec}, {Start: 9 * sec, End: 20 * sec}},
		{{Start: math.MinInt64, End: math.MaxInt64}},
	} {
		w := load.Segment{Start: sec, End: 10 * sec}
		x := turnsOf(&record.Trial{Window: &record.Window{Start: w.Start, End: w.End, Turns: list}}, w)
		last := time.Duration(0)
		for _, one := range x.list {
			if one.End < one.Start || one.Start < last {
				t.Errorf("%v are kept as %v", list, x.list)
			}
			last = one.End
		}
		for at := time.Duration(0); at < 12*sec; at += sec / 2 {
			if round, _, ok := x.of(at); ok && (at < sec || at >= 10*sec || round >= len(list)) {
				t.Errorf("%v is in round %d of %v", at, round, list)
			}
		}
	}
}

// TestTurnsBehind: a turn ends when its last call has ended, so that a target that does not keep up works off what had
// to wait between turns. What standing load would make worse is not decided by such turns.
func TestTurnsBehind(t *testing.T) {
	t.Parallel()
	budget := []string{
		"goodput >= 150/s", "goodput >= 50/s", "goodput >= -1%", "response.p50 <= 300ms at 200/s", "response.p50 <= 1ms",
		"response.p50 >= 5ms", "error <= 1%", "response <= +5%", "cpu <= 1s",
	}
	type verdicts []report.Verdict
	pass, fail, open := report.Pass, report.Fail, report.Inconclusive
	ms := time.Millisecond
	for name, x := range map[string]struct {
		factor  float64
		on, off time.Duration
		workers int
		want    verdicts
		goodput float64 // of on
	}{
		"a queue":         {1, 4 * ms, 4 * ms, 0, verdicts{pass, pass, pass, pass, fail, fail, pass, pass, pass}, 200},
		"long responses":  {40, 0, 0, 0, verdicts{pass, pass, pass, pass, fail, pass, pass, fail, pass}, 200},
		"on is behind":    {1, 10 * ms, 4 * ms, 0, verdicts{fail, open, fail, open, fail, pass, open, fail, pass}, 100},
		"both are behind": {1, 10 * ms, 8 * ms, 0, verdicts{fail, open, open, open, fail, pass, open, open, pass}, 100},
		"a closed loop":   {1, 10 * ms, 4 * ms, 1, verdicts{fail, pass, fail, pass, fail, pass, pass, fail, pass}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			run := turned{blocks: 12, factor: x.factor, slotOn: x.on, slotOff: x.off, workers: x.workers, seed: 7}
			run.budget = budget
			rep := analyzedRecord(t, run.record(t))
			var got verdicts
			for _, b := range rep.Budgets {
				got = append(got, b.Verdict)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("budgets %v, want %v: %+v", got, x.want, rep.Budgets)
			}
			slower := map[string]float64{"on is behind": 50, "both are behind": 50}[name] // half of what it did
			if math.Abs(rep.Design.SlowerRate-slower) > 10 {
				t.Errorf("%v/s is named as a rate that it keeps up with, want about %v/s", rep.Design.SlowerRate, slower)
			}
			for i := range rep.Operations {
				if o := &rep.Operations[i]; o.Treatment == "on" && math.Abs(*o.Goodput-x.goodput) > 1 {
					t.Errorf("goodput %v, want %v", *o.Goodput, x.goodput)
				}
			}
			for i := range rep.Effects {
				e := &rep.Effects[i]
				if open := e.Verdict == report.EffectInconclusive; e.Metric == "response" && open != (name == "both are behind") {
					t.Errorf("%s is %s: %s", nameOf(e), e.Verdict, e.Reason)
				}
			}
			said := strings.Contains(strings.Join(rep.Warnings, "\n"), "on: the target does not keep up with 200/s")
			if said != (x.goodput < 200 && x.workers == 0) {
				t.Errorf("warnings %q", rep.Warnings)
			}
		})
	}
}

// TestOtherToolsFormsWithFailedCalls: a form that other tools read has no time of calls of which many were refused at
// once, and says how many failed.
func TestOtherToolsFormsWithFailedCalls(t *testing.T) {
	t.Parallel()
	forms := func(refuse int) (lines, action string, hyperfine error) {
		rep := reportOf(t, turned{blocks: 10, factor: 1, refuse: refuse, seed: 5}.record(t))
		var b, a bytes.Buffer
		must(t, report.Benchfmt(&b, rep))
		must(t, report.ActionBenchmark(&a, rep))
		return b.String(), a.String(), report.Hyperfine(io.Discard, rep)
	}
	lines, action, err := forms(3)
	if strings.Contains(action, "response.p50 · on") || !strings.Contains(action, "error · on") || err == nil ||
		!strings.Contains(lines, "is left out: ") || !strings.Contains(lines, "error-ratio") {
		t.Errorf("a third failed: %v\n%s\n%s", err, lines, action)
	}
	for l := range strings.Lines(lines) {
		if strings.HasPrefix(l, "Benchmark") && strings.Contains(l, "=on ") && strings.Contains(l, " sec/op") {
			t.Errorf("a third failed: %s", l)
		}
	}
	lines, action, err = forms(500)
	if !strings.Contains(action, "response.p50 · on") || !strings.Contains(action, "error · on") || err != nil ||
		strings.Contains(lines, "is left out: ") {
		t.Errorf("1 of 500 failed: %v\n%s\n%s", err, lines, action)
	}
}
