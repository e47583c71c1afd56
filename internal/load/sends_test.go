package load

import (
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/ratelimit"
	"tare/rigs/hosttest"
)

// freeze keeps an engine from doing anything for d, as a host that stops the process does.
func freeze(s Stream, d time.Duration) {
	switch e := s.(*stream).engine.(type) {
	case *std:
		e.mu.Lock()
		defer e.mu.Unlock()
		time.Sleep(d)
	default:
		blockLoops(e, d)
	}
}

// sentOf are the instants at which calls were sent, the earliest first.
func sentOf(calls ...Call) (out []time.Duration) {
	for _, c := range calls {
		if !c.Unsent() {
			out = append(out, c.Sent)
		}
	}
	slices.Sort(out)
	return out
}

// wantRate checks every stretch of time: at most rate × (its length + ahead) calls, and two, were sent in it.
func wantRate(t *testing.T, sent []time.Duration, rate float64, ahead time.Duration) {
	t.Helper()
	for i := range sent {
		for j := i; j < len(sent); j++ {
			if most := rate*(sent[j]-sent[i]+ahead).Seconds() + 2; float64(j-i+1) > most {
				t.Errorf("%d calls were sent within %v, at most %.0f may", j-i+1, sent[j]-sent[i], most)
				return
			}
		}
	}
}

const (
	floodRate = 200.0
	floodTime = 1500 * time.Millisecond
	// lateAhead is how far late calls may be ahead of the rate, and prompt ones between them.
	lateAhead = 110 * time.Millisecond
)

// TestNoFloodAfterTheGeneratorStalled: what could not be sent in time is sent at the rate, or not at all.
func TestNoFloodAfterTheGeneratorStalled(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		tried(t, func() bool {
			s := open(t, newTarget(t, says(good)).addr, set, func(c *Config) { c.MaxRate = floodRate })
			host := watchHost(t)
			go func() {
				time.Sleep(floodTime / 5)
				freeze(s, floodTime/2)
			}()
			offer(t, s, Constant{Rate: floodRate, Duration: floodTime})
			drain(t, s)
			calls := audit(t, s, 0)
			wantRate(t, sentOf(calls...), floodRate, lateAhead+host())
			late := 0
			for _, c := range calls {
				if c.Outcome != OK {
					t.Errorf("%+v", c)
				}
				if c.Lateness() > floodTime/10 {
					late++
				}
			}
			return late >= 50 && s.Progress().Held >= 50
		})
	})
}

// TestNoFloodAfterTheTargetStalled: calls that waited for a connection do not all go when the target is there again.
func TestNoFloodAfterTheTargetStalled(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		tried(t, func() bool { return stalled(t, set) >= 10 })
	})
}

// stalled offers load to a target that answers nothing for a while, and returns how many calls were held back.
func stalled(t *testing.T, set func(*Config)) uint64 {
	t.Helper()
	var stalls atomic.Bool
	until := sync.OnceValue(func() time.Time { return time.Now().Add(floodTime / 2) }) // from its first request on
	srv := newTarget(t, requests(func(c net.Conn, _ *http.Request) bool {
		if stalls.Load() {
			time.Sleep(time.Until(until()))
		}
		_, err := io.WriteString(c, good)
		return err == nil
	}))
	s := open(t, srv.addr, set, func(c *Config) { c.MaxRate, c.MaxConns = floodRate, 4 })
	offer(t, s, Constant{Rate: 20, Duration: 200 * time.Millisecond})
	drain(t, s)
	stalls.Store(true)
	host := watchHost(t)
	offer(t, s, Constant{Rate: floodRate, Duration: floodTime})
	drain(t, s)
	wantRate(t, sentOf(audit(t, s, 0)...), floodRate, lateAhead+host())
	return s.Progress().Held
}

