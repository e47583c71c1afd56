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

// TestUnansweredTrespasses: a trespass without an answer may have been permitted where calls that must be allowed go
// unanswered twice as often as trespasses do, and shows nothing where both do nearly alike, or where it never left.
func TestUnansweredTrespasses(t *testing.T) {
	ops := []Operation{{Name: "token"}, {Name: "stranger", Twin: "token"}}
	p := Point{Segment: load.Segment{End: 10 * time.Second}, Read: 10 * time.Second}
	for name, x := range map[string]struct {
		outcome    load.Outcome
		trespasses int // of 1,000, that end so; the others are refused
		legitimate int // of 1,000, that end so; the others are served
		unsent     bool
		want       uint64
	}{
		"permits wait, refusals do not": {outcome: load.Timeout, trespasses: 15, legitimate: 700, want: 15},
		"connections end":               {outcome: load.ConnFailed, trespasses: 15, legitimate: 700, want: 15},
		"one is enough":                 {outcome: load.Timeout, trespasses: 1, legitimate: 20, want: 1},
		"never sent":                    {outcome: load.Timeout, trespasses: 15, legitimate: 700, unsent: true},
		"both wait":                     {outcome: load.Timeout, trespasses: 690, legitimate: 700},
		"both wait for nearly the same": {outcome: load.Timeout, trespasses: 500, legitimate: 700},
		"now and then none":             {outcome: load.Timeout, trespasses: 2, legitimate: 5},
		"trespasses wait":               {outcome: load.Timeout, trespasses: 15},
		"errors":                        {outcome: load.Failed, trespasses: 15, legitimate: 700},
	} {
		var calls load.Calls
		for i := range 1000 {
			at := time.Duration(i+1) * time.Millisecond
			for op, bad := range []int{x.legitimate, x.trespasses} {
				c := load.Call{Operation: uint8(op), Intended: at, Ready: at, Sent: at, Done: at + time.Second, Outcome: load.OK}
				if op == 1 {
					c.Outcome = load.Denied
				}
				if i < bad {
					c.Outcome = x.outcome
					if x.unsent {
						c.Sent = 0
					}
				}
				calls = append(calls, c)
			}
		}
		s := Assess(p, ops, calls)
		if n := s.Trespasses.Unanswered; n != x.want || s.ByOperation["stranger"].Unanswered != x.want {
			t.Errorf("%s: %d unanswered, want %d", name, n, x.want)
		}
		e, _ := s.Trespasses.Share()
		if exact, _ := (Trespasses{Refused: s.Trespasses.Refused}).Share(); (e.Hi > exact.Hi) != (x.want > 0) {
			t.Errorf("%s: the share is at most %v", name, e.Hi)
		}
	}
}

// TestTrespassesUnderACondition: a trespass was decided under a condition if it was answered while that was in force,
// whenever it was sent; one that was answered later was decided afterwards.
func TestTrespassesUnderACondition(t *testing.T) {
	ops := []Operation{{Name: "token"}, {Name: "stranger", Twin: "token"}}
	held := Condition{Begun: 2 * time.Second, Imposed: 3 * time.Second, Ended: 8 * time.Second}
	byItself := Condition{Begun: 2 * time.Second, Imposed: 4 * time.Second, Ended: 4*time.Second + 5*time.Microsecond}
	atOnce := Condition{Begun: 2 * time.Second, Imposed: 2*time.Second + 1, Ended: 2*time.Second + 2}
	failed := Condition{Begun: 2 * time.Second}
	refused, granted, undecided := Trespasses{Refused: 1}, Trespasses{Permitted: 1}, Trespasses{Undecided: 1}
	for name, x := range map[string]struct {
		condition          Condition
		sent, done         float64 // seconds; done 0: it did not end
		outcome            load.Outcome
		during, afterwards Trespasses
	}{
		"before":                         {condition: held, sent: 1, done: 1.5, outcome: load.Denied},
		"before it was in force":         {condition: held, sent: 2.2, done: 2.5, outcome: load.Denied},
		"sent before, granted meanwhile": {condition: held, sent: 1, done: 5, outcome: load.Permitted, during: granted},
		"meanwhile":                      {condition: held, sent: 4, done: 5, outcome: load.Denied, during: refused},
		"sent meanwhile, answered later": {
			condition: held, sent: 4, done: 8.1, outcome: load.Denied, during: undecided, afterwards: refused,
		},
		"never answered":           {condition: held, sent: 4, during: undecided},
		"timed out meanwhile":      {condition: held, sent: 1, done: 6, outcome: load.Timeout, during: undecided},
		"timed out later":          {condition: held, sent: 4, done: 9, outcome: load.Timeout, during: undecided},
		"afterwards":               {condition: held, sent: 9, done: 9.1, outcome: load.Denied, afterwards: refused},
		"afterwards, not answered": {condition: held, sent: 9, afterwards: undecided},
		"one that ends by itself":  {condition: byItself, sent: 3, done: 3.5, outcome: load.Denied, during: refused},
		"one that ends at once":    {condition: atOnce, sent: 1, done: 3, outcome: load.Denied, afterwards: refused},
		"in flight, and at once":   {condition: atOnce, sent: 1, done: 0},
		"one that failed":          {condition: failed, sent: 4, done: 5, outcome: load.Denied},
	} {
		at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
		call := load.Call{Operation: 1, Intended: at(x.sent), Ready: at(x.sent), Sent: at(x.sent), Outcome: x.outcome}
		if x.done > 0 {
			call.FirstByte, call.Done = at(x.done), at(x.done)
		}
		p := Point{Segment: load.Segment{End: 11 * time.Second}, Read: 17 * time.Second, Condition: &x.condition}
		if s := Assess(p, ops, load.Calls{call}); s.During != x.during || s.Afterwards != x.afterwards {
			t.Errorf("%s: during %+v, afterwards %+v; want %+v and %+v", name, s.During, s.Afterwards, x.during, x.afterwards)
		}
	}
}
