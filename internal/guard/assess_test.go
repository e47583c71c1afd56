package guard

import (
	"testing"
	"time"

	"tare/internal/load"
)

// TestMixedUpAnswers: a call that must be allowed and got what is somebody else's is a breach, and still no trespass.
func TestMixedUpAnswers(t *testing.T) {
	ops := []Operation{{Name: "token", Breaches: []int{5}}, {Name: "stranger", Twin: "token"}}
	call := func(op uint8, at time.Duration, o load.Outcome, cause load.Cause) load.Call {
		return load.Call{
			Operation: op, Intended: at, Ready: at, Sent: at, FirstByte: at + 1, Done: at + time.Millisecond, Outcome: o,
			Cause: cause,
		}
	}
	calls := load.Calls{
		call(0, time.Second, load.OK, 0),
		call(0, 2*time.Second, load.Wrong, load.OwnCauses+5),
		call(0, 3*time.Second, load.Wrong, load.OwnCauses+4),
		call(0, 4*time.Second, load.Wrong, 5), // the engine's own
		call(0, 5*time.Second, load.Failed, load.OwnCauses+5),
		call(1, 6*time.Second, load.Wrong, load.OwnCauses+5), // decides nothing
		call(1, 7*time.Second, load.Denied, 0),
	}
	p := Point{Segment: load.Segment{End: 10 * time.Second}, Read: 10 * time.Second}
	s := Assess(p, ops, calls)
	if want := (Legitimate{Served: 1, Wrong: 3, Failed: 1, Foreign: 1}); s.Legitimate != want {
		t.Errorf("%+v, want %+v", s.Legitimate, want)
	}
	if want := (Trespasses{Refused: 1, Undecided: 1, Unclear: 1}); s.Trespasses != want {
		t.Errorf("%+v, want %+v", s.Trespasses, want)
	}
	if s.FirstBreach == nil || s.FirstBreach.Round(time.Second) != 2*time.Second || *s.LastBreach != *s.FirstBreach {
		t.Errorf("breaches from %v to %v", s.FirstBreach, s.LastBreach)
	}
}

// TestUnclearAnswers: only an answer that is no error, and says neither yes nor no, is unclear.
func TestUnclearAnswers(t *testing.T) {
	for _, x := range []struct {
		outcome load.Outcome
		status  uint16
		want    bool
	}{
		{load.Wrong, 200, true},
		{load.Wrong, 204, true},
		{load.Wrong, 0, true}, // an answer of a protocol without statuses
		{load.Wrong, 302, false},
		{load.Wrong, 404, false},
		{load.Refused, 429, false},
		{load.Failed, 500, false},
		{load.Timeout, 200, false},
		{load.ConnFailed, 200, false},
		{load.Denied, 200, false},
		{load.Permitted, 200, false},
	} {
		if got := Unclear(x.outcome, x.status); got != x.want {
			t.Errorf("%s with status %d: %v", x.outcome, x.status, got)
		}
	}
}
