package analyze

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/signature"
)

func analyzed(t *testing.T, dir string) *report.Report {
	t.Helper()
	rep := reportOf(t, opened(t, dir))
	var b bytes.Buffer
	for form, encode := range report.Encoders() {
		b.Reset()
		if err := encode(&b, rep); err != nil && !errors.Is(err, report.ErrNoBlocks) &&
			!errors.Is(err, report.ErrNoTimes) && !errors.Is(err, report.ErrFailedCalls) {
			t.Errorf("%s: %v", form, err)
		}
	}
	return rep
}

// measured is the report on the record of an experiment, a journal or an endurance.
func measured(t *testing.T, x interface {
	write(t *testing.T, dir string) string
},
) *report.Report {
	t.Helper()
	return analyzed(t, x.write(t, t.TempDir()))
}

// TestRecordsLoseNothing: what is computed from the record is what would have been computed during the run.
func TestRecordsLoseNothing(t *testing.T) {
	t.Parallel()
	tr := limitedTrace(1)
	live := capacity.Assess(tr)
	rep := measured(t, journal{})
	if len(rep.Capacity) != 1 {
		t.Fatalf("%d capacities", len(rep.Capacity))
	}
	want := capacityOf("default", &live, &tr)
	want.Limit, want.Failure = namesOf(&record.Trial{}, &live, &tr)
	if d := cmp.Diff(want, rep.Capacity[0]); d != "" {
		t.Errorf("live and from the record (-live +record):\n%s", d)
	}
	c := rep.Capacity[0]
	if !c.Broke || c.Rate == nil || *c.Rate < 145 || *c.Rate > 155 || c.Failure.Class != signature.TokenBucket {
		t.Errorf("capacity %+v", c)
	}
	if c.VerifiedLow == nil || *c.VerifiedLow != 147 || c.VerifiedHigh == nil || *c.VerifiedHigh != 153 {
		t.Errorf("verified %v %v", c.VerifiedLow, c.VerifiedHigh)
	}
}

