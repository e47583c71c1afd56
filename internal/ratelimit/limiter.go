// Package ratelimit keeps everything that a run sends to its targets below one rate.
package ratelimit

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"tare/internal/clock"
)

// A Limiter bounds the rate of requests of all who share it. It keeps the instant up to which the requests so far use
// up the bound (generic cell rate algorithm): the further that is ahead of now, the more were sent too early. A nil
// Limiter sets no bound.
type Limiter struct {
	clock  clock.Clock
	rate   float64
	start  time.Time
	gap    int64        // ticks between two requests at the bound
	usedUp atomic.Int64 // ticks after start
}

// tick is the resolution: 1/1024 ns, so that rounding the gap costs less than 10⁻⁶ of a rate of a million a second.
const tick = 1024

// New returns a limiter of rate requests a second; for 0 it returns nil, which sets no bound.
func New(c clock.Clock, rate float64) *Limiter {
	if !(rate > 0) {
		return nil
	}
	return &Limiter{clock: c, rate: rate, start: c.Now(), gap: int64(math.Ceil(min(1e9/rate*tick, math.MaxInt64/4)))}
}

// After makes the first request of l wait for the turn that it would have had at an earlier limiter. It returns l.
func (l *Limiter) After(earlier *Limiter) *Limiter {
	if l != nil && earlier != nil {
		l.usedUp.Store(max(0, int64(earlier.Ahead(earlier.Since(l.start)))) * tick)
	}
	return l
}

// Rate returns the bound in 1/s; 0: unbounded.
func (l *Limiter) Rate() float64 {
	if l == nil {
		return 0
	}
	return l.rate
}

// Journaled is the bound as a journal has it, for an undo in another process.
func (l *Limiter) Journaled() string { return strconv.FormatFloat(l.Rate(), 'g', -1, 64) }

// ParseJournaled reads what Journaled has written.
func ParseJournaled(text string) (rate float64, err error) {
	if rate, err = strconv.ParseFloat(text, 64); err != nil || !(rate >= 0) {
		return 0, fmt.Errorf("max_rate %q is no rate", text)
	}
	return rate, nil
}

// Takes returns how long n requests take at the bound.
func (l *Limiter) Takes(n int) time.Duration {
	if l == nil {
		return 0
	}
	return time.Duration(min(float64(n)/l.rate*1e9, math.MaxInt64/2))
}

// Since converts t to the limiter's own time, which Take expects.
func (l *Limiter) Since(t time.Time) time.Duration { return t.Sub(l.start) }

// Ahead returns by how much the requests so far are ahead of the bound at instant now; negative when there were fewer
// than it allows.
func (l *Limiter) Ahead(now time.Duration) time.Duration {
	return time.Duration((l.usedUp.Load() - int64(now)*tick) / tick)
}

// Take counts a request that is sent at now, and returns 0. If the earlier requests are ahead of the bound by more than
// ahead, it counts nothing and returns the excess.
func (l *Limiter) Take(now, ahead time.Duration) time.Duration {
	t := int64(now) * tick
	for {
		used := l.usedUp.Load()
		if wait := used - t - int64(ahead)*tick; wait > 0 {
			return time.Duration((wait + tick - 1) / tick)
		}
		if l.usedUp.CompareAndSwap(used, max(used, t)+l.gap) {
			return 0
		}
	}
}

// onTime is how late a sleeper may wake and still be admitted.
const onTime = 10 * time.Millisecond

// Wait blocks until a request may be sent, and counts it; it fails with ctx's error. Waiting requests are one gap
// apart: unused time is lost, and requests that oversleep, because the host stalled, queue up again.
func (l *Limiter) Wait(ctx context.Context) error {
	if l == nil {
		return ctx.Err()
	}
	for {
		now := l.Since(l.clock.Now())
		at := l.reserve(now)
		if err := l.clock.Sleep(ctx, at-now); err != nil {
			return err
		}
		if l.Since(l.clock.Now())-at <= max(onTime, l.Takes(1)) {
			return nil
		}
	}
}

// reserve counts a request at the first instant at which the bound allows it, and returns that instant.
func (l *Limiter) reserve(now time.Duration) time.Duration {
	t := int64(now) * tick
	for {
		used := l.usedUp.Load()
		at := max(used, t)
		if l.usedUp.CompareAndSwap(used, at+l.gap) {
			return time.Duration((at + tick - 1) / tick)
		}
	}
}

// Repeating returns a transport for requests that have had their turn. net/http sends some again by itself, such as
// those whose connection was closed, or whose stream was refused: each repetition waits for a turn of its own.
func (l *Limiter) Repeating(next http.RoundTripper) http.RoundTripper {
	if l == nil {
		return next
	}
	return repeating{l, next}
}

type repeating struct {
	limit *Limiter
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t repeating) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent atomic.Bool
	ctx := r.Context()
	return t.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			if sent.Swap(true) {
				_ = t.limit.Wait(ctx) // if ctx has ended, net/http says so; the turn is taken all the same
			}
		},
	})))
}

// CloseIdleConnections closes those of the transport, as those of an http.Client's own are closed.
func (t repeating) CloseIdleConnections() { (&http.Client{Transport: t.next}).CloseIdleConnections() }
