package ratelimit

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"tare/internal/clock"
)

func TestTakeKeepsToTheRateInEveryStretch(t *testing.T) {
	for _, rate := range []float64{0.5, 3, 50, 1000, 333333, 3e6} {
		l := New(clock.NewFake(time.Unix(0, 0)), rate)
		const ahead = 100 * time.Millisecond
		var sent []time.Duration
		var now time.Duration
		for len(sent) < 2000 {
			wait := l.Take(now, ahead)
			if wait == 0 {
				if sent = append(sent, now); len(sent) == 1000 {
					now += 6 * time.Second // nothing is asked for a while
				}
				continue
			}
			now += wait
		}
		for i := range sent {
			for _, j := range []int{i, min(i+1, len(sent)-1), min(i+10, len(sent)-1), min(i+500, len(sent)-1), len(sent) - 1} {
				if most := rate*(sent[j]-sent[i]+ahead).Seconds() + 1 + 1e-6; float64(j-i+1) > most {
					t.Fatalf("%g/s: %d requests in %v, at most %.1f may be", rate, j-i+1, sent[j]-sent[i], most)
				}
			}
		}
		if n := float64(1000) / rate; rate < 1000 && math.Abs((sent[999]-sent[0]+ahead).Seconds()-n) > 2/rate {
			t.Errorf("%g/s: 1000 requests in %v: the bound was not used", rate, sent[999]-sent[0])
		}
	}
}

// TestAfterAnotherLimiter: two limiters of one run in turn keep to the rate as one does.
func TestAfterAnotherLimiter(t *testing.T) {
	c := clock.NewFake(time.Unix(0, 0))
	begin := c.Now()
	first := New(c, 0.5).After(nil)
	if err := first.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := New(c, 0.5).After(first).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := c.Now().Sub(begin); took != 2*time.Second {
		t.Errorf("the second request at 0.5/s came after %v", took)
	}
	c.Advance(time.Minute)
	begin = c.Now()
	if err := New(c, 0.5).After(first).Wait(t.Context()); err != nil || c.Now() != begin || New(c, 0).After(first) != nil {
		t.Errorf("a minute later a request waits %v, %v", c.Now().Sub(begin), err)
	}
}

func TestWaitSavesNothingUp(t *testing.T) {
	c := clock.NewFake(time.Unix(0, 0))
	l := New(c, 10)
	c.Advance(time.Minute)
	begin := c.Now()
	for range 11 {
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := c.Now().Sub(begin); took < time.Second || took > time.Second+time.Millisecond {
		t.Errorf("11 requests at 10/s took %v", took)
	}
}

// oversleeper is a clock on which a sleep takes until a stall of the host has ended.
type oversleeper struct {
	clock.System
	until time.Time
}

func (o oversleeper) Sleep(ctx context.Context, d time.Duration) error {
	return o.System.Sleep(ctx, max(d, time.Until(o.until)))
}

// TestSleepersOfAStallDoNotGoTogether: their time has come for all of them when the host goes on.
func TestSleepersOfAStallDoNotGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, n = 50.0, 20
		l := New(oversleeper{until: time.Now().Add(500 * time.Millisecond)}, rate)
		at := make(chan time.Time, n)
		for range n {
			go func() {
				if err := l.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				at <- time.Now()
			}()
		}
		first := <-at
		last := first
		for range n - 1 {
			last = <-at
		}
		if took := last.Sub(first); took < 200*time.Millisecond {
			t.Errorf("%d requests went within %v of one another, at %g/s", n, took, rate)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	l := New(clock.System{}, 0.001)
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestTakes(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 0, 1: 20 * time.Millisecond, 100: 2 * time.Second} {
		if got := New(clock.System{}, 50).Takes(n); got != want {
			t.Errorf("%d requests take %v at 50/s, want %v", n, got, want)
		}
	}
	if got := New(clock.System{}, 1e-9).Takes(math.MaxInt); got < 100*365*24*time.Hour {
		t.Errorf("endlessly many requests take %v", got)
	}
}

func TestNoLimit(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN()} {
		l := New(clock.System{}, rate)
		if l != nil || l.Rate() != 0 || l.Takes(5) != 0 || l.Wait(t.Context()) != nil {
			t.Errorf("%g/s is a bound: %+v", rate, l)
		}
	}
}

// TestJournaled: a journal gives an undo the bound of the run, and what is no rate is refused.
func TestJournaled(t *testing.T) {
	var none *Limiter
	for text, l := range map[string]*Limiter{"0": none, "12.5": New(clock.System{}, 12.5)} {
		if got, err := ParseJournaled(l.Journaled()); l.Journaled() != text || got != l.Rate() || err != nil {
			t.Errorf("%q is read as %v, %v", l.Journaled(), got, err)
		}
	}
	for _, text := range []string{"", "-1", "NaN", "ten", "1e999"} {
		if rate, err := ParseJournaled(text); err == nil {
			t.Errorf("%q is read as %v", text, rate)
		}
	}
}
