package servers

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/limit"
	"tare/rigs/hosttest"
)

// A trial offers calls to a fixture in virtual time.
type trial struct {
	f     Fixture
	rig   *rig
	first part
	clock *clock.Fake
	sent  int
	calls []*sentCall
}

type sentCall struct {
	*call

	due, done time.Duration // done is 0 until the answer
	reply     reply
}

func newTrial(f Fixture) *trial {
	c := clock.NewFake(time.Unix(0, 0))
	t := &trial{f: f, clock: c, rig: newRig(c, 1)}
	t.first = f.build(t.rig)
	return t
}

// now returns the time on the fixture's timeline.
func (t *trial) now() time.Duration { return t.clock.Now().Sub(t.rig.begun) }

// advanceTo advances the time.
func (t *trial) advanceTo(at time.Duration) {
	for len(t.rig.due) > 0 && t.rig.due[0].at <= at {
		t.clock.Advance(t.rig.due[0].at - t.now())
		t.rig.mu.Lock()
		t.rig.catchUp()
		t.rig.mu.Unlock()
	}
	t.clock.Advance(at - t.now())
}

// call makes one call now, whose client gives up after the fixture's timeout.
func (t *trial) call() {
	callers := []string{"127.1.0.1", "127.1.0.2", "127.1.0.3", "127.1.0.4"}
	c := &sentCall{call: newCall(callers[t.sent%max(1, t.f.Callers)]), due: t.now()}
	t.sent++
	c.ended = append(c.ended, func() { c.done, c.reply = t.rig.now, <-c.call.reply })
	t.rig.enter(c.call, t.first)
	t.rig.mu.Lock()
	t.rig.after(t.f.Timeout, func() { c.gone = true })
	t.rig.mu.Unlock()
	t.calls = append(t.calls, c)
}

// offer makes calls at a constant rate for d, and returns them.
func (t *trial) offer(rate float64, d time.Duration) []*sentCall {
	begun, from := t.now(), len(t.calls)
	for i := 0; ; i++ {
		at := seconds(float64(i) / rate)
		if at >= d {
			t.advanceTo(begun + d)
			return t.calls[from:]
		}
		t.advanceTo(begun + at)
		t.call()
	}
}

// succeeded reports whether a call was answered well in time.
func (t *trial) succeeded(c *sentCall) bool {
	return c.done > 0 && c.reply == good && c.done-c.due <= t.f.Timeout
}

// medianResponse returns the median response time of the calls that succeeded.
func (t *trial) medianResponse(calls []*sentCall) time.Duration {
	var response []time.Duration
	for _, c := range calls {
		if t.succeeded(c) {
			response = append(response, c.done-c.due)
		}
	}
	if len(response) == 0 {
		return 0
	}
	slices.Sort(response)
	return response[len(response)/2]
}

// isSustained reports whether a warm copy of f sustains rate: 99 % of the calls succeed, and response times do not
// grow. It runs for ten minutes if the server spends credits, and three otherwise.
func isSustained(f Fixture, rate float64) bool {
	t := newTrial(f)
	t.offer(0.9*f.Truth.Rate, 2*time.Minute)
	d := 3 * time.Minute
	if slices.Contains(f.Truth.Findings, capacity.SpentCredits) {
		d = 10 * time.Minute
	}
	calls := t.offer(rate, d)
	t.advanceTo(t.now() + f.Timeout)
	bad := 0
	for _, c := range calls {
		if !t.succeeded(c) {
			bad++
		}
	}
	share := 0.01
	if f.Name == "errors-and-bucket" {
		share = 0.015 // 1 % fail at any rate
	}
	q := len(calls) / 4
	return float64(bad) <= share*float64(len(calls)) &&
		t.medianResponse(calls[3*q:]) <= t.medianResponse(calls[:q])+seconds(0.2)
}

// isReal reports whether the limit takes real time: it is in the sockets, or on a processor.
func (f Fixture) isReal() bool {
	return f.computes || f.syncs || f.bandwidth > 0 || slices.Contains(f.Truth.Limits, limit.Connections)
}

// TestTruthIsCapacity offers each fixture 3 % less and 3 % more than its true capacity, in virtual time.
func TestTruthIsCapacity(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	for _, f := range All() {
		if f.proxy != nil || f.isReal() {
			continue // its limit is in the proxy, or TestWorkIsLimited measures it
		}
		t.Run(f.Name, func(t *testing.T) {
			if rate := 0.97 * f.Truth.Rate; !isSustained(f, rate) {
				t.Errorf("%.1f/s, 3 %% below the truth, is not sustained", rate)
			}
			if rate := 1.03 * f.Truth.Rate; isSustained(f, rate) {
				t.Errorf("%.1f/s, 3 %% above the truth, is sustained", rate)
			}
		})
	}
}

// TestBurst sends many calls at once to each fixture with a burst allowance.
func TestBurst(t *testing.T) {
	for _, f := range All() {
		if f.proxy != nil || f.Truth.Burst == 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			x := newTrial(f)
			for range 1000 {
				x.call()
			}
			x.advanceTo(5 * time.Second)
			passed := 0
			for _, c := range x.calls {
				// Errors that come at any rate take tokens as well.
				if x.succeeded(c) || c.reply.status == http.StatusInternalServerError {
					passed++
				}
			}
			if float64(passed) != f.Truth.Burst {
				t.Errorf("%d of 1000 calls at once passed, want %.0f", passed, f.Truth.Burst)
			}
		})
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range All() {
		if len(f.Truth.Limits) == 0 && f.Truth.Seen {
			t.Errorf("%s: a limit without a name cannot be seen", f.Name)
		}
		if seen[f.Name] || f.Truth.Rate <= 0 || f.Truth.Formula == "" || len(f.Truth.Classes) == 0 {
			t.Errorf("%s: name is not unique, or truth is missing: %+v", f.Name, f.Truth)
		}
		seen[f.Name] = true
	}
	if len(seen) < 40 {
		t.Errorf("got only %d fixtures", len(seen))
	}
}
