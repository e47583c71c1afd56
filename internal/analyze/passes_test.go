package analyze

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

// These tests hold reports of runs that failed halfway to docs/reference/passes.md: what was not seen is not said.

// passes returns every way in which a report says that a run passed.
func passes(t *testing.T, rep *report.Report) (said []string) {
	t.Helper()
	add := func(is bool, what string) {
		if is {
			said = append(said, what)
		}
	}
	add(rep.Verdict == report.Pass, "verdict pass")
	add(ExitCode(rep) == ExitPass, "exit code 0")
	forms := map[string]string{}
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"junit": func(b *bytes.Buffer) error { return report.JUnit(b, rep) },
		"sarif": func(b *bytes.Buffer) error { return report.SARIF(b, rep) },
		"text":  func(b *bytes.Buffer) error { return report.Text(b, rep) },
	} {
		var b bytes.Buffer
		must(t, encode(&b))
		forms[name] = b.String()
	}
	add(!strings.Contains(forms["junit"], "<failure") && !strings.Contains(forms["junit"], "<error") &&
		!strings.Contains(forms["junit"], "<skipped"), "green JUnit")
	add(strings.Contains(forms["sarif"], `"results": []`), "empty SARIF")
	add(verdictLine.MatchString(forms["text"]), "a verdict in the text")
	return said
}

var verdictLine = regexp.MustCompile(`(?m)^(verdict|soak) +✓ pass`)

// kept are the budgets that a report calls kept.
func kept(rep *report.Report) (texts []string) {
	for i := range rep.Budgets {
		if rep.Budgets[i].Verdict == report.Pass {
			texts = append(texts, rep.Budgets[i].Text)
		}
	}
	return texts
}

// earnsNothing fails if the report says that the run passed, or that one of the budgets was kept.
func earnsNothing(t *testing.T, name string, rep *report.Report, budgets ...string) {
	t.Helper()
	if said := passes(t, rep); len(said) > 0 {
		t.Errorf("%s: %q; verdict %s (%s), status %s", name, said, rep.Verdict, rep.Reason, rep.Status)
	}
	for _, text := range kept(rep) {
		if slices.Contains(budgets, text) {
			t.Errorf("%s: %s is called kept: %+v", name, text, *budgetOf(t, rep, text))
		}
	}
}

