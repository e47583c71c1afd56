package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"
)

// collectEvery is the number of requests between garbage collections, which run between batches: the cost of a fork
// grows with the process's memory.
const collectEvery = 256

// memoryLimit is where the worker's garbage collector, which is otherwise off, starts nevertheless.
const memoryLimit = 256 << 20

// A Batch makes n calls and returns their total cost. It returns soon after halted does.
type Batch func(n int, halted func() bool) (Cost, error)

// Own is what a worker does in a way of its own.
type Own struct {
	// Batches are further kinds by name.
	Batches map[string]Batch
	// Aside runs what attempts and questions for the status do on another thread; nil: it runs on the worker's.
	Aside func(do func()) error
	// Close ends what remains of them; nil: nothing does.
	Close func() error
	// Port is where the listener of "connect" is, beside a socket that another process keeps bound there; 0: any.
	Port int
}

// Serve returns the worker's loop: it answers requests from in on out until in ends, which is no error, or ctx ends.
// Setup must have filled dir. It kills a running command when in or ctx ends. When ctx ends, it closes in if possible;
// otherwise it returns when in ends.
//
// It must have a process of its own: while it runs, the process's garbage collector is off and GOMAXPROCS is 2.
func Serve(ctx context.Context, in io.Reader, out io.Writer, dir string, own Own) error {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	runtime.LockOSThread() // whose CPU clock is measured
	defer runtime.UnlockOSThread()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &worker{
		dir: dir, own: own, halt: &atomic.Bool{}, routines: make(map[string]routine), programs: make(map[string]string),
	}
	defer w.close()
	w.meter.counter.open()
	if err := writeLine(out, hello{Protocol: protocol, Version: version}); err != nil {
		return fmt.Errorf("serve workloads: %w", err)
	}
	lines := w.readLines(ctx, in, cancel)
	var failed error
	n := 0
	for l := range lines {
		if failed != nil {
			continue // until the reader has ended
		}
		if failed = w.handle(ctx, l, out); failed != nil {
			cancel()
		}
		if n++; n%collectEvery == 0 {
			runtime.GC()
		}
	}
	if failed != nil {
		return fmt.Errorf("serve workloads: %w", failed)
	}
	return nil
}

// worker answers requests, one after another, on one thread.
type worker struct {
	dir      string
	own      Own
	halt     *atomic.Bool // set when no client waits for the batch any more
	routines map[string]routine
	meter    meter
	programs map[string]string // of attempts in a new process: their paths
}

// incoming is a line of in, or the error that ended it.
type incoming struct {
	line []byte
	err  error
}

// readLines reads lines in a goroutine. When in ends, it halts the current batch and closes the channel.
func (w *worker) readLines(ctx context.Context, in io.Reader, cancel context.CancelFunc) <-chan incoming {
	lines := make(chan incoming)
	unblocked := make(chan struct{})
	unblock := context.AfterFunc(ctx, func() {
		defer close(unblocked)
		w.halt.Store(true)
		if c, ok := in.(io.Closer); ok {
			_ = c.Close()
		}
	})
	go func() {
		defer close(lines)
		defer cancel()
		defer func() {
			if !unblock() {
				<-unblocked
			}
		}()
		r := bufio.NewReaderSize(in, maxLine)
		for {
			line, err := readLine(r)
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || ctx.Err() != nil {
				w.halt.Store(true)
				return
			}
			select {
			case lines <- incoming{line: append([]byte(nil), line...), err: err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// handle answers one request. An error ends the worker: the two sides no longer agree on the protocol.
func (w *worker) handle(ctx context.Context, l incoming, out io.Writer) error {
	if l.err != nil {
		return l.err
	}
	r, err := parseRequest(l.line)
	if err != nil {
		_ = writeLine(out, refuse(r.ID, err))
		return err
	}
	a, err := w.answer(ctx, r)
	if err != nil {
		a = refuse(r.ID, err)
	}
	a.ID = r.ID
	return writeLine(out, a)
}

func (w *worker) answer(ctx context.Context, r request) (answer, error) {
	switch r.Verb {
	case verbRun:
		cost, err := w.run(r.Op, r.N, r.At)
		return answer{Cost: &cost}, err
	case verbCommand:
		cost, err := w.command(ctx, *r.Command, r.N, r.Within)
		return answer{Cost: &cost}, err
	case verbTry:
		var errno syscall.Errno
		err := w.aside(func() (err error) {
			if r.Op == TryNew {
				errno, err = w.tryNew(r.Args)
			} else {
				errno, err = attempt(r.Op, r.Args)
			}
			return err
		})
		n := int(errno)
		return answer{Errno: &n}, err
	}
	var s Status
	err := w.aside(func() (err error) {
		s, err = status()
		return err
	})
	return answer{Status: &s}, err
}

// aside runs do where attempts are made.
func (w *worker) aside(do func() error) (err error) {
	if w.own.Aside == nil {
		return do()
	}
	if e := w.own.Aside(func() { err = do() }); e != nil {
		return e
	}
	return err
}

func (w *worker) close() {
	for _, r := range w.routines {
		r.close()
	}
	w.meter.close()
	if w.own.Close != nil {
		_ = w.own.Close() // the process ends with its threads
	}
}

// command runs c within the request's bound.
func (w *worker) command(ctx context.Context, c Command, n int, within time.Duration) (Cost, error) {
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	return runCommand(ctx, c, n)
}
