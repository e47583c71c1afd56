package bundle

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// What it may take to know whether somebody's policies are valid: a few lines can ask for more than any time or memory.
const (
	validWithin = time.Minute
	validWith   = 1 << 30 // in bytes, besides what the process has
)

// ErrTooMuch means that something was given up, since it took too long or too much memory. It goes on to the end of the
// process.
var ErrTooMuch = errors.New("divide it")

// Limit bounds a check.
type Limit struct {
	Within time.Duration
	Most   uint64 // bytes in use by the process
}

// DefaultLimit is a minute, and 1 GiB more than the process has in use.
func DefaultLimit() Limit { return Limit{validWithin, validWith + 3*inUse()} } // of what is in use a part is garbage

// Check returns what do says, or ErrTooMuch when that takes more than the limit. what is what do finds out. A do that
// looks at its context ends then.
func (l Limit) Check(what string, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.Within)
	defer cancel()
	often := time.NewTicker(l.Within / 1000)
	defer often.Stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }() // nothing can end it between its looks but the end of the process
	for ctx.Err() == nil && inUse() <= l.Most {
		select {
		case err := <-done:
			if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
				return err
			} // otherwise do saw the end of its time before this loop did
		case <-ctx.Done():
		case <-often.C:
		}
	}
	return fmt.Errorf("%s takes more than %v or %d MiB to know: %w", what, l.Within, l.Most>>20, ErrTooMuch)
}

// inUse is how much memory this process has taken and not freed.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
