package ratelimit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/clock"
)

// TestRepetitionsWaitForTheirTurn: a server that closes each kept connection as soon as it has read the next request is
// sent that again, and each time counts.
func TestRepetitionsWaitForTheirTurn(t *testing.T) {
	var arrived, served atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1)%2 == 1 {
			served.Add(1)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	defer s.Close()
	by := clock.NewFake(time.Unix(0, 0))
	limit := New(by, 2)
	client := &http.Client{Transport: limit.Repeating(s.Client().Transport)}
	const asked = 10
	for range asked {
		if err := limit.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	if served.Load() != asked || arrived.Load() <= asked {
		t.Fatalf("%d requests arrived, and %d were answered: nothing was sent again", arrived.Load(), served.Load())
	}
	if least := limit.Takes(int(arrived.Load()) - 1); by.Now().Sub(time.Unix(0, 0)) < least {
		t.Errorf("%d requests took %v, at least %v was due", arrived.Load(), by.Now().Sub(time.Unix(0, 0)), least)
	}
}
