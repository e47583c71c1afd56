package capacity

import (
	"math"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
)

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
