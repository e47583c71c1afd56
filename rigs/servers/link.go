package servers

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/internal/clock"
)

const (
	longAnswer = 200_000 // bytes of an answer over a link
	piece      = 10_000  // bytes that answers take turns with
)

// A link sends so many bytes per second. Answers take turns on it.
type link struct {
	clock     clock.Clock
	bandwidth float64

	mu   sync.Mutex
	free time.Time // when all that was sent has passed
}

// send answers with a body that blanks make long.
func (l *link) send(ctx context.Context, w http.ResponseWriter, a reply) {
	body := a.body + strings.Repeat(" ", max(0, longAnswer-len(a.body)))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	out := http.NewResponseController(w)
	at := l.clock.Now()
	for len(body) > 0 {
		n := min(piece, len(body))
		at = l.pass(at, n)
		if l.clock.Sleep(ctx, at.Sub(l.clock.Now())) != nil {
			return
		}
		if _, err := io.WriteString(w, body[:n]); err != nil || out.Flush() != nil {
			return
		}
		body = body[n:]
	}
}

// pass has n bytes that are there at ready pass after all others, and returns when they have. The next ones of the same
// answer are ready then, however late the host wakes the sender.
func (l *link) pass(ready time.Time, n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(ready) {
		l.free = ready
	}
	l.free = l.free.Add(seconds(float64(n) / l.bandwidth))
	return l.free
}
