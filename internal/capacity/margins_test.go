package capacity

import (
	"math"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

// tried is a step of 5 s in which calls were due at a rate, of which some failed and the others took response.
func (t *Trace) tried(role Role, at time.Duration, rate float64, held bool, failed int, response time.Duration) {
	n := int(5 * rate)
	gap := 5 * time.Second / time.Duration(n)
	for i := range n {
		due := at + time.Duration(i)*gap
		c := load.Call{Conn: 1, Intended: due, Ready: due, Sent: due, FirstByte: due + response, Done: due + response}
		if i < failed {
			c.Outcome = load.Failed
		}
		t.Calls = append(load.CallsOf(t.Calls), c)
	}
	t.Steps = append(t.Steps, Step{
		Role: role, Rate: rate, Attempt: 1, Passed: &held,
		Segment: load.Segment{Start: at, End: at + 5*time.Second, Offered: n},
	})
	t.Read = at + time.Minute
}

// confirmed is a search that overloaded a target and confirmed 98/s and 102/s.
func confirmed(more func(t *Trace)) Trace {
	var t Trace
	t.tried(RoleRamp, 0, 50, true, 0, 10*ms)
	t.tried(RoleOverload, 10*time.Second, 200, false, 0, 10*ms)
	t.tried(RoleConfirmHigh, 20*time.Second, 102, false, 0, 10*ms)
	t.tried(RoleConfirmLow, 30*time.Second, 98, true, 0, 10*ms)
	if more != nil {
		more(&t)
	}
	return t
}

func TestDoubts(t *testing.T) {
	then := func(role Role, rate float64, held bool, failed int) func(*Trace) {
		return func(t *Trace) { t.tried(role, 40*time.Second, rate, held, failed, 10*ms) }
	}
	for name, c := range map[string]struct {
		more func(t *Trace)
		want string
	}{
		"both sides once": {nil, ""},
		"the rate that held broke as well": {then(
			RoleConfirmLow, 98, false, 0,
		), "98/s held, and 98/s broke, which is no higher"},
		"a higher one held as well": {then(
			RoleConfirmHigh, 103, true, 0,
		), "103/s held, and 102/s broke, which is no higher"},
		"a ramp's step held as well":       {then(RoleRamp, 103, true, 0), ""},
		"2 % failed at the rate that held": {then(RoleConfirmLow, 98, true, 20), "20 of 980 calls at 98/s"},
		"2 % failed at the one that broke": {then(RoleConfirmHigh, 102, false, 20), ""},
		"six confirmations that agree": {func(t *Trace) {
			for i := range 4 {
				t.tried(RoleConfirmLow, time.Duration(40+10*i)*time.Second, 98, true, 0, 10*ms)
			}
		}, "6 confirmations were needed"},
	} {
		trace := confirmed(c.more)
		r := Result{VerifiedLow: 98, VerifiedHigh: 102}
		if got := r.doubtInConfirmations(trace, lastOverload(trace)); (got == "") != (c.want == "") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestHeldForLongEnough: a rate that was held for less than is asked for is not one that holds; one that broke broke,
// however soon.
func TestHeldForLongEnough(t *testing.T) {
	trace := confirmed(nil)
	for enough, want := range map[time.Duration]float64{0: 98, 5 * time.Second: 98, 5*time.Second + 1: 0, time.Minute: 0} {
		if lo, hi := trace.bracket(10*time.Second, 0, enough); lo != want || hi != 102 {
			t.Errorf("at least %v: %v held and %v broke, want %v and 102", enough, lo, hi, want)
		}
	}
}

func TestDistrust(t *testing.T) {
	warm := func(t *Trace) { t.tried(RoleConfirmLow, 40*time.Second, 98, true, 0, 10*ms) }
	faster := func(t *Trace) {
		warm(t)
		t.tried(RoleRamp, 50*time.Second, 210, true, 0, 10*ms)
	}
	slowly := func(t *Trace) {
		t.tried(RoleConfirmLow, 40*time.Second, 98, true, 0, 40*ms)
		t.tried(RoleRamp, 50*time.Second, 210, true, 0, 10*ms)
	}
	long := func(t *Trace) {
		for i := range 20 {
			t.tried(RoleOverload, time.Duration(40+10*i)*time.Second, 200, false, 0, 10*ms)
		}
	}
	crowd := func(more func(*Trace)) func(*Trace) {
		return func(t *Trace) {
			more(t)
			for i, calls := 0, load.CallsOf(t.Calls); i < len(calls); i++ {
				if i%2 > 0 && calls[i].Intended >= 10*time.Second && calls[i].Intended < 15*time.Second {
					calls[i].Outcome = load.Failed // it answers 100/s of the overload
				}
			}
			for i := range t.Steps {
				t.Steps[i].Segment.Effort = &load.Effort{Seconds: 5, CPU: 0.1, Host: &load.Processors{All: 10, Busy: 10}}
			}
		}
	}
	late := func(t *Trace) { t.tried(RoleConfirmLow, 40*time.Second, 98, true, 0, 40*ms) }
	again := func(t *Trace) {
		warm(t)
		t.tried(RoleOverload, 50*time.Second, 150, false, 0, 10*ms)
		t.Steps[len(t.Steps)-1].Attempt = 2
	}
	for name, c := range map[string]struct {
		class signature.Class
		more  func(t *Trace)
		want  string
	}{
		"a queue":                                     {signature.Queue, warm, ""},
		"a queue that was fast on a busy host":        {signature.Queue, crowd(warm), ""},
		"a queue that was slow on a busy host":        {signature.Queue, crowd(late), "other work kept"},
		"an unknown class that was slow there":        {signature.Unknown, crowd(late), "other work kept"},
		"places that were slow there":                 {signature.ConcurrencyLimit, crowd(late), "other work kept"},
		"a limit on the rate that was slow there":     {signature.TokenBucket, crowd(late), ""},
		"a queue that drops calls and was slow there": {signature.Shedding, crowd(late), "other work kept"},
		"a queue that answered more on a busy host":   {signature.Queue, crowd(again), "in an overload the target answered"},
		"a collapse that did":                         {signature.Collapse, crowd(again), ""},
		"places that did":                             {signature.ConcurrencyLimit, crowd(again), ""},
		"a queue that was slow on an idle host":       {signature.Queue, late, ""},
		"a queue that kept up with twice as much":     {signature.Queue, faster, "kept up with 210/s"},
		"a limiter that did":                          {signature.TokenBucket, faster, ""},
		"a limit of connections that did":             {signature.ConnectionRefused, faster, ""},
		"a limit of connections that has a queue now": {signature.ConnectionRefused, slowly, "kept up with 210/s"},
		"an unknown class":                            {signature.Unknown, faster, ""},
		"a limiter that was tried for very long":      {signature.TokenBucket, long, "found no limit that explains"},
		"a window that was tried for very long":       {signature.FixedWindow, long, ""},
	} {
		trace := confirmed(c.more)
		r := Result{VerifiedLow: 98, VerifiedHigh: 102}
		got := r.doubtInUpperSide(trace, baseOf(trace), judgement{verdict: signature.Verdict{Class: c.class}})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	r := Result{VerifiedLow: 98, VerifiedHigh: 102}
	trace := confirmed(crowd(late))
	got := r.doubtInUpperSide(trace, baseOf(trace), judgement{
		Estimate: stat.Estimate{Value: 100, Lo: 99.5, Hi: 100.5}, verdict: signature.Verdict{Class: signature.Shedding},
	})
	if got != "" {
		t.Errorf("a queue that drops calls, and that a clock empties on a busy host: %q", got)
	}
	trace = confirmed(nil)
	trace.Calls = load.CallsOf(trace.Calls)[:500]
	got = r.doubtInUpperSide(trace, baseOf(trace), judgement{verdict: signature.Verdict{Class: signature.Queue}})
	if !strings.Contains(got, "500 calls") {
		t.Errorf("a target that answered 500 calls: %q", got)
	}
}

// TestSavedCallsExplain: a rate above the estimate that held shows a higher limit only where the limiter had not saved
// up as many calls since it last refused one.
func TestSavedCallsExplain(t *testing.T) {
	refusing := func(at time.Duration) func(*Trace) {
		return func(t *Trace) {
			t.tried(RolePrime, at, 150, true, 0, 3*ms)
			for i, calls := 0, load.CallsOf(t.Calls); i < len(calls); i++ {
				if calls[i].Intended >= at && i%3 == 0 {
					calls[i].Outcome = load.Refused
				}
			}
		}
	}
	for name, c := range map[string]struct {
		prime func(t *Trace)
		want  bool
	}{
		"it refused until then":              {refusing(35 * time.Second), false},
		"the host stood still for 100 ms":    {refusing(34900 * time.Millisecond), true},
		"it last refused ten seconds before": {refusing(25 * time.Second), true},
	} {
		var trace Trace
		trace.tried(RoleOverload, 10*time.Second, 200, false, 0, 3*ms)
		c.prime(&trace)
		trace.tried(RoleConfirmHigh, 40*time.Second, 102, true, 0, 3*ms)
		if got := trace.savedExplains(trace.Steps[len(trace.Steps)-1], 100); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestFewCallsShowNoBreak: a rate at which five calls came due is not said to break.
func TestFewCallsShowNoBreak(t *testing.T) {
	trace := confirmed(func(t *Trace) {
		t.tried(RoleConfirmLow, 40*time.Second, 98, true, 0, 10*ms)
		t.tried(RoleConfirmHigh, 50*time.Second, 1, false, 1, 10*ms)
	})
	r := Result{VerifiedHigh: 1}
	places := judgement{verdict: signature.Verdict{Class: signature.ConcurrencyLimit}}
	got := r.doubtInUpperSide(trace, baseOf(trace), places)
	if got != "only 5 calls came due at that rate" {
		t.Errorf("five calls: %q", got)
	}
}

// A rate that broke far below what was answered well under overload is not believed, unless the target collapses; nor,
// where some calls fail at any rate, one below which none was seen to hold.
func TestDistrustOfFailures(t *testing.T) {
	trace := confirmed(func(t *Trace) { t.tried(RoleConfirmLow, 40*time.Second, 98, true, 0, 10*ms) })
	for name, c := range map[string]struct {
		class         signature.Class
		held          float64
		well, failing float64
		want          string
	}{
		"hardly more":             {signature.Queue, 98, 200, 0, ""},
		"more than twice as much": {signature.Queue, 98, 205, 0, "205/s were answered well"},
		"by a limiter":            {signature.TokenBucket, 98, 205, 0, "205/s were answered well"},
		"before it collapsed":     {signature.Collapse, 98, 205, 0, ""},
		"some fail at any rate":   {signature.Queue, 98, 107, 0.05, ""},
		"and none held":           {signature.Queue, 0, 107, 0.05, "no rate was seen to hold"},
		"few fail, and none held": {signature.Queue, 0, 107, 0.01, ""},
	} {
		r := Result{VerifiedLow: c.held, VerifiedHigh: 102}
		f := judgement{verdict: signature.Verdict{Class: c.class}, failing: c.failing}
		f.Value = c.well
		got := r.doubtInUpperSide(trace, baseOf(trace), f)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// An interval holds both rates that were confirmed, and is wider by what the class and doubts ask for.
func TestNumberHasMargins(t *testing.T) {
	for name, c := range map[string]struct {
		class  signature.Class
		spare  float64
		lo, hi float64
	}{
		"a token bucket":        {signature.TokenBucket, 0, 98, 102},
		"a queue":               {signature.Queue, 0, 98 * 0.94, 102 * 1.05},
		"a queue, in doubt":     {signature.Queue, 0.1, 98 * 0.94 * 0.9, 102 * 1.05 * 1.1},
		"a collapse":            {signature.Collapse, 0, 98 * 0.8, 102 * 1.05},
		"a queue that sheds":    {signature.Shedding, 0, 98 * 0.87, 102 * 1.05},
		"places":                {signature.ConcurrencyLimit, 0, 98 * 0.87, 102 * 1.05},
		"an unknown class":      {signature.Unknown, 0, 98 * 0.87, 102 * 1.05},
		"a bucket, in doubt":    {signature.TokenBucket, 0.1, 98 * 0.9, 102 * 1.1},
		"places, and in doubt":  {signature.ConcurrencyLimit, 0.1, 98 * 0.87 * 0.9, 102 * 1.05 * 1.1},
		"a collapse, and doubt": {signature.Collapse, 0.1, 98 * 0.8 * 0.9, 102 * 1.05 * 1.1},
	} {
		r := Result{VerifiedLow: 98, VerifiedHigh: 102}
		if !r.number(confirmed(nil), judgement{verdict: signature.Verdict{Class: c.class}}, c.spare) {
			t.Errorf("%s: no number", name)
			continue
		}
		if math.Abs(r.Lo-c.lo) > 1e-9 || math.Abs(r.Hi-c.hi) > 1e-9 {
			t.Errorf("%s: [%v, %v], want [%v, %v]", name, r.Lo, r.Hi, c.lo, c.hi)
		}
	}
}

// climbed is the trace of a ramp from 20/s on, of half a second a step, against one server that takes service for a
// call, and in which every step passed.
func climbed(service time.Duration, most float64) Trace { return climbedFor(service, most, 1) }

// climbedFor is climbed with steps that are longer by a factor.
func climbedFor(service time.Duration, most, longer float64) Trace {
	t := Trace{Stop: StopMaxRate, Reason: "nothing broke", Timeout: 10 * time.Second}
	free := time.Duration(0)
	at := time.Duration(0)
	for rate := 20.0; rate <= most; rate *= 2 {
		n := max(20, int(longer*rate/2))
		gap := time.Duration(float64(time.Second) / rate)
		begin := at
		for range n {
			free = max(free, at) + service
			t.Calls = append(load.CallsOf(t.Calls), load.Call{
				Intended: at, Sent: at, FirstByte: free, Done: free, Outcome: load.OK,
			})
			at += gap
		}
		t.Steps = append(t.Steps, Step{
			Role: RoleRamp, Rate: rate, Segment: load.Segment{Start: begin, End: at, Offered: n}, Passed: new(true),
		})
		at = max(at, free) + 100*time.Millisecond // until all is answered
	}
	t.Read = at + time.Second
	return t
}

// A rate that a target takes for half a second, and not for longer, is none that it holds.
func TestAtLeastIsWhatTheTargetKeepsUpWith(t *testing.T) {
	for _, c := range []struct {
		name    string
		service time.Duration
		most    float64
		want    float64
		says    string
	}{
		{"a target that takes 533/s", 1875 * time.Microsecond, 1280, 320, "at 640/s answers came later"},
		{"one that takes everything", 10 * time.Microsecond, 1280, 1280, ""},
		{"one that takes 1300/s", 769 * time.Microsecond, 1280, 1280, ""},
		{"one that takes 1000/s", time.Millisecond, 1280, 640, "at 1280/s answers came later"},
		{"one that takes 15/s", 66 * time.Millisecond, 20, 0, "at 20/s answers came later"},
	} {
		r := Assess(climbed(c.service, c.most))
		if r.AtLeast != c.want || !strings.Contains(r.Reason, c.says) || c.says == "" && strings.Contains(r.Reason, "later") {
			t.Errorf("%s: at least %v, want %v; %q", c.name, r.AtLeast, c.want, r.Reason)
		}
	}
}

// Calls that were never answered have taken as long as was waited for them, and those that failed were not answered
// either.
func TestAtLeastOfCallsWithoutAnswer(t *testing.T) {
	silent, failing := climbed(10*time.Microsecond, 640), climbed(10*time.Microsecond, 640)
	last := silent.Steps[len(silent.Steps)-1]
	for c := range silent.Calls.Due(last.Segment.Start+last.Length()/2, math.MaxInt64) {
		c.Done, c.FirstByte = 0, 0
	}
	for c := range failing.Calls.Due(last.Segment.Start+last.Length()/2, math.MaxInt64) {
		c.Outcome, c.Done = load.Failed, c.Intended+time.Second
	}
	if r := Assess(silent); r.AtLeast != 320 {
		t.Errorf("at least %v, want 320/s: at 640/s half of the calls were never answered", r.AtLeast)
	}
	if r := Assess(failing); r.AtLeast != 320 {
		t.Errorf("at least %v, want 320/s: at 640/s half of the calls failed after the step", r.AtLeast)
	}
}

// Where the generator ends the search, the fastest step may have been served by what a limiter had saved up: it counts
// if it was long.
func TestAtLeastWhereTheGeneratorEnds(t *testing.T) {
	for _, c := range []struct {
		most, longer float64
		want         float64
	}{{1280, 1, 0}, {2560, 1, 0}, {1280, 4, 1280}, {80, 4, 0}} {
		trace := climbedFor(10*time.Microsecond, c.most, c.longer)
		trace.Stop, trace.Reason = StopClient, "the generator could not keep up"
		r := Assess(trace)
		if r.AtLeast != c.want || r.Valid != (c.want > 0) || c.want == 0 && !strings.Contains(r.Reason, "too briefly") {
			t.Errorf("%v/s were taken: at least %v, want %v; %q", c.most, r.AtLeast, c.want, r.Reason)
		}
	}
	if r := Assess(Trace{Stop: StopClient, Reason: "the generator could not keep up"}); strings.Contains(r.Reason, "0/s") {
		t.Errorf("nothing was offered: %q", r.Reason)
	}
}

// TestNothingIsTriedWithoutOverload: one that the target took when it was offered again leaves none to be explained.
func TestNothingIsTriedWithoutOverload(t *testing.T) {
	trace := confirmed(func(t *Trace) { t.tried(RoleOverload, 40*time.Second, 150, true, 0, 10*ms) })
	r := &session{t: trace}
	if again, err := r.experiment(); again || err != nil {
		t.Errorf("another overload: %t, %v", again, err)
	}
	if from, to := span(lastOverload(trace)); from != 0 || to != 0 {
		t.Errorf("no step spans %v to %v", from, to)
	}
}

// TestWhatTheHostExplainsIsNoChange: a rate that broke at first, below one that held later, or later, below one that
// had held, is said to show a change of the target; not where the calls that failed had come together, where other work
// had the processors, or where no rate is known to break.
func TestWhatTheHostExplainsIsNoChange(t *testing.T) {
	type calls = func(*Trace)
	rises := func(t *Trace) {
		t.tried(RoleConfirmLow, 40*time.Second, 40, false, 30, 10*ms)
		t.tried(RoleConfirmLow, 50*time.Second, 60, true, 0, 10*ms)
	}
	falls := func(t *Trace) {
		t.tried(RoleConfirmLow, 40*time.Second, 60, true, 0, 10*ms)
		t.tried(RoleConfirmLow, 50*time.Second, 40, false, 30, 10*ms)
	}
	together := func(t *Trace) { // five at a time, when the fifth is due
		for _, s := range t.Steps {
			if *s.Passed {
				continue
			}
			gap, n := s.Length()/time.Duration(s.Segment.Offered), 0
			for c := range t.Calls.Due(s.Segment.Start, s.Segment.End) {
				late := time.Duration(4-n%5) * gap
				c.Sent, c.FirstByte, c.Done = c.Sent+late, c.FirstByte+late, c.Done+late
				n++
			}
		}
	}
	crowded := func(t *Trace) {
		for i := range t.Steps {
			t.Steps[i].Segment.Effort = &load.Effort{Seconds: 5, CPU: 0.1, Host: &load.Processors{All: 10, Busy: 10}}
		}
	}
	for name, c := range map[string]struct {
		tried, then calls
		doubted     bool
		want        FindingKind
	}{
		"it rises":                                 {rises, nil, false, Autoscaling},
		"it falls":                                 {falls, nil, false, SpentCredits},
		"it rises, where calls came together":      {rises, together, false, ""},
		"it falls, where calls came together":      {falls, together, false, ""},
		"it rises, on a host with other work":      {rises, crowded, false, ""},
		"it falls, on a host with other work":      {falls, crowded, false, ""},
		"it rises, and nothing is known to break":  {rises, nil, true, ""},
		"it falls, and nothing is known to break":  {falls, nil, true, ""},
		"calls came together where it stays alike": {together, nil, false, ""},
	} {
		var trace Trace
		trace.tried(RoleRamp, 0, 10, true, 0, 10*ms)
		c.tried(&trace)
		if c.then != nil {
			c.then(&trace)
		}
		var got FindingKind
		for _, f := range trace.changes(signature.ConcurrencyLimit, 0, c.doubted) {
			got += f.Kind
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWarmth: a target is warm after 1000 calls; one that takes few calls a second also after a minute of load in which
// the last calls took as long as the first.
func TestWarmth(t *testing.T) {
	for name, c := range map[string]struct {
		rate        float64
		steps       int // of 5 s
		first, last time.Duration
		warm        bool
	}{
		"a fast target of 1000 calls":            {100, 2, 10 * ms, 10 * ms, true},
		"a fast target of fewer":                 {100, 1, 10 * ms, 10 * ms, false},
		"a fast target that becomes faster":      {100, 2, 30 * ms, 10 * ms, true},
		"a slow target, a minute long":           {2, 12, 900 * ms, 900 * ms, true},
		"a slow target, not so long":             {2, 11, 900 * ms, 900 * ms, false},
		"a slow target of too few calls":         {0.8, 12, 900 * ms, 900 * ms, false},
		"a slow target that becomes faster":      {2, 12, 900 * ms, 500 * ms, false},
		"a slow target that becomes slower":      {2, 12, 500 * ms, 900 * ms, true},
		"a slow target that becomes so at last":  {2, 80, 900 * ms, 500 * ms, false},
		"a slow target, fast, after 1000 calls":  {16, 14, 900 * ms, 500 * ms, true},
		"a fast target for a minute, few of all": {17, 11, 10 * ms, 10 * ms, false},
	} {
		var trace Trace
		for i := range c.steps {
			took := c.first
			if 2*i >= c.steps {
				took = c.last
			}
			trace.tried(RoleConfirmLow, time.Duration(10*i)*time.Second, c.rate, true, 0, took)
		}
		w := trace.warmth(c.rate)
		if w.isWarm() != c.warm || (w.doubt(c.rate) == "") != c.warm || (w.missing(c.rate) == 0) != c.warm {
			t.Errorf("%s: %+v, missing %v, %q", name, w, w.missing(c.rate), w.doubt(c.rate))
		}
	}
}

// TestAllowanceIsNoBound: a rate that was offered for a moment is no lower bound once most calls of a lower rate
// failed, whatever that was offered for; and the target broke.
func TestAllowanceIsNoBound(t *testing.T) {
	var x Trace
	x.tried(RoleRamp, 0, 160, true, 0, 10*ms)
	x.tried(RoleRamp, 10*time.Second, 320, true, 0, 10*ms)
	x.Stop = StopTime
	if r := Assess(x); r.AtLeast != 320 || r.Broke {
		t.Errorf("nothing failed: at least %v/s, broke %v", r.AtLeast, r.Broke)
	}
	x.tried(RoleSingle, 20*time.Second, 80, true, 390, 10*ms)
	x.Steps[2].Passed = nil
	if r := Assess(x); r.AtLeast != 0 || !r.Broke {
		t.Errorf("at 80/s most failed later: at least %v/s, broke %v", r.AtLeast, r.Broke)
	}
	x.tried(RoleRamp, 30*time.Second, 320, true, 0, 10*ms)
	if r := Assess(x); r.AtLeast != 0 || !r.Broke {
		t.Errorf("320/s held for no longer after that: at least %v/s, broke %v", r.AtLeast, r.Broke)
	}
}
