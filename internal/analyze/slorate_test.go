package analyze

import (
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/report"
)

// A tried is one rate of a made search: how long its calls take, and how many of a hundred of them take so long
// instead.
type tried struct {
	role       capacity.Role
	rate       float64
	held       bool
	took, late time.Duration
	share      int
	bad        bool // those that are late fail as well
	open       bool // those that are late have not ended
	lasts      time.Duration
}

// made is the trace of a search that tried these, twenty seconds each where nothing else is said.
func made(all ...tried) capacity.Trace {
	tr := capacity.Trace{
		Timeout: 30 * time.Second, MaxRate: 2000, MaxConns: 4096, Stop: capacity.StopFound, Reason: "found and confirmed",
	}
	now := time.Duration(0)
	for _, x := range all {
		s := capacity.Step{Role: x.role, Rate: x.rate, Attempt: 1}
		if x.role == capacity.RoleConfirmHigh || x.role == capacity.RoleConfirmLow {
			s.Passed = &x.held
		}
		lasts := cmp.Or(x.lasts, 20*time.Second)
		n := int(x.rate * lasts.Seconds())
		for i := range n {
			c := load.Call{Conn: 1, Intended: now + time.Duration(float64(i)/x.rate*1e9), Outcome: load.OK, Status: 201}
			c.Ready, c.Sent = c.Intended+1, c.Intended+2
			took := x.took
			if i%100 < x.share {
				took = x.late
				if x.bad {
					c.Outcome, c.Status = load.Refused, 429
				}
			}
			c.FirstByte, c.Done = c.Intended+took, c.Intended+took
			if i%100 < x.share && x.open {
				c.FirstByte, c.Done = 0, 0
			}
			tr.Calls = append(load.CallsOf(tr.Calls), c)
		}
		s.Segment = load.Segment{Start: now, End: now + lasts, Offered: n, Sent: n}
		now += lasts
		tr.Steps = append(tr.Steps, s)
	}
	tr.Read = now + time.Minute
	return tr
}

// TestLevelsAtRates: the objective is judged by the calls at the highest rate that held and at the lowest that failed;
// what the server measured is of no one rate, and the published formulas say nothing.
func TestLevelsAtRates(t *testing.T) {
	t.Parallel()
	over := tried{role: capacity.RoleOverload, rate: 90, took: 9 * time.Second}
	prime := tried{role: capacity.RolePrime, rate: 90, took: 9 * time.Second}
	low := func(share int, late time.Duration) tried {
		return tried{
			role: capacity.RoleConfirmLow, rate: 40, held: true, took: 200 * time.Millisecond, late: late, share: share,
		}
	}
	high := tried{role: capacity.RoleConfirmHigh, rate: 50, took: 2 * time.Second}
	bad, open := high, high
	bad.share, bad.late, bad.bad, bad.took = 25, 3*time.Second, true, 200*time.Millisecond
	open.share, open.open = 10, true
	refused := low(1, 2*time.Millisecond)
	refused.bad = true
	for name, c := range map[string]struct {
		trace     capacity.Trace
		held      report.Verdict
		p99       float64
		failed    report.Verdict
		says, not string // in the client's notes
	}{
		"kept and broken":  {made(over, high, low(0, 0)), report.Pass, .2, report.Fail, "", "queue"},
		"late beyond 99 %": {made(over, high, low(5, 4*time.Second)), report.Fail, 4, report.Fail, "", "queue"},
		"a queue stood before it": {made(
			over, high, prime, low(5, 4*time.Second),
		), report.Inconclusive, 4, report.Fail, "a queue was made to stand before", ""},
		"calls that failed": {made(
			over, bad, low(0, 0),
		), report.Pass, .2, report.Fail, "calls that failed are counted by how long they took: 25% of them at 50/s", ""},
		"calls that were refused at once": {
			made(over, high, refused), report.Inconclusive, .2, report.Fail, "1% of them at 40/s", "",
		},
		"calls that never ended": {made(over, open, low(0, 0)), report.Pass, .2, report.Fail, "10% of them at 50/s", ""},
	} {
		rep := analyzed(
			t,
			journal{
				operation: "create-pod-dry-run", trace: func(string) capacity.Trace { return c.trace },
			}.write(t, t.TempDir()),
		)
		if len(rep.SLO) != 8 {
			t.Errorf("%s: %d rows: %+v", name, len(rep.SLO), rep.SLO)
			continue
		}
		var notes []string
		for i := range rep.SLO {
			s := &rep.SLO[i]
			rate, held, verdict := 40.0, true, c.held
			if i >= 4 {
				rate, held, verdict = 50, false, c.failed
			}
			if s.Rate == nil || *s.Rate != rate || s.Held == nil || *s.Held != held || s.Name != "mutating" ||
				s.Subject != "POST pods" || s.Limit != 1 {
				t.Errorf("%s: row %d: %+v", name, i, s)
			}
			if s.Formula != report.ClientClock {
				if s.Verdict != report.NotMeasured || s.Value != nil || !strings.Contains(s.Note, "whole search") {
					t.Errorf("%s: %s: %+v", name, s.Formula, s)
				}
				continue
			}
			notes = append(notes, s.Note)
			if s.Verdict != verdict || s.N != uint64(rate*20) {
				t.Errorf("%s: at %v: %s of %d, want %s", name, rate, s.Verdict, s.N, verdict)
			}
			if held && (s.Value == nil || math.Abs(*s.Value-c.p99) > 1e-6) {
				t.Errorf("%s: p99 %v, want %v", name, s.Value, c.p99)
			}
		}
		all := strings.Join(notes, "\n")
		if !strings.Contains(all, c.says) || (c.not != "" && strings.Contains(all, c.not)) {
			t.Errorf("%s: notes %q, want %q and not %q", name, all, c.says, c.not)
		}
	}
}

// TestNoLevelsOfOtherAreas: what is no request of a control plane has no such objective.
func TestNoLevelsOfOtherAreas(t *testing.T) {
	t.Parallel()
	if rep := analyzed(t, journal{}.write(t, t.TempDir())); len(rep.SLO) != 0 {
		t.Errorf("%+v", rep.SLO)
	}
	rep := analyzed(t, journal{operation: "pod-startup"}.write(t, t.TempDir()))
	if len(rep.SLO) != 8 || rep.SLO[0].Name != "pod-startup" || rep.SLO[0].Limit != 5 ||
		rep.SLO[3].Verdict != report.Pass {
		t.Errorf("pod-startup: %+v", rep.SLO)
	}
}
