package analyze

import (
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/report"
)

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
