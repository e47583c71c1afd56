package identity

import (
	"context"
	"testing"
	"time"

	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

// offerBurst offers rate for d on up to conns new connections and waits until every call has ended.
func offerBurst(t *testing.T, tg *target, rate float64, d, timeout time.Duration, conns int) []load.Call {
	t.Helper()
	return offerUntilOpen(t, tg, rate, d, timeout, conns, 0)
}

// offerUntilOpen is offerBurst that waits until no more than open calls have not ended.
func offerUntilOpen(t *testing.T, tg *target, rate float64, d, timeout time.Duration, conns, open int) []load.Call {
	t.Helper()
	tr := design.Treatment{ID: "default"}
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	end, err := tg.Endpoint(tr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := load.Open(t.Context(), load.Config{
		Endpoint: *end, Operations: ops, Timeout: timeout, MaxConns: conns,
		KeepCalls: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Offer(t.Context(), load.Constant{Rate: rate, Duration: d}, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), timeout+5*time.Second, 50*time.Millisecond,
		func() bool { return s.Progress().Open() <= open }); err != nil {
		t.Fatal(err)
	}
	if n := s.Progress().Open(); n > open {
		t.Fatalf("%d calls are still open", n)
	}
	return s.Calls(0)
}

// countShape counts the calls that succeeded, those that were sent and never answered, and all others.
func countShape(calls []load.Call) (good, stuck, other int) {
	for _, c := range calls {
		switch {
		case c.Sent > 0 && (c.Done == 0 || c.Outcome == load.Timeout):
			stuck++
		case c.Done > 0 && c.Outcome.Good():
			good++
		default:
			other++
		}
	}
	return good, stuck, other
}

// TestPublishedShape repeats four of the published rates: the two highest, and two that the server can serve.
func TestPublishedShape(t *testing.T) {
	hosttest.SkipUnlessLong(t)
	tg, _ := prepared(t, embedded("blog-2020"), design.Treatment{})
	tr := design.Treatment{ID: "default"}
	for _, want := range []struct {
		rate, share, tolerance float64
	}{{100, 1, 0}, {150, 1, 0}, {500, 0.59, 0.03}, {1000, 0.795, 0.05}} {
		start := time.Now()
		calls := offerBurst(t, tg, want.rate, 5*time.Second, 30*time.Second, 4096)
		good, stuck, other := countShape(calls)
		inWindow := 0
		for _, c := range calls {
			if c.Outcome.Good() && c.Done < 5*time.Second {
				inWindow++
			}
		}
		share := float64(good) / float64(len(calls))
		t.Logf("%v/s: %d of %d good = %.2f%%, %d stuck, %d other, in window %.1f/s, queue %v, took %v",
			want.rate, good, len(calls), 100*share, stuck, other,
			float64(inWindow)/5, *tg.Observe(t.Context(), tr).ListenQueue, time.Since(start))
		if want.share < 1 && stuck != 1025 {
			t.Errorf("%v/s: %d calls got stuck, not backlog + 1 = 1025", want.rate, stuck)
		}
		if share < want.share-want.tolerance || share > want.share+want.tolerance {
			t.Errorf("%v/s: success %.3f, want %.3f ± %.3f", want.rate, share, want.share, want.tolerance)
		}
		start = time.Now()
		settle(t, tg.arm("default"))
		t.Logf("recovered in %v, restarts %d", time.Since(start), tg.arm("default").restarts)
	}
}

// TestBacklogPlusOneCallsGetStuck: whatever the rate, exactly backlog + 1 calls get stuck, since the kernel queues one
// connection more than listen(2) asked for. They are the ones that are open when all others have been answered, however
// long the host lets that take.
func TestBacklogPlusOneCallsGetStuck(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	const backlog = 16
	spec := embedded("blog-2020")
	spec.Embedded.MaxConns, spec.Embedded.Backlog = new(8), new(backlog)
	tg, _ := prepared(t, spec, design.Treatment{ID: "default"})
	tr := design.Treatment{ID: "default"}
	shares := map[float64]float64{}
	for _, rate := range []float64{300, 600} {
		calls := offerUntilOpen(t, tg, rate, time.Second, 2*time.Minute, 4096, backlog+1)
		good, stuck, other := countShape(calls)
		t.Logf("%v/s: %d good, %d stuck, %d other", rate, good, stuck, other)
		if stuck != backlog+1 || other != 0 {
			t.Errorf("%v/s: %d calls got stuck and %d failed otherwise, want %d and 0", rate, stuck, other, backlog+1)
		}
		shares[rate] = float64(good) / float64(len(calls))
		if q := tg.Observe(t.Context(), tr).ListenQueue; q == nil || *q > backlog+1 {
			t.Errorf("%v/s: listen queue %v", rate, q)
		}
		settle(t, tg.arm("default"))
	}
	if shares[600] <= shares[300] {
		t.Errorf("success does not rise with the rate: %v", shares)
	}
}

// settle waits until the endpoint answers on a new connection and none waits to be accepted.
func settle(t *testing.T, p *arm) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	w := p.adapter.wire(p.session("settle"))
	for i := uint64(0); ; i++ {
		_, err := p.call(ctx, w, i*uint64(p.identities), time.Second)
		if depth := kit.QueueDepth(ctx, p.listenQueue()); err == nil && (depth == nil || *depth == 0) {
			return
		}
		if p.env.Clock.Sleep(ctx, warmPause) != nil {
			t.Fatalf("no answer, or connections wait in the listen queue: %v", err)
		}
	}
}