// TestStreamsAndChecksShareALimit: the load of two streams, calls of their own and what a run asks beside them are one
// account.
func TestStreamsAndChecksShareALimit(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		const rate = 100.0
		limit := ratelimit.New(clock.System{}, rate)
		srv := newTarget(t, says(good))
		shared := func(c *Config) { c.MaxRate, c.Limit = rate, limit }
		a, b := open(t, srv.addr, set, shared), open(t, srv.addr, set, shared)
		begin, done, checks := time.Now(), make(chan struct{}), 0
		go func() {
			defer close(done)
			for time.Since(begin) < time.Second {
				if limit.Wait(t.Context()) != nil {
					return
				}
				checks++
				a.Fresh(t.Context(), 0, 0, time.Second)
				checks++
			}
		}()
		other := make(chan struct{})
		go func() {
			defer close(other)
			offer(t, b, Constant{Rate: 0.8 * rate, Duration: time.Second})
		}()
		offer(t, a, Constant{Rate: 0.8 * rate, Duration: time.Second})
		<-other
		<-done
		drain(t, a)
		drain(t, b)
		took := time.Since(begin).Seconds()
		all := float64(checks + len(sentOf(a.Calls(0)...)) + len(sentOf(b.Calls(0)...)))
		// Prompt calls may be a second and ten ahead at any time.
		if most := rate*(took+1) + 12; all > most || all < 160 {
			t.Errorf("%.0f requests in %.2f s, at most %.0f may be", all, took, most)
		}
		if checks < 2 {
			t.Errorf("%d checks: the load starves them", checks)
		}
	})
}

// TestCallsThatAreHeldBackUntilTheEndSaySo: they were never sent, and it was not a connection that they waited for.
func TestCallsThatAreHeldBackUntilTheEndSaySo(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		tried(t, func() bool {
			s := open(t, newTarget(t, says(good)).addr, set, func(c *Config) { c.MaxRate, c.Timeout = 20, time.Second })
			go func() {
				time.Sleep(200 * time.Millisecond)
				freeze(s, 700*time.Millisecond)
			}()
			offer(t, s, Constant{Rate: 20, Duration: 2 * time.Second})
			drain(t, s)
			return slices.ContainsFunc(audit(t, s, time.Second), func(c Call) bool {
				return c.Unsent() && c.Cause == CauseHeldBack && c.Ready != 0
			})
		})
	})
}

// tried does something until what is to be looked at has come about, which a busy host can prevent.
func tried(t *testing.T, came func() bool) {
	t.Helper()
	for range 5 {
		if came() || t.Failed() {
			return
		}
	}
	t.Error("what is to be tried has never come about")
}

// TestRandomArrivalsAreNotHeldBack: at a rate of exactly max_rate on average, some are closer than the bound allows. A
// call that is sent on time is not held back for it, nor is any call while none is late.
func TestRandomArrivalsAreNotHeldBack(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Run("rule", func(t *testing.T) {
		limit := ratelimit.New(clock.System{}, 500)
		s := newSends(limit, newClock())
		late := 0
		for i, at := range instants(Poisson{Rate: 500, Duration: time.Minute, Seed: 1}) {
			if s.admit(int64(at), int64(at)) > 0 {
				t.Fatalf("call %d is held back", i)
			}
			if limit.Ahead(s.shift+at) > s.ahead.late {
				late++
			}
		}
		if late == 0 {
			t.Error("no arrival is so close that a late call would be held back: nothing was tried")
		}
	})
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, says(good)).addr, set, func(c *Config) { c.MaxRate = 500 })
		offer(t, s, Poisson{Rate: 500, Duration: 2 * time.Second, Seed: 1})
		drain(t, s)
		late := uint64(0)
		for _, c := range s.Calls(0) {
			if int64(c.Sent-c.Intended) > onTimeWithin {
				late++
			}
		}
		if held := s.Progress().Held; held > 0 && late == 0 {
			t.Errorf("%d of %d calls were held back, and none was late", held, s.Progress().Due)
		}
	})
}