// TestLimitNamesItsOperations: a limit that refuses calls of one operation only is one on that, by its name.
func TestLimitNamesItsOperations(t *testing.T) {
	t.Parallel()
	tr := limitedTrace(1)
	for i := range load.CallsOf(tr.Calls) {
		if c := &load.CallsOf(tr.Calls)[i]; c.Outcome != load.Refused && i%2 > 0 {
			c.Operation = 1
		}
	}
	res := capacity.Assess(tr)
	begin := record.TrialBegin{Operations: []string{"read", "write"}}
	v, _ := namesOf(&record.Trial{TrialBegin: begin}, &res, &tr)
	if !slices.Equal(v.Operations, []string{"read"}) || !strings.Contains(v.Name(), "on read") {
		t.Errorf("%s, of %q", v.Name(), v.Operations)
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	tr := limitedTrace(1)
	rep := measured(t, journal{})
	if len(rep.Operations) != 1 {
		t.Fatalf("operations %+v", rep.Operations)
	}
	op := rep.Operations[0]
	ok, refused := uint64(0), uint64(0)
	for _, c := range load.CallsOf(tr.Calls) {
		if c.Outcome == load.OK {
			ok++
		} else {
			refused++
		}
	}
	if d := cmp.Diff(report.Outcomes{OK: ok, Refused: refused}, op.Outcomes); d != "" {
		t.Errorf("outcomes (-want +got):\n%s", d)
	}
	total := 8.0 + 0.5 + 4 + 5 + 5
	if got, want := *op.Offered, float64(tr.Calls.Len())/total; got < want*0.999 || got > want*1.001 {
		t.Errorf("offered %v, want %v", got, want)
	}
	// Every call ended within 6 ms, so at most a few ended after the last step.
	if got, most := *op.Goodput, float64(ok)/total; got > most || got < most*0.995 {
		t.Errorf("goodput %v, want a little under %v", got, most)
	}
	if op.Response.N != uint64(tr.Calls.Len()) || *op.Response.P50 < 0.005 || *op.Response.P99 > 0.0062 ||
		op.Response.P999 == nil {
		t.Errorf("response %+v", op.Response)
	}
	if *op.BytesIn != 1000 || *op.BytesOut != 500 {
		t.Errorf("bytes %v %v", *op.BytesIn, *op.BytesOut)
	}
}

func TestTargetsAreDeltas(t *testing.T) {
	t.Parallel()
	rep := measured(t, journal{})
	i := slices.IndexFunc(rep.Target, func(x report.Target) bool { return x.Name == "endpoint" })
	if i < 0 {
		t.Fatalf("targets %+v", rep.Target)
	}
	x := rep.Target[i]
	if *x.CPUSeconds != 2.5 || *x.Throttled.Periods != 4 || *x.RSS.Before != 18e6 || *x.RSS.After != 41e6 ||
		x.RSS.Peak != nil {
		t.Errorf("endpoint %+v", x)
	}
	if want := 2.5 / float64(rep.Operations[0].Outcomes.Good()); *x.CPUPerOp != want {
		t.Errorf("CPU per operation %v, want %v", *x.CPUPerOp, want)
	}
	if _, there := x.Other["listen_overflows"]; there {
		t.Error("a counter without its value before is reported")
	}
	if !slices.ContainsFunc(rep.Warnings, func(s string) bool { return strings.Contains(s, "steal") }) {
		t.Errorf("5 %% of steal, and no warning: %q", rep.Warnings)
	}
}

func TestVerdictsAndExitCodes(t *testing.T) {
	t.Parallel()
	client := func(string) capacity.Trace {
		tr := limitedTrace(1)
		tr.Stop, tr.Reason = capacity.StopClient, "lateness p99 3 ms is above 1 ms"
		return tr
	}
	silent := func(string) capacity.Trace {
		tr := limitedTrace(1)
		tr.Steps, tr.Calls = tr.Steps[:1], load.CallsOf(tr.Calls)[:20]
		for i := range load.CallsOf(tr.Calls) {
			load.CallsOf(tr.Calls)[i].Outcome = load.Failed
		}
		no := false
		tr.Steps[0].Passed, tr.Recovery, tr.Stop, tr.Reason = &no, nil, capacity.StopNoAnswer, "no call was answered at 10/s"
		return tr
	}
	for name, c := range map[string]struct {
		j       journal
		verdict report.Verdict
		exit    int
	}{
		"no budget": {journal{}, report.None, 0},
		"kept":      {journal{budget: []string{"capacity >= 100/s"}}, report.Pass, 0},
		"broken":    {journal{budget: []string{"capacity >= 100/s", "capacity >= 200/s"}}, report.Fail, 10},
		"undecided": {journal{
			budget: []string{"capacity >= 100/s", "response.p99 <= 5.95ms at 10/s"},
		}, report.Inconclusive, 11},
		"not measured":   {journal{budget: []string{"capacity >= 100/s", "rss drift <= 1MiB/h"}}, report.Inconclusive, 11},
		"client limited": {journal{budget: []string{"capacity >= 100/s"}, trace: client}, report.Invalid, 12},
		"not in force": {journal{
			budget: []string{"capacity >= 100/s"}, unverified: true, status: record.Errored,
		}, report.Invalid, 13},
		"let pass":  {journal{budget: []string{"capacity >= 100/s"}, undecided: 1}, report.Invalid, 13},
		"no answer": {journal{trace: silent}, report.Inconclusive, 11},
		"interrupted": {journal{
			budget: []string{"capacity >= 100/s"}, status: record.Interrupted,
		}, report.Inconclusive, 130},
		"killed": {journal{killed: true}, report.Inconclusive, 130},
		"error":  {journal{status: record.Errored}, report.None, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rep := measured(t, c.j)
			if why := rep.Treatments[0].NotInForce; (why != "") != (c.j.unverified || c.j.undecided > 0) {
				t.Errorf("not in force: %q, want %v", why, c.j.unverified)
			}
			if rep.Verdict != c.verdict || ExitCode(rep) != c.exit || rep.Reason == "" {
				t.Errorf(
					"verdict %s (%s), exit %d, want %s and %d\nbudgets %+v", rep.Verdict, rep.Reason, ExitCode(rep), c.verdict, c.exit,
					rep.Budgets,
				)
			}
		})
	}
}

