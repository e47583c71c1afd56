package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
)

// The kinds of Others: KindHold holds n threads under the policy, KindRelease ends them all.
const (
	KindHold    = "hold"
	KindRelease = "release"
)

// releaseWithin bounds the wait for the threads' end.
const releaseWithin = 5 * time.Second

// Others is a number of threads that are under a policy and sleep. Its process is not confined.
type Others struct {
	steps   Steps
	held    []int // the threads, by their ids
	quit    chan struct{}
	work    chan func()
	running sync.WaitGroup

	mu     sync.Mutex
	failed error // to release a policy
}

// NewOthers makes an Others that holds nothing.
func NewOthers(steps Steps) *Others {
	return &Others{steps: steps, work: make(chan func())}
}

// Own returns the kinds of o. Attempts are made on one of the threads that it holds.
func (o *Others) Own() Own {
	return Own{
		Batches: map[string]Batch{
			KindHold: o.hold,
			KindRelease: func(n int, _ func() bool) (Cost, error) {
				return Cost{N: n, Wall: 1}, o.release()
			},
		},
		Aside: o.aside,
	}
}

// hold makes o hold n threads.
func (o *Others) hold(n int, _ func() bool) (Cost, error) {
	if err := o.release(); err != nil {
		return Cost{}, err
	}
	began, err := read(unix.CLOCK_MONOTONIC)
	if err != nil {
		return Cost{}, err
	}
	o.quit = make(chan struct{})
	confined := make(chan heldThread)
	for range n {
		o.running.Go(func() { endingThread(func() { o.sleep(confined) }) })
	}
	for range n {
		t := <-confined
		o.held = append(o.held, t.id)
		if t.err != nil {
			err = fmt.Errorf("hold %d policies: %w", n, t.err)
		}
	}
	if err != nil {
		return Cost{}, err
	}
	ended, err := read(unix.CLOCK_MONOTONIC)
	return Cost{N: n, Wall: max(1, ended-began)}, err
}

// A heldThread is a thread, or why it could not be confined.
type heldThread struct {
	id  int
	err error
}

// sleep is a held thread: it sleeps under the policy, and makes an attempt now and then.
func (o *Others) sleep(confined chan<- heldThread) {
	err := inOrder(harden, o.steps.Confine)()
	confined <- heldThread{id: unix.Gettid(), err: err}
	if err != nil {
		return
	}
	for {
		select {
		case do := <-o.work:
			do()
		case <-o.quit:
			err := inOrder(o.steps.Release)()
			o.mu.Lock()
			o.failed = errors.Join(o.failed, err)
			o.mu.Unlock()
			return
		}
	}
}

// aside runs do on a held thread.
func (o *Others) aside(do func()) error {
	if len(o.held) == 0 {
		return errors.New("no policy is held")
	}
	done := make(chan struct{})
	o.work <- func() { defer close(done); do() }
	<-done
	return nil
}

// release ends all held threads, and waits until the kernel has none of them any more.
func (o *Others) release() error {
	if len(o.held) == 0 {
		return nil
	}
	close(o.quit)
	o.running.Wait()
	if o.failed != nil {
		return fmt.Errorf("release policies: %w", o.failed)
	}
	for range releaseWithin / time.Millisecond {
		o.held = slices.DeleteFunc(o.held, func(id int) bool {
			_, err := os.Stat("/proc/self/task/" + strconv.Itoa(id))
			return errors.Is(err, fs.ErrNotExist)
		})
		if len(o.held) == 0 {
			return nil
		}
		if err := (clock.System{}).Sleep(context.Background(), time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("release policies: %d threads are left after %s", len(o.held), releaseWithin)
}
