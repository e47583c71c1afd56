package reference

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tare/internal/clock"
)

// A testCache is a cache on a fake clock, with a mint that numbers its tokens.
type testCache struct {
	*cache
	clock  *clock.Fake
	owner  *gate
	minted int
	fail   error
}

func newTestCache(t *testing.T, k EndpointKnobs) *testCache {
	t.Helper()
	c := clock.NewFake(time.Unix(1_000_000, 0))
	g := newGate()
	return &testCache{cache: newCache(context.Background(), k, 7, c, g), clock: c, owner: g}
}

// token gets a credential and waits for the refresh that it may have started.
func (v *testCache) token(t *testing.T) string {
	t.Helper()
	got, err := v.get(t.Context(), "k", func(context.Context) (credential, error) {
		v.minted++
		return credential{fmt.Sprint(v.minted), v.clock.Now().Add(time.Hour)}, v.fail
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		v.mu.Lock()
		flying := len(v.flights)
		v.mu.Unlock()
		if flying == 0 {
			return got.value
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCacheUntilExpiry(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, Singleflight: true})
	for i, c := range []struct {
		later time.Duration
		want  string
	}{
		{0, "1"},
		{30 * time.Minute, "1"},
		{29*time.Minute + 59*time.Second, "1"}, // one second left: expires_in 1
		{time.Millisecond, "2"},                // less: as good as expired
		{time.Hour - time.Second, "2"},
		{time.Hour, "3"}, // and again
	} {
		v.clock.Advance(c.later)
		if got := v.token(t); got != c.want {
			t.Errorf("step %d: token %s, want %s", i, got, c.want)
		}
	}
}

func TestCacheOff(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Singleflight: true})
	if a, b := v.token(t), v.token(t); a != "1" || b != "2" {
		t.Errorf("tokens %s and %s", a, b)
	}
}

func TestEarlyRefreshServesTheOldToken(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, Singleflight: true, RefreshEarly: 10 * time.Minute})
	v.token(t)
	v.clock.Advance(50*time.Minute - time.Second)
	if got := v.token(t); got != "1" || v.minted != 1 {
		t.Fatalf("before the refresh: token %s, %d minted", got, v.minted)
	}
	v.clock.Advance(time.Second)
	if got := v.token(t); got != "1" || v.minted != 2 {
		t.Errorf("at the refresh: token %s, %d minted", got, v.minted)
	}
	if got := v.token(t); got != "2" || v.minted != 2 {
		t.Errorf("after the refresh: token %s, %d minted", got, v.minted)
	}
	if n := v.refreshes.Load(); n != 1 {
		t.Errorf("%d refreshes are counted", n)
	}
}

func TestFailedRefreshKeepsTheTokenAndWaits(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, Singleflight: true, RefreshEarly: 10 * time.Minute})
	v.token(t)
	v.clock.Advance(55 * time.Minute)
	v.fail = errors.New("down")
	for range 5 {
		if got := v.token(t); got != "1" {
			t.Fatalf("token %s", got)
		}
	}
	if v.minted != 2 {
		t.Errorf("%d mints within a second of a failure, want one", v.minted)
	}
	v.fail = nil
	v.clock.Advance(retryAfter)
	v.token(t)
	if got := v.token(t); got != "3" {
		t.Errorf("after the pause: token %s", got)
	}
}

// TestJitterSpreadsRefreshes: with jitter, tokens that were made together are refreshed at different times, all within
// the range.
func TestJitterSpreadsRefreshes(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, RefreshEarly: 5 * time.Minute, Jitter: 10 * time.Minute})
	expires := v.clock.Now().Add(time.Hour)
	seen := map[int]int{}
	for i := range 300 {
		key := fmt.Sprint(i)
		v.store(key, credential{"x", expires})
		early := expires.Sub(v.entries[key].refresh)
		if early < 5*time.Minute || early > 15*time.Minute {
			t.Fatalf("refresh %v before expiry", early)
		}
		seen[int((early-5*time.Minute)/time.Minute)]++
	}
	for minute := range 10 {
		if seen[minute] < 10 { // 30 on average
			t.Errorf("minute %d holds %d of 300 refreshes", minute, seen[minute])
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true})
	for i := range maxEntries + 100 {
		v.store(fmt.Sprint(i), credential{"x", v.clock.Now().Add(time.Hour)})
	}
	if n := len(v.entries); n != maxEntries {
		t.Errorf("%d entries, want %d", n, maxEntries)
	}
}

func TestClosedGateAdmitsNobody(t *testing.T) {
	g := newGate()
	if !g.enter() {
		t.Fatal("an open gate is closed")
	}
	done := make(chan struct{})
	go func() { g.shut(); close(done) }()
	for g.enter() {
		g.leave() // until shut has begun
	}
	select {
	case <-done:
		t.Fatal("shut did not wait")
	default:
	}
	g.leave()
	<-done
}