// stops are all ways in which a search ends.
func stops(t *testing.T) (all []capacity.Stop) {
	t.Helper()
	source, err := os.ReadFile("../capacity/trace.go")
	must(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\tStop\w+ +Stop += "([a-z-]+)"`).FindAllSubmatch(source, -1) {
		all = append(all, capacity.Stop(m[1]))
	}
	if len(all) < 10 {
		t.Fatalf("found the ways to end %q", all)
	}
	return all
}

// first keeps the first steps of a search, and the calls that were due in them.
func first(tr capacity.Trace, steps int) capacity.Trace {
	tr.Steps = tr.Steps[:steps]
	end := time.Duration(0)
	if steps > 0 {
		end = tr.Steps[steps-1].Segment.End
	}
	tr.Calls = slices.DeleteFunc(load.CallsOf(tr.Calls), func(c load.Call) bool { return c.Intended >= end })
	tr.Read, tr.Recovery = end+3*time.Second, nil
	return tr
}

// dying makes every call that is due from an instant on fail: nothing listens any more.
func dying(tr capacity.Trace, from time.Duration) capacity.Trace {
	calls := load.CallsOf(tr.Calls)
	for i := range calls {
		if c := &calls[i]; c.Intended >= from {
			c.Outcome, c.Status, c.FirstByte, c.Sent, c.Done = load.ConnFailed, 0, 0, 0, c.Ready+time.Millisecond
		}
	}
	tr.Calls = calls
	no := false
	for i := range tr.Steps {
		if s := &tr.Steps[i]; s.Segment.End > from && s.Passed != nil {
			s.Passed = &no
		}
	}
	tr.Recovery = nil
	return tr
}

// answered is the highest rate at which a target answered, over all steps that offered at least a rate.
func answered(tr capacity.Trace, from float64) (best float64) {
	for _, s := range tr.Steps {
		if s.Rate < from {
			continue
		}
		n := 0
		for c := range tr.Calls.Due(s.Segment.Start, s.Segment.End) {
			if c.Outcome == load.OK && c.Done != 0 {
				n++
			}
		}
		best = max(best, float64(n)/s.Length().Seconds())
	}
	return best
}

// TestHalfSearchesEarnNothing: a search that ends in any way, after any step, of a target that lives or dies, states no
// rate that its calls do not show, and keeps no budget that they do not.
func TestHalfSearchesEarnNothing(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	const atLeast, quick, sound = "capacity >= 100/s", "response.p99 <= 500ms at 60/s", "error <= 1% at 60/s"
	passed := 0
	for _, stop := range stops(t) {
		for _, steps := range []int{0, 1, 4, 5, 6, 8} { // the last: all
			for _, dies := range []bool{false, true} {
				tr := first(limitedTrace(1), steps)
				if dies && steps > 0 {
					tr = dying(tr, tr.Steps[steps-1].Segment.Start)
				}
				tr.Stop, tr.Reason = stop, "the search ended here"
				j := journal{budget: []string{atLeast, quick, sound}, trace: func(string) capacity.Trace { return tr }}
				if stop == capacity.StopCanceled {
					j.status = record.Interrupted
				}
				r, err := record.Open(j.write(t, t.TempDir()))
				must(t, err)
				rep, err := Analyze(r, Options{})
				if err != nil {
					continue // the trace contradicts itself, and that is said
				}
				name := string(stop) + " after " + string(rune('0'+steps)) + " steps"
				if dies {
					name += " of a target that died"
				}
				said := passes(t, rep)
				at60 := answered(tr, 60) >= 57
				checkSearch(t, name, rep, tr, said, map[string]bool{atLeast: answered(tr, 100) >= 95, quick: at60, sound: at60})
				passed += len(said)
				if len(said) > 0 && (steps < 2 || stop == capacity.StopCanceled || dies && steps < 8) {
					t.Errorf("%s: %q; verdict %s (%s), status %s", name, said, rep.Verdict, rep.Reason, rep.Status)
				}
			}
		}
	}
	if passed == 0 {
		t.Error("not even a search that came to its end passes")
	}
}

// checkSearch compares what is said of a search with what its calls show.
func checkSearch(
	t *testing.T, name string, rep *report.Report, tr capacity.Trace, said []string, earned map[string]bool,
) {
	t.Helper()
	for _, text := range kept(rep) {
		if !earned[text] {
			t.Errorf("%s: %s is called kept: %+v", name, text, *budgetOf(t, rep, text))
		}
	}
	if len(said) > 0 && len(kept(rep)) < len(rep.Budgets) {
		t.Errorf("%s: %q, and only %q were kept", name, said, kept(rep))
	}
	for i := range rep.Capacity {
		c := &rep.Capacity[i]
		for what, rate := range map[string]*float64{"at least": c.AtLeast, "holds": c.VerifiedLow, "objective": c.SLORate} {
			if rate != nil && answered(tr, 0.95**rate) < 0.9**rate {
				t.Errorf("%s: %s %v, and no more than %v were answered", name, what, *rate, answered(tr, 0))
			}
		}
		if c.Recovery != "" && tr.Recovery == nil {
			t.Errorf("%s: %q, and nobody looked", name, c.Recovery)
		}
	}
}

// TestHalfSoaksEarnNothing: a soak that was cut short, or whose target died or was never proved to be in force.
func TestHalfSoaksEarnNothing(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	const quick, sound, small = "response.p99 <= 50ms", "error <= 1%", "rss <= 100MiB"
	budgets := []string{quick, sound, small}
	for name, c := range map[string]struct {
		soak   endurance
		broken []string // budgets of these that must not be called kept
	}{
		"killed":              {soak: endurance{planned: 240, killed: true}, broken: budgets},
		"interrupted":         {soak: endurance{planned: 240, status: record.Interrupted}, broken: budgets},
		"ended in an error":   {soak: endurance{planned: 240, status: record.Errored}, broken: budgets},
		"died after a third":  {soak: endurance{outage: [2]float64{100, 200}, refused: true}, broken: []string{sound}},
		"slowly dead":         {soak: endurance{outage: [2]float64{100, 200}}, broken: []string{sound}},
		"dead from the start": {soak: endurance{outage: [2]float64{0, 200}, refused: true}, broken: budgets},
		"not in force":        {soak: endurance{unverified: true}},
		"without probes":      {soak: endurance{noProbes: true}, broken: []string{small}},
		"generator behind":    {soak: endurance{open: true, unsent: 0.3}},
	} {
		c.soak.budget, c.soak.measured = budgets, 120
		earnsNothing(t, name, measured(t, c.soak), c.broken...)
	}
	if said := passes(t, measured(t, endurance{budget: budgets, measured: 120})); len(said) < 5 {
		t.Errorf("of a soak that came to its end: only %q", said)
	}
}

// TestHalfComparisonsEarnNothing: comparisons that were cut short, spoiled, or have too few blocks to show anything.
func TestHalfComparisonsEarnNothing(t *testing.T) {
	t.Parallel()
	const cheap = "cpu <= +5%"
	for name, x := range map[string]experiment{
		"one block":      {blocks: 1},
		"two blocks":     {blocks: 2},
		"four blocks":    {blocks: 4},
		"killed":         {blocks: 20, end: "killed"},
		"interrupted":    {blocks: 20, end: record.Interrupted},
		"in an error":    {blocks: 20, end: record.Errored},
		"all dropped":    {blocks: 20, drop: func(string, int) bool { return true }},
		"half dropped":   {blocks: 8, drop: func(_ string, block int) bool { return block >= 3 }},
		"costs too much": {blocks: 20, cost: slower(1.31)},
		"unblocked":      {blocks: 4, unblocked: true},
	} {
		x.budget, x.seed = []string{cheap}, 3
		rep := measured(t, x)
		if strings.HasSuffix(name, "blocks") || strings.HasSuffix(name, "dropped") || name == "costs too much" {
			earnsNothing(t, name, rep, cheap)
		} else {
			earnsNothing(t, name, rep)
		}
		for i := range rep.Effects {
			if e := &rep.Effects[i]; e.Verdict == report.Equivalent && (len(blocksOf(rep)) < 5 || x.unblocked || x.cost != nil) {
				t.Errorf("%s: %s is called equivalent: %+v", name, nameOf(e), *e)
			}
		}
	}
}

// blocksOf returns the numbers of the blocks that a comparison rests on.
func blocksOf(rep *report.Report) []int {
	if rep.Design == nil {
		return nil
	}
	return make([]int, rep.Design.Blocks)
}

// A guarding makes records of guards whose truth is known: a control that is asked at some rates for twenty
// seconds each.
type guarding struct {
	rates     []float64
	given     bool    // the file lists the rates
	serves    float64 // calls a second that are served at most, the others are shed; 0: all
	permitted float64 // share of the trespasses
	late      time.Duration
	status    record.Status
	killed    bool
	cut       bool // at the end it is cut off for nine of twenty seconds, and answers nothing meanwhile
}

// TestHalfGuardsEarnNothing: a guard passes only a control that it overloaded, or asked at the rates that the file
// calls enough.
func TestHalfGuardsEarnNothing(t *testing.T) {
	t.Parallel()
	const none = "permitted <= 0"
	slow, fast := []float64{1.25, 2.5, 5, 10, 20}, []float64{100, 200, 400, 800}
	for name, c := range map[string]struct {
		guard  guarding
		passes bool
	}{
		"no point":                   {guarding{}, false},
		"the search died":            {guarding{rates: slow}, false},
		"nothing degraded":           {guarding{rates: fast}, false},
		"few calls beyond":           {guarding{rates: []float64{1, 2, 4}, serves: 2}, false},
		"overloaded":                 {guarding{rates: fast, serves: 150}, true},
		"overloaded, and permits":    {guarding{rates: fast, serves: 150, permitted: 0.005}, false},
		"overloaded, killed":         {guarding{rates: fast, serves: 150, killed: true}, false},
		"overloaded, interrupted":    {guarding{rates: fast, serves: 150, status: record.Interrupted}, false},
		"the generator could not":    {guarding{rates: fast, serves: 150, late: 80 * time.Millisecond}, false},
		"at the rates that it names": {guarding{rates: fast, given: true}, true},
	} {
		rep := analyzed(t, c.guard.write(t, none))
		if c.passes {
			if said := passes(t, rep); len(said) < 5 {
				t.Errorf("%s: only %q: %s, %s", name, said, rep.Verdict, rep.Reason)
			}
			continue
		}
		earnsNothing(t, name, rep)
		if !c.guard.killed && c.guard.status == "" {
			earnsNothing(t, name, rep, none)
		}
	}
}

func (x guarding) write(t *testing.T, budget string) string {
	t.Helper()
	clk := clock.NewFake(epoch)
	w, err := record.Create(t.TempDir(), record.Header{
		Tool: record.Tool{Version: "0.2.0"}, Experiment: record.Experiment{Name: "guarded", File: "guarded.yaml"},
		Area: "turnpike", Question: design.Guard,
	}, []byte("name: guarded\narea: turnpike\nquestion: guard\n"), clk)
	must(t, err)
	trial := design.Trial{Treatment: "default", Block: 1}
	plan := record.Plan{
		Treatments: []design.Treatment{{ID: "default"}}, Trials: []design.Trial{trial}, Budget: []string{budget},
		Load: record.Load{Engine: "fast", Arrivals: "constant", Timeout: 5},
	}
	if x.given {
		plan.Load.Rates = x.rates
	}
	must(t, w.Plan(plan), w.Prepare(record.Prepare{Treatment: trial.Treatment, Seconds: 0.1}),
		w.Verify(record.Verify{Treatment: trial.Treatment, OK: true}), w.TrialBegin(record.TrialBegin{
			Trial: trial, Operations: []string{"token", "forged"}, Twins: map[string]string{"forged": "token"},
		}))
	now, calls := time.Duration(0), []load.Call(nil)
	for _, rate := range x.rates {
		p, its := x.point(rate, now)
		now, calls = p.Read, append(calls, its...)
		must(t, w.Step(trial.Treatment, trial.Block, guard.StepPoint, p))
	}
	if x.cut {
		p, its := x.point(100, now)
		now, calls = p.Read, append(calls, cutOff(&p, its)...)
		must(t, w.Step(trial.Treatment, trial.Block, guard.StepPoint, p))
	}
	must(t, w.Calls(trial.Treatment, trial.Block, calls), w.Cells(trial.Treatment, trial.Block, cells(calls)))
	if x.given {
		must(t, w.Step(trial.Treatment, trial.Block, "guard-end", map[string]any{"stop": "rates", "given": true}))
	}
	if !x.killed {
		must(t, w.TrialEnd(record.TrialEnd{Treatment: trial.Treatment, Block: trial.Block, Status: record.Complete}))
		status := x.status
		if status == "" {
			status = record.Complete
		}
		must(t, w.Finish(record.Finish{Status: status, Seconds: now.Seconds()}))
	}
	must(t, w.Close())
	return w.Dir()
}

// point offers a rate for twenty seconds. Every fifth call is a trespass.
func (x guarding) point(rate float64, from time.Duration) (guard.Point, []load.Call) {
	const length = 20 * time.Second
	var calls []load.Call
	free, trespasses := from, 0.0
	n := int(rate * length.Seconds())
	for i := range n {
		c := load.Call{Conn: 1, Intended: from + time.Duration(float64(i)/rate*1e9), Outcome: load.OK, Status: 200}
		c.Ready = c.Intended + 1
		c.Sent = c.Ready + 1 + x.late
		c.Done = c.Sent + 5*time.Millisecond
		sheds := x.serves > 0 && free > c.Sent+50*time.Millisecond
		if x.serves > 0 && !sheds {
			free = max(free, c.Sent) + time.Duration(1e9/x.serves)
			c.Done = free
		}
		if i%5 == 4 {
			trespasses++
			c.Operation, c.Outcome, c.Status = 1, load.Denied, 403
			if int(trespasses*x.permitted) > int((trespasses-1)*x.permitted) {
				c.Outcome, c.Status = load.Permitted, 200
			}
		}
		if sheds {
			c.Outcome, c.Status = load.Refused, 503
		}
		c.FirstByte = c.Done
		calls = append(calls, c)
	}
	end := from + length
	return guard.Point{
		Name: "point", Rate: rate, Read: end + 6*time.Second,
		Segment: load.Segment{Start: from, End: end, Offered: n, Sent: n},
	}, calls
}

// cutOff gives a point the condition partition, from its second to its eleventh second. What is due meanwhile is not
// answered.
func cutOff(p *guard.Point, calls []load.Call) []load.Call {
	begun := p.Segment.Start + 2*time.Second
	c := guard.Condition{Name: "partition", Begun: begun, Imposed: begun + time.Millisecond, Ended: begun + 9*time.Second}
	p.Name, p.Condition = c.Name, &c
	for i := range calls {
		if call := &calls[i]; call.Intended >= c.Begun && call.Intended < c.Ended {
			call.Outcome, call.Status, call.FirstByte, call.Done = load.Timeout, 0, 0, call.Sent+5*time.Second
		}
	}
	return calls
}

// TestSilenceIsNoRefusal: of a control that answered nothing while it was cut off, the report says that, and does not
// say that it refused anything then, although it decided most trespasses of that point.
func TestSilenceIsNoRefusal(t *testing.T) {
	t.Parallel()
	rep := analyzed(t, guarding{rates: []float64{100, 200, 400, 800}, serves: 150, cut: true}.write(t, "permitted <= 0"))
	var b bytes.Buffer
	must(t, report.Text(&b, rep))
	text := strings.Join(strings.Fields(b.String()), " ")
	for said, want := range map[string]bool{
		"permitted under partition":                     false,
		"no trespass was permitted after partition":     true,
		"while partition (0 of 180 trespasses decided)": true,
	} {
		if strings.Contains(text, said) != want {
			t.Errorf("the report says %q: %v, want %v\n%s", said, !want, want, b.String())
		}
	}
	limit := budgetOf(t, rep, "permitted <= 0")
	if limit.Verdict == report.Pass && !strings.Contains(limit.Reason, "while partition") {
		t.Errorf("passed without a word of the silence: %s", limit.Reason)
	}
}

// TestTruncatedRecordsEarnNothing: a record of any question that ends before its last line is one of a run that was
// killed, wherever it ends.
func TestTruncatedRecordsEarnNothing(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"search":  journal{budget: []string{"capacity >= 100/s"}}.write(t, t.TempDir()),
		"soak":    endurance{measured: 60, warm: 10, budget: []string{"error <= 1%"}}.write(t, t.TempDir()),
		"compare": experiment{blocks: 10, seed: 2, budget: []string{"cpu <= +5%"}}.write(t, t.TempDir()),
		"guard":   guarding{rates: []float64{100, 200, 400}, serves: 150}.write(t, "permitted <= 0"),
	} {
		if said := passes(t, analyzed(t, dir)); len(said) < 5 && name != "guard" {
			t.Errorf("%s: the whole record passes, and only %q says so", name, said)
		}
		file := filepath.Join(dir, record.JournalFile)
		text, err := os.ReadFile(file)
		must(t, err)
		lines := bytes.SplitAfter(text, []byte("\n"))
		for n := len(lines) - 2; n > 0; n -= max(1, len(lines)/25) {
			part := bytes.Join(lines[:n], nil)
			must(t, os.WriteFile(file, part, 0o600))
			r, err := record.Open(dir)
			if err != nil {
				continue // there is nothing to report on, and that is said
			}
			rep, err := Analyze(r, Options{})
			if err != nil {
				continue
			}
			earnsNothing(t, name, rep)
		}
	}
}
