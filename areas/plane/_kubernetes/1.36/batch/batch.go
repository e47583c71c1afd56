package batch

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A Call performs the i-th call of a batch and reports whether the result was as expected. Calls of one batch may run
// concurrently.
type Call func(i int) (hit bool, err error)

// A Cost is the total cost of several calls.
type Cost struct {
	Wall        float64 // seconds, summed over the goroutines
	CPU         float64 // CPU seconds of the process
	Allocations uint64  // objects
	Allocated   uint64  // bytes
	Hits        int     // calls
}

// collect puts the heap into the same state before each batch, so that no batch pays for garbage of earlier ones.
// Collections that a batch itself makes necessary count in its CPU time. A short batch makes none necessary, since the
// heap may first double: then no time includes the cost of collecting its garbage, which also depends on the rest of
// the program's heap. Only its bytes indicate that cost.
func collect() { runtime.GC() }

// Together performs n calls, divided among some goroutines, and reads the clocks once for all of them. With one worker
// it starts no goroutine.
func Together(n, workers int, call Call) (Cost, error) {
	collect()
	var m meter
	err := m.span(0, n, workers, call)
	return m.total, err
}

// Apart performs n calls in waves of as many calls as there are workers, and reads the clocks for each wave. After each
// wave, restore undoes calls from…to-1, which is not timed.
func Apart(n, workers int, call Call, restore func(from, to int) error) (Cost, error) {
	collect()
	var m meter
	for from := 0; from < n; {
		to := min(n, from+max(1, workers))
		if err := m.span(from, to, workers, call); err != nil {
			return Cost{}, errors.Join(err, restore(from, to))
		}
		if err := restore(from, to); err != nil {
			return Cost{}, fmt.Errorf("take call %d back: %w", from+1, err)
		}
		from = to
	}
	return m.total, nil
}

// span times calls from…to-1.
func (m *meter) span(from, to, workers int, call Call) error {
	if workers = min(workers, to-from); workers > 1 {
		return m.shared(from, to, workers, call)
	}
	if err := m.begin(); err != nil {
		return err
	}
	hits, failed := loop(from, to, 1, call)
	elapsed, err := m.end()
	m.total.Wall += elapsed.Seconds()
	m.total.Hits += hits
	return errors.Join(failed, err)
}

// loop is the timed code.
func loop(from, to, step int, call Call) (hits int, err error) {
	for i := from; i < to; i += step {
		hit, err := call(i)
		if err != nil {
			return hits, fmt.Errorf("call %d: %w", i+1, err)
		}
		if hit {
			hits++
		}
	}
	return hits, nil
}

// A part is the calls of one goroutine: every n-th call, so that all goroutines go through the batch side by side. If
// each had a contiguous half, two scans would find what the other has just loaded.
type part struct {
	from, to, step int
	took           time.Duration
	hits           int
	err            error
	_              [64]byte // parts are written concurrently: each has its own cache line
}

// shared starts the goroutines before it reads the clocks; they wait for a signal.
func (m *meter) shared(from, to, workers int, call Call) error {
	parts := make([]part, workers)
	start := make(chan struct{})
	var ready, done sync.WaitGroup
	for w := range parts {
		p := &parts[w]
		p.from, p.to, p.step = from+w, to, workers
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			p.run(call)
		})
	}
	ready.Wait()
	err := m.begin()
	close(start)
	done.Wait()
	_, err2 := m.end()
	errs := []error{err, err2}
	for _, p := range parts {
		m.total.Wall += p.took.Seconds()
		m.total.Hits += p.hits
		errs = append(errs, p.err)
	}
	return errors.Join(errs...)
}

func (p *part) run(call Call) {
	defer func() {
		if r := recover(); r != nil { // only this goroutine can recover it
			first, _, _ := strings.Cut(fmt.Sprint(r), "\n")
			p.err = fmt.Errorf("panic: %s", first)
		}
	}()
	began := time.Now()
	p.hits, p.err = loop(p.from, p.to, p.step, call)
	p.took = time.Since(began)
}

// Plus returns the sum of two costs.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Wall + d.Wall, c.CPU + d.CPU, c.Allocations + d.Allocations, c.Allocated + d.Allocated, c.Hits + d.Hits}
}
