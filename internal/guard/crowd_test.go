package guard

import (
	"testing"

	"tare/internal/load"
)

// beside is a point of five seconds on a host of so many processors, which were busy for a share of their time; the
// target used so much of it (negative: that is not known).
func beside(s Seen, processors, busy, target float64) Seen {
	const seconds = 5
	all := processors * seconds
	s.Segment.Offered = int(s.Rate * seconds)
	s.Segment.Effort = &load.Effort{
		Seconds: seconds, CPU: 0.02 * all, Host: &load.Processors{All: all, Busy: busy * all},
	}
	if target >= 0 {
		s.TargetCPU = new(target * all)
	}
	return s
}

// TestCrowdIsNoOverload: a target that did worse while other work kept the processors busy was not overloaded, as far
// as is known, unless it said so by its own errors; a target that keeps them busy by itself, or with what it asks, was,
// and so was one that did worse while processors were idle.
func TestCrowdIsNoOverload(t *testing.T) {
	const hidden = -1
	fast, slow := 8*ms, 300*ms
	silent := at(400, 0.5, slow)
	silent.Unanswered = silent.Legitimate.Failed
	for name, x := range map[string]struct {
		points []Seen
		want   float64 // of the overload, 1/s
		crowd  float64
	}{
		"others all the time, the target is known": {crowd: 400, points: []Seen{
			beside(at(100, 1, fast), 2, 1, .02), beside(at(200, 1, fast), 2, 1, .04), beside(at(400, 1, slow), 2, 1, .08),
		}},
		"others all the time, the target is hidden": {crowd: 400, points: []Seen{
			beside(at(100, 1, fast), 2, 1, hidden), beside(at(200, 1, fast), 2, 1, hidden),
			beside(at(400, 1, slow), 2, 1, hidden),
		}},
		"others from the second rate on": {crowd: 200, points: []Seen{
			beside(at(100, 1, fast), 2, .98, hidden), beside(at(200, 1, slow), 2, .98, hidden),
		}},
		"others at the highest rate": {crowd: 400, points: []Seen{
			beside(at(100, 1, fast), 2, .05, hidden), beside(at(200, 1, fast), 2, .08, hidden),
			beside(at(400, 1, slow), 2, 1, hidden),
		}},
		"others at most lower rates": {crowd: 400, points: []Seen{
			beside(at(100, 1, fast), 2, 1, hidden), beside(at(200, 1, fast), 2, .4, hidden),
			beside(at(400, 1, slow), 2, 1, hidden),
		}},
		"others for more than half of the time": {crowd: 400, points: []Seen{
			beside(at(100, 1, fast), 2, .05, .02), beside(at(200, 1, fast), 2, .05, .04), beside(at(400, 1, slow), 2, .7, .08),
		}},
		"others, and the target does not answer": {crowd: 400, points: []Seen{
			beside(at(100, 1, fast), 2, 1, .02), beside(at(200, 1, fast), 2, 1, .04), beside(silent, 2, 1, .08),
		}},
		"others, and the target answers with errors": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 2, 1, .02), beside(at(200, 1, fast), 2, 1, .04), beside(at(400, 0.5, slow), 2, 1, .08),
		}},
		"others, and the target turns calls away": {crowd: 400, points: []Seen{
			beside(at(100, 1, fast), 2, 1, .02), beside(at(200, 1, fast), 2, 1, .04),
			beside(away(at(400, 0.5, slow)), 2, 1, .08),
		}},
		"others at one rate, and not at a higher one": {want: 800, points: []Seen{
			beside(at(100, 1, fast), 2, .05, .02), beside(at(200, 1, fast), 2, .06, .04), beside(at(400, 1, slow), 2, 1, .06),
			beside(at(800, 1, slow), 2, .12, .08),
		}, crowd: 400},
		"others at a lower rate, and sound at the highest": {points: []Seen{
			beside(at(100, 1, fast), 2, .05, .02), beside(at(200, 1, slow), 2, 1, .04), beside(at(400, 1, fast), 2, 1, .06),
		}},
		"its own work, known": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 2, .27, .25), beside(at(300, 1, fast), 2, .77, .75), beside(at(400, 1, slow), 2, 1, .97),
		}},
		"its own work, hidden": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 2, .27, hidden), beside(at(300, 1, fast), 2, .77, hidden),
			beside(at(400, 1, slow), 2, 1, hidden),
		}},
		"its own work, hidden, cheaper at higher rates": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 2, .39, hidden), beside(at(300, 1, fast), 2, .8, hidden),
			beside(at(400, 1, slow), 2, 1, hidden),
		}},
		"its own work, hidden, on one processor": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 1, .27, hidden), beside(at(300, 1, fast), 1, .77, hidden),
			beside(at(400, 1, slow), 1, 1, hidden),
		}},
		"the work of what it asks": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 2, .27, .02), beside(at(300, 1, fast), 2, .77, .06), beside(at(400, 1, slow), 2, 1, .08),
		}},
		"idle processors": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 2, .03, .01), beside(at(300, 1, fast), 2, .05, .03), beside(at(400, 1, slow), 2, .06, .04),
		}},
		"many idle processors beside others": {want: 400, points: []Seen{
			beside(at(100, 1, fast), 64, .7, .01), beside(at(300, 1, fast), 64, .7, .01), beside(at(400, 1, slow), 64, .7, .01),
		}},
		"a host that says nothing": {want: 400, points: []Seen{at(100, 1, fast), at(200, 1, fast), at(400, 1, slow)}},
	} {
		o, _ := OverloadOf(x.points)
		c, _ := CrowdOf(x.points)
		if o.Rate != x.want || c.Rate != x.crowd {
			t.Errorf("%s: overloaded at %v/s, in a crowd at %v/s; want %v/s and %v/s", name, o.Rate, c.Rate, x.want, x.crowd)
		}
	}
}

// TestUnansweredCalls: failed calls that got no answer are told from those that got an error, and those that were never
// sent are neither.
func TestUnansweredCalls(t *testing.T) {
	call := func(o load.Outcome) load.Call { return load.Call{Intended: 1, Ready: 1, Sent: 1, Done: 5, Outcome: o} }
	calls := load.Calls{
		call(load.OK), call(load.Failed), call(load.Refused), call(load.Wrong), call(load.Timeout), call(load.ConnFailed),
		{Intended: 1, Sent: 1},
		{Intended: 1, Done: 5, Outcome: load.Timeout},
	}
	s := Assess(Point{Segment: load.Segment{End: 9}, Read: 9}, twoOperations, calls)
	want := Legitimate{Served: 1, Wrong: 1, Failed: 5, Unsent: 1, TurnedAway: 1}
	if s.Unanswered != 3 || s.Legitimate != want {
		t.Errorf("%d were not answered of %+v, want 3 of %+v", s.Unanswered, s.Legitimate, want)
	}
}
