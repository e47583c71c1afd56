package analyze

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/signature"
)

// calm is the effort of a generator of one event loop that had time to spare.
func calm(change func(*load.Effort)) *load.Effort {
	queued := 0.001
	e := &load.Effort{
		Seconds: 600, Busy: 0.05, Queued: &queued, Loops: 1, Unread: &load.Delays{N: 7500, Mean: 30e-6, P99: 120e-6}, CPU: 60,
		Host: &load.Processors{All: 1200, Busy: 400},
	}
	change(e)
	return e
}

var (
	sameHost = &record.Placement{Generator: []int{0, 1}, Local: true}
	apart    = &record.Placement{Generator: []int{0}, Local: true, Target: []int{1}}
)

// TestCallsInProgressAreOfTurns: of a closed loop whose treatments take turns, the time between the turns is not the
// generator's.
func TestCallsInProgressAreOfTurns(t *testing.T) {
	t.Parallel()
	const calls, each = 98, 10 * time.Millisecond
	for _, c := range []struct {
		turns []record.Turn
		doubt bool
	}{
		{[]record.Turn{{Start: time.Second, End: 2 * time.Second}}, false},
		{[]record.Turn{{Start: 0, End: time.Second}, {Start: time.Second, End: 2 * time.Second}}, true},
		{nil, true},
	} {
		trial := &record.Trial{
			Window: &record.Window{End: 3 * time.Second, Turns: c.turns}, Generator: []record.Generator{{
				Workers: 1, Effort: calm(func(e *load.Effort) { e.Busy = .01 }), Placement: sameHost,
			}},
		}
		g := newGathering(trial, load.Segment{End: 3 * time.Second})
		g.answered, g.seconds = calls, calls*each.Seconds()
		a := &analysis{rec: new(record.Record)}
		var responses hist.Sorter
		for range calls {
			responses.Add(int64(each))
		}
		o := a.trialOpinion(trial, g, durations{responses.Sorted()}, &audited{Valid: true})
		if doubt := strings.Contains(strings.Join(o.Doubts, ""), "calls in progress"); doubt != c.doubt {
			t.Errorf("%v: %v", c.turns, o)
		}
	}
}

// TestClosedSoaks: a closed loop is cleared by what its threads did, and never by its lateness.
func TestClosedSoaks(t *testing.T) {
	t.Parallel()
	full := calm(func(e *load.Effort) { e.Host.Busy = 1190 })
	for _, c := range []struct {
		name      string
		effort    *load.Effort
		placement *record.Placement
		want      signature.GeneratorVerdict
		verdict   report.Verdict
		warning   string
	}{
		{"time to spare", calm(func(*load.Effort) {}), sameHost, signature.RuledOut, report.None, ""},
		{
			"most calls wait for it", calm(func(e *load.Effort) { e.Busy, e.Unread.Mean = 1, 6e-3 }), sameHost,
			signature.Limiting, report.Invalid, "",
		},
		{
			"its thread runs all the time", calm(func(e *load.Effort) { e.Busy = 1 }), sameHost, signature.Possible, report.None,
			"ran 100 % of the time",
		},
		{"full processors", full, sameHost, signature.Possible, report.None, "`pin: {generator"},
		{"full processors of its own", full, apart, signature.RuledOut, report.None, ""},
		{
			"full processors, and the target is elsewhere", full, &record.Placement{Generator: []int{0, 1}}, signature.RuledOut,
			report.None, "",
		},
		{"an older record", nil, nil, signature.Possible, report.None, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := measured(t, endurance{effort: c.effort, placement: c.placement, warm: 2, measured: 60})
			g := rep.Generator
			if g.Verdict != c.want || g.Valid != (c.want != signature.Limiting) || rep.Verdict != c.verdict ||
				g.RuledOut() != (c.want == signature.RuledOut) {
				t.Errorf("%+v, verdict %s (%s)", g, rep.Verdict, rep.Reason)
			}
			if g.Lateness != nil || g.AchievedRatio != nil {
				t.Errorf("a closed loop is said to send in time: %+v", g)
			}
			about := slices.IndexFunc(rep.Warnings, func(s string) bool {
				return strings.Contains(s, "the generator cannot be ruled out")
			})
			if (about >= 0) != (c.warning != "") || about >= 0 && !strings.Contains(rep.Warnings[about], c.warning) {
				t.Errorf("warnings %q, want %q", rep.Warnings, c.warning)
			}
		})
	}
}

// TestSharedSearches: where generator and target share processors that are full at the capacity, it is that of both.
// What is full only at rates far from it does not matter.
func TestSharedSearches(t *testing.T) {
	t.Parallel()
	traced := func(full func(capacity.Step) bool) func(string) capacity.Trace {
		return func(string) capacity.Trace {
			tr := limitedTrace(3)
			for i := range tr.Steps {
				s := &tr.Steps[i]
				sec := s.Length().Seconds()
				s.Segment.Effort = calm(func(e *load.Effort) {
					e.Seconds, e.CPU, e.Unread, e.Host = sec, 0.4*sec, nil, &load.Processors{All: 2 * sec, Busy: sec}
					if full(*s) {
						e.Host.Busy = 1.97 * sec
					}
				})
			}
			return tr
		}
	}
	for _, c := range []struct {
		name      string
		full      func(capacity.Step) bool
		placement *record.Placement
		want      signature.GeneratorVerdict
	}{
		{"full", func(capacity.Step) bool { return true }, sameHost, signature.Possible},
		{"full, and apart", func(capacity.Step) bool { return true }, apart, signature.RuledOut},
		{"never full", func(capacity.Step) bool { return false }, sameHost, signature.RuledOut},
		{"full while it was idle", func(s capacity.Step) bool { return s.Rate < 50 }, sameHost, signature.RuledOut},
		{
			"full while it was confirmed", func(s capacity.Step) bool { return s.Role == capacity.RoleConfirmLow }, sameHost,
			signature.Possible,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := measured(t, journal{trace: traced(c.full), placement: c.placement})
			if g := rep.Generator; g.Verdict != c.want || !g.Valid || g.Lateness == nil {
				t.Errorf("%+v", g)
			}
		})
	}
}

