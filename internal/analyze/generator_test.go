package analyze

import (
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/report"
)

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
			rep := analyzed(
				t, journal{trace: func(string) capacity.Trace { return ladderTrace(c.fails, c.late...) }}.write(t, t.TempDir()),
			)
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
