package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// The kinds of a Fresh.
const (
	KindConfine = "confine"
	KindFirst   = "first"
	KindLater   = "later"
	KindStart   = "start"
	KindLoad    = "load"
)

// laterAfter is how many files a thread opens under its policy before KindLater times the next.
const laterAfter = 100

// Steps put a thread under a policy. Each may be nil: then there is nothing to do.
type Steps struct {
	// Confine puts the calling thread under the policy.
	Confine func() error
	// Release removes what would outlive the thread. It is called on it, at its end.
	Release func() error
	// Load loads a copy of the policy into the kernel, which confines nothing, and Unload removes it.
	Load, Unload func() error
}

// And returns the steps of two policies, in order; what they release and unload, in the other order.
func (s Steps) And(t Steps) Steps {
	return Steps{
		Confine: inOrder(s.Confine, t.Confine), Release: inOrder(t.Release, s.Release), Load: inOrder(s.Load, t.Load),
		Unload: inOrder(t.Unload, s.Unload),
	}
}

// A Fresh measures what it costs to put a process under a policy. Each call runs on a thread of its own, since
// restrictions cannot be undone; the thread then ends. Its process is not confined.
type Fresh struct {
	steps Steps
	open  *open
	start *spawn
	quit  chan struct{} // ends the thread of the last attempt; nil before the first one
	ended chan error    // that thread's end
}

// NewFresh makes a Fresh with the files of Setup below dir.
func NewFresh(steps Steps, dir string) (*Fresh, error) {
	o, err := newOpen(filepath.Join(dir, plainFile))
	if err != nil {
		return nil, err
	}
	s, err := newSpawn(KindStart, filepath.Join(dir, programFile))
	if err != nil {
		return nil, err
	}
	return &Fresh{steps: steps, open: o, start: s}, nil
}

// Own returns the kinds of f, and makes attempts on a confined thread.
func (f *Fresh) Own() Own {
	openOnce := func() error { return f.open.openAt(unix.O_RDONLY) }
	confine, release := f.steps.Confine, f.steps.Release
	later := inOrder(confine, func() error { return repeat(laterAfter, openOnce) })
	return Own{
		Batches: map[string]Batch{
			KindConfine: f.batch(nil, confine, release),
			KindFirst:   f.batch(confine, openOnce, release),
			KindLater:   f.batch(later, openOnce, release),
			KindStart:   f.batch(nil, inOrder(confine, f.start.once), release),
			KindLoad:    f.batch(nil, f.steps.Load, f.steps.Unload),
		},
		Aside: f.aside,
		Close: f.letGo,
	}
}

// inOrder returns a function that calls all until one fails, but those that are nil.
func inOrder(all ...func() error) func() error {
	return func() error {
		for _, do := range all {
			if do == nil {
				continue
			}
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	}
}

func repeat(n int, do func() error) error {
	for range n {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// batch returns the kind that times do on n threads, between an untimed preparation and an untimed end on each.
func (f *Fresh) batch(before, do, after func() error) Batch {
	before, do, after = inOrder(before), inOrder(do), inOrder(after)
	return func(n int, halted func() bool) (Cost, error) {
		if err := f.letGo(); err != nil {
			return Cost{}, err
		}
		runtime.GC() // ended threads leave garbage behind, and the cost of a fork grows with the process's memory
		total := Cost{N: n}
		children, err := waitedFor()
		if err != nil {
			return Cost{}, err
		}
		for range n {
			if halted() {
				return Cost{}, errHalted
			}
			var c Cost
			err := onThread(func() (err error) {
				if err = before(); err == nil {
					c, err = timedHere(do)
				}
				return errors.Join(err, after())
			})
			if err != nil {
				return Cost{}, err
			}
			total.Wall, total.CPU = total.Wall+c.Wall, total.CPU+c.CPU
		}
		now, err := waitedFor()
		total.Wall, total.CPU = max(1, total.Wall), total.CPU+now-children
		return total, err
	}
}

// aside runs do on a confined thread. The thread stays until the next attempt or batch, so that the kernel can be asked
// what confines it.
func (f *Fresh) aside(do func()) error {
	if err := f.letGo(); err != nil {
		return err
	}
	quit, ended, confined := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	f.quit, f.ended = quit, ended
	go endingThread(func() {
		err := inOrder(harden, f.steps.Confine)()
		if err == nil {
			do()
		}
		confined <- err
		<-quit
		ended <- inOrder(f.steps.Release)()
	})
	if err := <-confined; err != nil {
		return errors.Join(err, f.letGo())
	}
	return nil
}

// letGo ends the thread of the last attempt.
func (f *Fresh) letGo() error {
	if f.quit == nil {
		return nil
	}
	close(f.quit)
	f.quit = nil
	return <-f.ended
}

// onThread runs do on a thread that is not confined yet, has no_new_privs, and ends afterwards.
func onThread(do func() error) error {
	done := make(chan error, 1)
	go endingThread(func() {
		err := harden()
		if err == nil {
			err = do()
		}
		done <- err
	})
	return <-done
}

// endingThread runs do on a thread that ends with the calling goroutine. The main thread of a process never ends: a
// goroutine that is on it keeps it until another has run do.
func endingThread(do func()) {
	runtime.LockOSThread() // never unlocked: the runtime ends the thread with this goroutine
	if unix.Gettid() != os.Getpid() {
		do()
		return
	}
	defer runtime.UnlockOSThread()
	var elsewhere sync.WaitGroup
	elsewhere.Go(func() { endingThread(do) })
	elsewhere.Wait()
}

// harden prepares this thread for a policy that it cannot leave: all arms have no_new_privs, and no signal
// interrupts what is timed.
func harden() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	_, err := blockSignals()
	return err
}

// timedHere calls do and returns its cost on this thread, with that of one reading of a clock.
func timedHere(do func() error) (Cost, error) {
	cpu, err1 := read(unix.CLOCK_THREAD_CPUTIME_ID)
	wall, err2 := read(unix.CLOCK_MONOTONIC)
	if err := errors.Join(err1, err2); err != nil {
		return Cost{}, err
	}
	failure := do()
	wallAfter, err1 := read(unix.CLOCK_MONOTONIC)
	cpuAfter, err2 := read(unix.CLOCK_THREAD_CPUTIME_ID)
	if err := errors.Join(failure, err1, err2); err != nil {
		return Cost{}, err
	}
	return Cost{N: 1, Wall: wallAfter - wall, CPU: max(0, cpuAfter-cpu)}, nil
}