// TestLateSearches: a generator that sent calls late is not ruled out where a rate broke in that time, unless the
// target is a limiter that saves up. A rate that held, held all the same.
func TestLateSearches(t *testing.T) {
	t.Parallel()
	const late, turn = time.Second, time.Second / 150
	for _, c := range []struct {
		role  capacity.Role
		queue bool
		want  signature.GeneratorVerdict
	}{
		{capacity.RoleConfirmHigh, true, signature.Possible},
		{capacity.RoleConfirmLow, true, signature.RuledOut},
		{capacity.RoleConfirmHigh, false, signature.RuledOut},
	} {
		rep := measured(t, journal{placement: sameHost, trace: func(string) capacity.Trace {
			tr := limitedTrace(3)
			for i := range tr.Steps {
				s := &tr.Steps[i]
				sec := s.Length().Seconds()
				s.Segment.Effort = calm(func(e *load.Effort) { e.Seconds, e.Unread = sec, nil })
				for k, calls := 0, load.CallsOf(tr.Calls); k < len(calls) && s.Role == c.role; k++ {
					x := &calls[k]
					if k%20 == 0 && x.Intended >= s.Segment.Start && x.Intended < s.Segment.End {
						x.Sent, x.FirstByte, x.Done = x.Sent+late, x.FirstByte+late, x.Done+late
					}
				}
			}
			for k, calls, next := 0, load.CallsOf(tr.Calls), time.Duration(0); k < len(calls) && c.queue; k++ {
				x := &calls[k]
				next = max(next, x.Intended) + turn
				x.Outcome, x.Status, x.FirstByte, x.Done = load.OK, 200, max(next, x.Sent), max(next, x.Sent)+1000
			}
			return tr
		}})
		if g := rep.Generator; g.Verdict != c.want || !g.Valid {
			t.Errorf("late in %s, a queue %t: %+v", c.role, c.queue, g)
		}
	}
}

// ladderTrace has a point for each lateness: 200 calls in 2 s, each sent so late, and answered after 1 ms; every tenth
// of a late point with an error if fails is set.
func ladderTrace(fails bool, late ...time.Duration) capacity.Trace {
	tr := capacity.Trace{Timeout: time.Second, Stop: capacity.StopLadder}
	now := time.Duration(0)
	for i, by := range late {
		s := capacity.Step{
			Role: capacity.RolePoint, Rate: 100, Attempt: i + 1,
			Segment: load.Segment{Start: now, End: now + 2*time.Second, Offered: 200, Sent: 200},
		}
		for k := range 200 {
			c := load.Call{Conn: 1, Intended: now + time.Duration(k)*10*time.Millisecond, Status: 200}
			c.Ready = c.Intended + 1
			c.Sent = c.Ready + by
			c.FirstByte = c.Sent + time.Millisecond
			c.Done = c.FirstByte + 1000
			if fails && by > 0 && k%10 == 0 {
				c.Outcome, c.Status = load.Failed, 500
			}
			tr.Calls = append(load.CallsOf(tr.Calls), c)
		}
		tr.Steps = append(tr.Steps, s)
		now += 3 * time.Second
	}
	tr.Read = now
	return tr
}

// TestLateLadders: points at which the generator could not keep up are marked, and a ladder that has no other is
// invalid. What was answered well did hold, late as it was sent, and its times have a bound for the generator's part.
func TestLateLadders(t *testing.T) {
	t.Parallel()
	const late = 20 * time.Millisecond
	for _, c := range []struct {
		name    string
		fails   bool
		late    []time.Duration
		verdict report.Verdict
		valid   bool
		reason  string
	}{
		{"none", true, []time.Duration{0, 0}, report.None, true, ""},
		{"one of two", true, []time.Duration{0, late}, report.None, true, "could not keep up in 1 of 2 steps"},
		{"all", true, []time.Duration{late, late}, report.Invalid, false, "the generator could not keep up"},
		{"all answered well", false, []time.Duration{late, late}, report.None, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := measured(t, journal{trace: func(string) capacity.Trace { return ladderTrace(c.fails, c.late...) }})
			if rep.Verdict != c.verdict || rep.Generator.Valid != c.valid || !strings.Contains(rep.Generator.Reason, c.reason) {
				t.Errorf("verdict %s (%s), generator %+v", rep.Verdict, rep.Reason, rep.Generator)
			}
			if c.reason == "" && rep.Generator.Reason != "" {
				t.Errorf("a generator is blamed for nothing: %s", rep.Generator.Reason)
			}
			for i, p := range rep.Capacity[0].Points {
				if p.Generator.Valid != (c.late[i] == 0 || !c.fails) {
					t.Errorf("point %d: %+v", i, p.Generator)
				}
				if own := p.P99Own != nil && *p.P99Own > 0.019; own != (c.late[i] > 0) {
					t.Errorf("point %d: own part of p99 %v", i, p.P99Own)
				}
			}
			if want := (c.verdict == report.Invalid); want != (ExitCode(rep) == ExitInvalid) {
				t.Errorf("exit code %d", ExitCode(rep))
			}
		})
	}
}
