package servers

import (
	"testing"
	"time"
)

// TestLink: what is sent waits for what was sent before it, and a link that was idle saves nothing up.
func TestLink(t *testing.T) {
	begun := time.Unix(0, 0)
	l := &link{bandwidth: 1000}
	for i, c := range []struct{ ready, want time.Duration }{
		{0, 500 * ms}, {0, time.Second}, {time.Second, 1500 * ms}, {time.Minute, time.Minute + 500*ms},
	} {
		if got := l.pass(begun.Add(c.ready), 500).Sub(begun); got != c.want {
			t.Errorf("piece %d of 500 bytes over 1000 bytes/s, ready at %v, has passed at %v, want %v", i+1, c.ready,
				got, c.want)
		}
	}
}
