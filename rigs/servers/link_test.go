package servers

import (
	"testing"
	"time"

	"tare/internal/clock"
)

// TestLink: what is sent waits for what was sent before it, and a link that was idle saves nothing up.
func TestLink(t *testing.T) {
	c := clock.NewFake(time.Unix(0, 0))
	l := &link{clock: c, bandwidth: 1000}
	for i, want := range []time.Duration{500 * ms, time.Second, 500 * ms} {
		if i == 2 {
			c.Advance(time.Minute)
		}
		if got := l.pass(500); got != want {
			t.Errorf("piece %d of 500 bytes over 1000 bytes/s has passed after %v, want %v", i+1, got, want)
		}
	}
}