func TestPartialRecordsSaySo(t *testing.T) {
	t.Parallel()
	rep := measured(t, journal{killed: true, pending: true})
	if rep.Status != report.Killed || len(rep.Capacity) != 0 {
		t.Errorf("status %s, capacity %+v", rep.Status, rep.Capacity)
	}
	all := strings.Join(rep.Warnings, "\n")
	for _, want := range []string{
		"after 8 steps, the last of them confirm-low at 147/s", "1 change to the system still to be undone; run: tare undo",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning %q in:\n%s", want, all)
		}
	}
	rep = measured(t, journal{noCalls: true})
	if len(rep.Capacity) != 0 || !strings.Contains(strings.Join(rep.Warnings, "\n"), "raw calls are not in the record") {
		t.Errorf("without calls: %+v, %q", rep.Capacity, rep.Warnings)
	}
	if rep.Verdict != report.Inconclusive {
		t.Errorf("a complete run without its result is %s", rep.Verdict)
	}
}

// TestInterruptIsPlaced: an interrupt cuts the search short, or only what follows it.
func TestInterruptIsPlaced(t *testing.T) {
	t.Parallel()
	for stop, want := range map[capacity.Stop]string{
		capacity.StopCanceled: "the search was cut short: its result is what was known by then",
		capacity.StopFound:    "the search had ended, but not what follows it: what sets the rate is judged by 0 experiments",
	} {
		rep := measured(t, journal{status: record.Interrupted, trace: func(string) capacity.Trace {
			tr := limitedTrace(1)
			tr.Stop = stop
			return tr
		}})
		if len(rep.Capacity) != 1 || !slices.ContainsFunc(rep.Warnings, func(w string) bool {
			return strings.HasSuffix(w, want)
		}) {
			t.Errorf("%s: %q, want %q", stop, rep.Warnings, want)
		}
	}
}

func TestTornRecordStillReports(t *testing.T) {
	t.Parallel()
	dir := journal{budget: []string{"capacity >= 100/s"}}.write(t, t.TempDir())
	whole, err := os.ReadFile(filepath.Join(dir, record.JournalFile))
	must(t, err)
	for cut := len(whole); cut > 1000; cut -= 97 {
		must(t, os.WriteFile(filepath.Join(dir, record.JournalFile), whole[:cut], 0o600))
		rep := reportOf(t, opened(t, dir))
		if cut < len(whole)-1 && rep.Status != report.Killed {
			t.Fatalf("cut at %d of %d: status %s", cut, len(whole), rep.Status)
		}
	}
}

func TestGeneratorAudit(t *testing.T) {
	t.Parallel()
	late := func(n int, limited bool) func(string) capacity.Trace {
		return func(string) capacity.Trace {
			tr := limitedTrace(1)
			over := &tr.Steps[5]
			over.ClientLimited = limited
			for i := range load.CallsOf(tr.Calls) {
				if c := &load.CallsOf(tr.Calls)[i]; n > 0 && c.Intended >= over.Segment.Start && c.Intended < over.Segment.End {
					c.Sent += 5 * time.Millisecond
					c.FirstByte, c.Done = max(c.FirstByte, c.Sent+1), max(c.Done, c.Sent+2)
					n--
				}
			}
			return tr
		}
	}
	for name, c := range map[string]struct {
		trace func(string) capacity.Trace
		max   float64 // of the lateness
	}{
		"in time":                          {late(0, false), 25e-6},
		"late in a step that counts":       {late(200, false), 0.0051},
		"late in a step that was repeated": {late(200, true), 25e-6},
	} {
		rep := measured(t, journal{trace: c.trace})
		g := rep.Generator
		if g == nil || g.Lateness == nil || g.Lateness.P50 > 25e-6 || g.Lateness.Max > c.max || g.Lateness.Max < c.max/2 ||
			*g.AchievedRatio != 1 || *g.CPUSeconds != 0.94 {
			t.Errorf("%s: generator %+v, lateness %+v", name, g, g.Lateness)
		}
		if !g.Valid || strings.Contains(strings.Join(rep.Warnings, "\n"), "keep up") {
			t.Errorf("%s: a late tail is no generator that cannot keep up: %q", name, rep.Warnings)
		}
	}
}

func TestReportsKeepTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	for seed := range 3 {
		ids := []string{"d", "a", "c", "b"}
		slices.Reverse(ids[seed:])
		j := journal{trace: func(string) capacity.Trace { return ladderTrace(false, 0) }}
		for _, id := range ids {
			j.treatments = append(j.treatments, design.Treatment{ID: id})
		}
		rep := measured(t, j)
		var got []string
		for _, c := range rep.Capacity {
			got = append(got, c.Treatment)
		}
		if d := cmp.Diff(ids, got); d != "" {
			t.Errorf("order (-file +report):\n%s", d)
		}
	}
}

// TestHistogramsStandIn: without raw calls the counts and times of operations come from the histograms.
func TestHistogramsStandIn(t *testing.T) {
	t.Parallel()
	exact := measured(t, journal{}).Operations
	approx := measured(t, journal{noCalls: true}).Operations
	if len(approx) != 1 {
		t.Fatalf("operations %+v", approx)
	}
	if d := cmp.Diff(exact[0].Outcomes, approx[0].Outcomes); d != "" {
		t.Errorf("outcomes (-calls +histograms):\n%s", d)
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 0.004*max(a, b)+1e-6 })
	if d := cmp.Diff(exact[0].Response, approx[0].Response, near); d != "" {
		t.Errorf("response (-calls +histograms):\n%s", d)
	}
	if approx[0].Offered != nil {
		t.Errorf("a rate from histograms: %v", *approx[0].Offered)
	}
}

func TestUnknownQuestionsAreRefused(t *testing.T) {
	t.Parallel()
	w, err := record.Create(t.TempDir(), record.Header{Question: "why"}, nil, clock.NewFake(epoch))
	must(t, err)
	must(t, w.TrialBegin(record.TrialBegin{Trial: design.Trial{Treatment: "x"}}), w.Close())
	r, err := record.Open(w.Dir())
	must(t, err)
	if _, err := Analyze(r, Options{}); err == nil || !strings.Contains(err.Error(), `question "why"`) {
		t.Errorf("error %v", err)
	}
}

// TestTimelineLosesNoCall: the bins together hold every call once, whatever their length.
func TestTimelineLosesNoCall(t *testing.T) {
	t.Parallel()
	tr := limitedTrace(3)
	line := timeline("a", &tr)
	n := len(line.Offered)
	if n < 50 || n > maxBins+1 {
		t.Errorf("%d bins of %v s", n, line.Bin)
	}
	sum := func(x []float64) (s float64) {
		for _, v := range x {
			s += v * line.Bin
		}
		return s
	}
	good, bad := 0, 0
	for _, c := range load.CallsOf(tr.Calls) {
		if c.Outcome.Good() {
			good++
		} else {
			bad++
		}
	}
	for _, x := range []struct {
		name   string
		values []float64
		want   int
	}{
		{"offered", line.Offered, tr.Calls.Len()},
		{"sent", line.Sent, tr.Calls.Len()},
		{"good", line.Good, good},
		{"bad", line.Bad, bad},
	} {
		if got := sum(x.values); math.Abs(got-float64(x.want)) > 1e-6 {
			t.Errorf("%s: %v calls in the bins, want %d", x.name, got, x.want)
		}
	}
	if last := line.Outstanding[n-1]; last != 0 {
		t.Errorf("%v calls are outstanding at the end, and all have ended", last)
	}
	for i := range n {
		if (line.P50[i] != nil) != (line.Good[i] > 0) {
			t.Errorf("bin %d: p50 %v with %v good calls a second", i, line.P50[i], line.Good[i])
		}
	}
	if len(line.Steps) != len(tr.Steps)+1 || line.Steps[0].From != 0 || line.Steps[5].Rate != 195 {
		t.Errorf("steps %+v", line.Steps)
	}
	if len(line.Marks) != 2 || line.Marks[0].At < 8 || line.Marks[0].At > 8.5 {
		t.Errorf(
			"marks %+v, want the first refused call in the step at 160/s, which begins at 8 s, and the recovery", line.Marks,
		)
	}
}

func TestTimelineKeepsWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	tr := capacity.Trace{
		Read: 10 * time.Second,
		Steps: []capacity.Step{
			{Role: capacity.RolePoint, Rate: 1, Segment: load.Segment{Start: time.Second, End: 5 * time.Second}},
		},
	}
	for i := range 4 {
		tr.Calls = append(load.CallsOf(tr.Calls), load.Call{
			Intended: time.Duration(i+1) * time.Second, Sent: time.Duration(i+1) * time.Second,
		})
	}
	line := timeline("a", &tr)
	if got := line.Outstanding[len(line.Outstanding)-1]; got != 4 {
		t.Errorf("%v calls are outstanding at the end, want 4", got)
	}
	if timeline("a", &capacity.Trace{}) != nil {
		t.Error("a trace without steps has a timeline")
	}
}

func TestBinsAreRound(t *testing.T) {
	t.Parallel()
	for total, want := range map[time.Duration]time.Duration{
		0: 200 * time.Millisecond, 80 * time.Second: 200 * time.Millisecond, 81 * time.Second: 500 * time.Millisecond,
		5 * time.Minute: time.Second, 10 * time.Minute: 2 * time.Second, 24 * time.Hour: 500 * time.Second,
	} {
		if got := binOf(total); got != want {
			t.Errorf("%v: bins of %v, want %v", total, got, want)
		}
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	own := []string{"the token has expired"}
	m := causes{}
	for _, c := range []load.Call{
		{Outcome: load.OK, Status: 200},
		{Outcome: load.Denied, Status: 403},
		{Outcome: load.Refused, Status: 429},
		{Outcome: load.Refused, Status: 429},
		{Outcome: load.Wrong, Status: 200, Cause: load.OwnCauses},
		{Outcome: load.Wrong, Status: 302, Cause: load.CauseRedirect},
		{Outcome: load.ConnFailed, Errno: uint16(syscall.ECONNREFUSED)},
		{Outcome: load.ConnFailed, Errno: uint16(syscall.ECONNABORTED)},
		{Outcome: load.Timeout},
		{Outcome: load.Timeout, Sent: 1},
		{Outcome: load.Timeout, Sent: 1, FirstByte: 2},
		{Outcome: load.Failed},
	} {
		m.add(&c, own)
	}
	want := []report.Cause{
		{Outcome: "refused", Cause: "status 429 Too Many Requests", Calls: 2},
		{Outcome: "conn_failed", Cause: "connection refused", Calls: 1},
		{Outcome: "conn_failed", Cause: "given up by the generator at the end of a step", Calls: 1},
		{Outcome: "failed", Cause: "not known", Calls: 1},
		{Outcome: "timeout", Cause: "no byte of an answer came before the timeout", Calls: 1},
		{Outcome: "timeout", Cause: "no connection became free before the timeout", Calls: 1},
		{Outcome: "timeout", Cause: "the answer did not end before the timeout", Calls: 1},
		{Outcome: "wrong", Cause: "status 302 Found: the answer is a redirect, which is not followed", Calls: 1},
		{Outcome: "wrong", Cause: "the token has expired", Calls: 1},
	}
	if d := cmp.Diff(want, m.list()); d != "" {
		t.Errorf("causes (-want +got):\n%s", d)
	}
}
