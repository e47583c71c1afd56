package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/record"
)

// errInterrupted is the cause of a context that the user has cancelled.
var errInterrupted = errors.New("interrupted")

// interrupts are the signals that end the command run, from its start to its end.
type interrupts struct {
	*app
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	phase interruptPhase
	dir   string         // of the record
	w     *record.Writer // of the run
	first os.Signal      // the first signal while something may be left to undo; nil: none yet
	at    time.Time      // when it came
	alone bool           // nobody reads the output any more
}

// interruptPhase says what an interrupt finds.
type interruptPhase int

const (
	beforeRun interruptPhase = iota // nothing to undo: it ends the process
	undoing                         // what an earlier run has left is undone; the first one lets that end
	duringRun                       // the first one ends the run, which undoes its changes and writes what it has
	afterRun                        // only the report is left: it ends the process
)

// interruptible returns a context that the first interrupt of a run cancels, so that the run can undo its changes and
// write a partial report; so does one while an earlier run is undone before it goes on. All other interrupts end the
// process. A reader of the output that goes away ends nothing: what is written to it is lost, and the record says so.
// stop restores the signals.
func (a *app) interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	in := &interrupts{app: a, cancel: cancel}
	a.interrupts = in
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	pipes := make(chan os.Signal, 1) // not ignored: children would inherit that
	signal.Notify(pipes, syscall.SIGPIPE)
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
			case <-pipes:
				in.noteLostReader()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
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
	case in.first == nil:
		in.first, in.at = s, time.Now()
		what := "undoing all changes and writing a partial report"
		if in.phase == undoing {
			what = "undoing what the run has left; it does not go on"
		}
		in.tell("\ntare: %s: %s; a second interrupt stops immediately\n", s, what)
		in.cancel(errInterrupted)
		in.mu.Unlock()
		return
	case in.repeats(s, time.Now()):
		in.mu.Unlock()
		return
	default:
		in.tell("\ntare: stopped immediately; changes may be left. Next: tare undo %s\n", in.dir)
		os.Exit(ExitError) // an interrupt with its own code has undone all
	}
	os.Exit(ExitInterrupted)
}

// repeatedWithin is how soon after a signal the same one is no second interrupt: timeout(1), and others that end a
// process and then its group, send it twice.
const repeatedWithin = 500 * time.Millisecond

// repeats reports whether a signal is the first one, sent once more by whoever sent it.
func (in *interrupts) repeats(s os.Signal, at time.Time) bool {
	return s == in.first && at.Sub(in.at) < repeatedWithin
}

// begin says that the run with this record begins. The returned function says that it has ended.
func (in *interrupts) begin(w *record.Writer) (end func()) {
	in.set(duringRun, w.Dir(), w)
	return func() { in.set(afterRun, w.Dir(), w) }
}

// undoing says that what the run with the record in dir has left is being undone. The returned function says that this
// has ended.
func (in *interrupts) undoing(dir string) (end func()) {
	in.set(undoing, dir, nil)
	return func() { in.set(beforeRun, "", nil) }
}

func (in *interrupts) set(p interruptPhase, dir string, w *record.Writer) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.phase, in.dir, in.w = p, dir, w
}

// noteLostReader writes into the record, once, that nobody reads tare's output any more. A pipe to a program of the
// target may have broken instead.
func (in *interrupts) noteLostReader() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.phase != duringRun || in.alone || !isUnread(in.Stdout) && !isUnread(in.Stderr) {
		return
	}
	in.alone = true
	// A record that cannot be written ends the run by itself.
	_ = in.w.Note(record.Note{Text: "the program that read tare's output ended during the run, which went on"})
}

// isUnread reports whether a stream is a pipe that nobody reads.
func isUnread(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1 && poll[0].Revents&unix.POLLERR != 0
}
