package servers

import (
	"testing"
	"time"
)

// newTrialOf returns a trial of the fixture with that name.
func newTrialOf(t *testing.T, name string) *trial {
	t.Helper()
	for _, f := range All() {
		if f.Name == name {
			return newTrial(f)
		}
	}
	t.Fatalf("no fixture %s", name)
	return nil
}

// countReplies counts the replies by status; 0 stands for resets, −1 for calls without an answer.
func countReplies(calls []*sentCall) map[int]int {
	n := map[int]int{}
	for _, c := range calls {
		if c.done == 0 {
			n[-1]++
		} else {
			n[c.reply.status]++
		}
	}
	return n
}

// TestOverload offers 1.5 times the capacity for some seconds and checks the replies.
func TestOverload(t *testing.T) {
	for _, c := range []struct {
		name string
		look func(t *testing.T, x *trial, calls []*sentCall)
	}{
		{"penalty", func(t *testing.T, _ *trial, calls []*sentCall) {
			if n := countReplies(calls[len(calls)/2:]); n[200] != 0 || n[429] == 0 {
				t.Errorf("the second half was answered %v, want refusals only", n)
			}
		}},
		{"sliding-log", func(t *testing.T, _ *trial, calls []*sentCall) {
			if n := countReplies(calls); n[200] != 6*110 {
				t.Errorf("%v in 6 s, want 110 a second", n)
			}
		}},
		{"tarpit", func(t *testing.T, _ *trial, calls []*sentCall) {
			for _, c := range calls {
				if took := c.done - c.due; c.reply.status == 429 && took != 2*time.Second {
					t.Errorf("a refusal took %v, want 2 s", took)
				}
			}
		}},
		{"error-document", func(t *testing.T, x *trial, calls []*sentCall) {
			if n := countReplies(calls); n[200] != len(calls) {
				t.Errorf("got replies %v, want 200 for all %d", n, len(calls))
			}
			x.advanceTo(x.now() + time.Minute)
			if bad := countFailed(x, x.offer(160, 4*time.Second)); bad == 0 {
				t.Error("no refusal among 640 calls in 4 s after a pause: 250 are saved up, and 320 come")
			}
		}},
		{"queue-timeout", func(t *testing.T, x *trial, calls []*sentCall) {
			x.advanceTo(x.now() + time.Second)
			n := countReplies(calls)
			for _, c := range calls {
				if took := c.done - c.due; c.reply.status == 503 && took != 200*ms {
					t.Errorf("a refusal took %v, want 200 ms", took)
				}
			}
			if n[503] == 0 || n[-1] != 0 {
				t.Errorf("got replies %v, want some 503", n)
			}
		}},
		{"lifo", func(t *testing.T, x *trial, calls []*sentCall) {
			last := calls[len(calls)-50:]
			if m := x.medianResponse(last); m > 50*ms {
				t.Errorf("the median of the last calls is %v; the newest should be served first", m)
			}
			if n := countReplies(calls); n[-1] == 0 {
				t.Errorf("got replies %v, want some calls without one", n)
			}
		}},
		{"early-drop", func(t *testing.T, _ *trial, calls []*sentCall) {
			if n := countReplies(calls[len(calls)/2:]); n[503] < len(calls)/8 || n[503] > len(calls)/4 {
				t.Errorf("got replies %v to the second half, want a third of it dropped", n)
			}
		}},
		{"collapse", func(t *testing.T, x *trial, _ []*sentCall) {
			if bad := countFailed(x, x.offer(0.8*150, 20*time.Second)); bad < 2000 {
				t.Errorf("%d of 2400 calls at 0.8 of the capacity failed after an overload, want nearly all", bad)
			}
			x.advanceTo(x.now() + 2*time.Minute)
			if bad := countFailed(x, x.offer(0.8*150, 20*time.Second)); bad > 0 {
				t.Errorf("%d calls failed after a long pause", bad)
			}
		}},
		{"stops", func(t *testing.T, x *trial, _ []*sentCall) { wantNoRecovery(t, x) }},
		{"dies", func(t *testing.T, x *trial, _ []*sentCall) { wantNoRecovery(t, x) }},
		{"restarts", func(t *testing.T, x *trial, calls []*sentCall) {
			if n := countReplies(calls); n[0] < 200 {
				t.Errorf("got replies %v, want waiting calls to be reset", n)
			}
			x.advanceTo(x.now() + 5*time.Second)
			if bad := countFailed(x, x.offer(100, 2*time.Second)); bad > 0 {
				t.Errorf("%d calls failed 5 s later", bad)
			}
		}},
		{"silence", func(t *testing.T, _ *trial, calls []*sentCall) {
			if n := countReplies(calls); n[-1] < 200 || n[200]+n[-1] != len(calls) {
				t.Errorf("got replies %v, want good answers and silence only", n)
			}
		}},
		{"errors-and-bucket", func(t *testing.T, _ *trial, calls []*sentCall) {
			if n := countReplies(calls); n[500] == 0 || n[500] > n[200]/20 {
				t.Errorf("got replies %v, want 500 for 1 %%", n)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTrialOf(t, c.name)
			x.offer(0.5*x.f.Truth.Rate, 10*time.Second)
			x.advanceTo(x.now() + 5*time.Second)
			calls := x.offer(1.5*x.f.Truth.Rate, 6*time.Second)
			c.look(t, x, calls)
		})
	}
}

// countFailed counts the calls without a good answer in time.
func countFailed(x *trial, calls []*sentCall) int {
	x.advanceTo(x.now() + x.f.Timeout)
	bad := 0
	for _, c := range calls {
		if !x.succeeded(c) {
			bad++
		}
	}
	return bad
}

// wantNoRecovery checks that the server answers nothing any more, even long after the load has stopped.
func wantNoRecovery(t *testing.T, x *trial) {
	t.Helper()
	x.advanceTo(x.now() + time.Hour)
	if calls := x.offer(1, 10*time.Second); countFailed(x, calls) != len(calls) {
		t.Error("a call was answered an hour after the server broke")
	}
}

// TestCapacityChanges: the capacity of some servers depends on what they have served.
func TestCapacityChanges(t *testing.T) {
	served := func(calls []*sentCall) int { return countReplies(calls)[200] }
	x := newTrialOf(t, "cold-start")
	if n := served(x.offer(100, 2*time.Second)); n < 55 || n > 60 {
		t.Errorf("cold: %d in the first 2 s, want 30/s", n)
	}
	x = newTrialOf(t, "autoscaling")
	x.offer(90, 10*time.Second)
	if a, b := served(x.offer(300, 5*time.Second)), served(x.offer(300, 20*time.Second)); a != 500 || b < 2500 {
		t.Errorf("%d in 5 s and %d in 20 s: want 100/s at first, and 200/s in the end", a, b)
	}
	x = newTrialOf(t, "burst-credits")
	a := served(x.offer(300, 10*time.Second))
	x.offer(300, 20*time.Second)
	before := served(x.calls)
	x.offer(300, 10*time.Second)
	if b := served(x.calls) - before; a < 1990 || a > 2010 || b < 990 || b > 1010 {
		t.Errorf("%d in the first 10 s and %d in the last: want 200/s at first, and 100/s in the end", a, b)
	}
	x = newTrialOf(t, "pauses")
	x.offer(300, time.Minute)
	if n := served(x.calls); n < 60*170-20 || n > 60*170+20 {
		t.Errorf("%d in a minute, want 170/s", n)
	}
}

// TestLateTimers: late timers of the host do not make a server slower.
func TestLateTimers(t *testing.T) {
	x := newTrial(Fixture{Timeout: time.Minute, build: func(r *rig) part {
		return r.station(&station{servers: 1, service: constant(10 * ms)})
	}})
	for range 1000 {
		x.call()
	}
	for x.now() < 10*time.Second { // it gets the processor every 70 ms
		x.clock.Advance(70 * ms)
		x.rig.mu.Lock()
		x.rig.catchUp()
		x.rig.mu.Unlock()
	}
	if last := x.calls[999]; last.done != 10*time.Second {
		t.Errorf("1000 services of 10 ms ended at %v, want 10 s", last.done)
	}
	if x.rig.ran != 1000 || x.rig.late != 858 { // of seven events only the one at the end of the 70 ms is in time
		t.Errorf("%d of %d events were late", x.rig.late, x.rig.ran)
	}
}
