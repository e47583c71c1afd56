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
	for len(body) > 0 {
		n := min(piece, len(body))
		if l.clock.Sleep(ctx, l.pass(n)) != nil {
			return
		}
		if _, err := io.WriteString(w, body[:n]); err != nil || out.Flush() != nil {
			return
		}
		body = body[n:]
	}
}

// pass has n bytes pass after all others, and returns how long that takes.
func (l *link) pass(n int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(seconds(float64(n) / l.bandwidth))
	return l.free.Sub(now)
}
