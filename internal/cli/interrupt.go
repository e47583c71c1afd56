package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errInterrupted is the cause of a context that the user has cancelled.
var errInterrupted = errors.New("interrupted")

// interrupts are the signals that end the command run, from its start to its end.
type interrupts struct {
	*app
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	phase interruptPhase
	dir   string // the record of the run
	seen  int    // signals during the run
}

// interruptPhase says what an interrupt finds.
type interruptPhase int

const (
	beforeRun interruptPhase = iota // nothing to undo: it ends the process
	duringRun                       // the first one ends the run, which undoes its changes and writes what it has
	afterRun                        // only the report is left: it ends the process
)

// interruptible returns a context that the first interrupt of a run cancels, so that the run can undo its changes and
// write a partial report. All other interrupts end the process. stop restores the signals.
func (a *app) interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	in := &interrupts{app: a, cancel: cancel}
	a.interrupts = in
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	owner := make(chan struct{})
	go func() {
		defer close(owner)
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				in.take(s)
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

// take handles one signal. It ends the process with the lock held, so that no run begins meanwhile.
func (in *interrupts) take(s os.Signal) {
	in.mu.Lock()
	switch {
	case in.phase == beforeRun:
		in.tell("\ntare: %s: stopped before the run; nothing was measured\n", s)
	case in.phase == afterRun:
		in.tell("\ntare: %s: stopped after the run. Next: tare report %s\n", s, in.dir)
	case in.seen == 0:
		in.seen++
		in.tell("\ntare: %s: undoing all changes and writing a partial report; a second interrupt stops immediately\n", s)
		in.cancel(errInterrupted)
		in.mu.Unlock()
		return
	default:
		in.tell("\ntare: stopped immediately; nothing was undone. Next: tare undo %s\n", in.dir)
	}
	os.Exit(ExitInterrupted)
}

// begin says that the run whose record is in dir begins. The returned function says that it has ended.
func (in *interrupts) begin(dir string) (end func()) {
	set := func(p interruptPhase) {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.phase, in.dir = p, dir
	}
	set(duringRun)
	return func() { set(afterRun) }
}
