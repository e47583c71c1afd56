package kit

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"tare/internal/clock"
)

// A starved process runs for starvedRun of every starvedPeriod.
const (
	starvedRun    = 10 * time.Millisecond
	starvedPeriod = 100 * time.Millisecond
)

// StarvedDoes says what Starve does to a process.
func StarvedDoes(who string) string {
	return fmt.Sprintf("%s is stopped for all but %v of every %v, as under a CPU quota", who, starvedRun, starvedPeriod)
}

// Starve stops and continues a process by turns, by the signals that signal sends, until lift is called, which leaves
// it running. A child of tare that is stopped ends with tare all the same.
func Starve(c clock.Clock, signal func(syscall.Signal) error) (lift func(context.Context) error) {
	return Meanwhile(func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := signal(syscall.SIGSTOP); err != nil {
				return err
			}
			_ = c.Sleep(ctx, starvedPeriod-starvedRun) // whatever ends it, the process goes on
			if err := signal(syscall.SIGCONT); err != nil {
				return err
			}
			_ = c.Sleep(ctx, starvedRun)
		}
		return nil
	})
}

// Meanwhile runs do until the function that it returns is called, which waits for its end.
func Meanwhile(do func(context.Context) error) (lift func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	return func(context.Context) error {
		cancel()
		return <-done
	}
}
