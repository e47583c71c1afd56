package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of a context that the person ended.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that the first interrupt ends, so that a run can undo its changes and write what it has. A second
// interrupt ends the process at once, after telling how to undo later. stop gives the signals back.
func (a *app) interruptible(ctx context.Context, dir string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	owner := make(chan struct{})
	go func() {
		defer close(owner)
		for seen := 0; ; seen++ {
			select {
			case <-done:
				return
			case s := <-signals:
				if seen > 0 {
					a.tell("\ntare: stopped at once; nothing was undone. Next: tare undo %s\n", dir)
					os.Exit(ExitInterrupted)
				}
				a.tell("\ntare: %s: undoing and writing a partial report; once more stops at once\n", s)
				cancel(errInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-owner
		cancel(nil)
	}
}
