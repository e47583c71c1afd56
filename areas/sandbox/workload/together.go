package workload

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// CommonStart is the call of the Failure of a worker that was not ready at the common start of a batch.
const CommonStart = "common start"

// spinFor is how long before the common start a worker stops to sleep: a sleep ends too late by a fraction of that.
const spinFor = time.Millisecond

// Now returns the time by which workers agree on a common start (CLOCK_MONOTONIC).
func Now() (time.Duration, error) { return read(unix.CLOCK_MONOTONIC) }

// RunAt is Run in several workers at once: each prepares the batch, waits until the time at, and begins. The wall time
// counts from at. A worker that was not ready by then returns a Failure of CommonStart.
func (c *Client) RunAt(ctx context.Context, op string, n int, at time.Duration) (Cost, error) {
	a, err := c.ask(ctx, request{Verb: verbRun, Op: op, N: n, At: at})
	if err != nil {
		return Cost{}, fmt.Errorf("run %s together: %w", op, err)
	}
	return *a.Cost, nil
}

// await waits until the time at, in the end without giving up the processor.
func (w *worker) await(op string, at time.Duration) error {
	now, err := Now()
	if err != nil {
		return err
	}
	if now >= at {
		return &Failure{Op: op, Call: CommonStart, Detail: fmt.Sprintf("ready %s too late", now-at)}
	}
	if early := at - now - spinFor; early > 0 {
		most := unix.NsecToTimespec(int64(early)) // of this thread's own time: the runtime's others may wake late
		if err := unix.Nanosleep(&most, nil); err != nil {
			return fmt.Errorf("%s: await the common start: %w", op, err)
		}
	}
	for now < at {
		if w.halt.Load() {
			return errHalted
		}
		if now, err = Now(); err != nil {
			return err
		}
	}
	return nil
}
