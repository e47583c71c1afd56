// Package capacity searches for the rate at which a target breaks. It is pure: it sees the target only through a
// Stream, so that it runs against simulated servers as well as against real ones.
package capacity

import (
	"context"
	"time"

	"tare/internal/load"
)

// Stream is what the search needs of a load.Stream; the simulators implement it in virtual time.
type Stream interface {
	Now() time.Duration
	Offer(ctx context.Context, p load.Process, poll time.Duration, stop func() bool) (load.Segment, error)
	Wait(ctx context.Context, d, poll time.Duration, done func() bool) error
	Fresh(ctx context.Context, op int, i uint64, timeout time.Duration) load.Call
	DropIdle()
	Reset()
	Progress() load.Progress
	Calls(since time.Duration) []load.Call
}
