package ratelimit

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

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
