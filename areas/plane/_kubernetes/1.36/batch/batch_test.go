package batch

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var sink *[64]byte

// TestTogether: each call is made once, what they find and allocate is counted, and nothing else is.
func TestTogether(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 100} {
		const n = 10
		var made [n]atomic.Int32
		c, err := Together(n, workers, func(i int) (bool, error) {
			made[i].Add(1)
			return i%3 == 0, nil
		})
		if err != nil || c.Hits != 4 {
			t.Errorf("%d workers: %d hits, %v", workers, c.Hits, err)
		}
		for i := range made {
			if made[i].Load() != 1 {
				t.Errorf("%d workers: call %d was made %d times", workers, i, made[i].Load())
			}
		}
	}
}

// TestAllocations: what a call allocates is counted to the object, where one goroutine makes the calls; what is undone
// is not.
func TestAllocations(t *testing.T) {
	const n = 1000
	call := func(int) (bool, error) { sink = new([64]byte); return true, nil }
	nothing := func(int) (bool, error) { return true, nil }
	none := func(int, int) error { return nil }
	for name, c := range map[string]struct {
		run  func() (Cost, error)
		want uint64 // objects
	}{
		"together": {func() (Cost, error) { return Together(n, 1, call) }, n},
		"nothing":  {func() (Cost, error) { return Together(n, 1, nothing) }, 0},
		"apart":    {func() (Cost, error) { return Apart(n, 1, call, none) }, n},
		"undone": {func() (Cost, error) {
			return Apart(n, 1, nothing, func(int, int) error { sink = new([64]byte); return nil })
		}, 0},
		"no clocks": {func() (Cost, error) { return Apart(n, 1, nothing, none) }, 0},
	} {
		got, err := c.run()
		// The runtime and the test's own goroutines allocate a few now and then.
		if err != nil || got.Allocations < c.want || got.Allocations > c.want+20 || got.Allocated < 64*c.want ||
			got.Allocated > 64*c.want+1<<16 {
			t.Errorf("%s: %d objects, %d bytes, %v; want %d", name, got.Allocations, got.Allocated, err, c.want)
		}
	}
}

// TestClocks: the time of calls is theirs; with several goroutines it is the sum of what each took; what is undone
// takes none.
func TestClocks(t *testing.T) {
	const nap = 5 * time.Millisecond
	sleep := func(int) (bool, error) { time.Sleep(nap); return true, nil }
	c, err := Together(4, 4, sleep)
	if err != nil || c.Wall < 4*nap.Seconds() {
		t.Errorf("four at a time: %v s, %v", c.Wall, err)
	}
	c, err = Apart(3, 1, sleep, func(int, int) error { time.Sleep(time.Second / 2); return nil })
	if err != nil || c.Wall < 3*nap.Seconds() || c.Wall >= 1.5 {
		t.Errorf("one by one: %v s, %v", c.Wall, err)
	}
	spin := func(int) (bool, error) {
		for from, _ := cpu(); ; {
			if now, err := cpu(); err != nil || now-from > int64(nap) {
				return true, err
			}
		}
	}
	if c, err = Together(2, 1, spin); err != nil || c.CPU < 2*nap.Seconds() || c.CPU > 100*nap.Seconds() {
		t.Errorf("CPU time %v s, %v", c.CPU, err)
	}
}

// TestApart: calls are undone before the next is made, in waves of as many as there are workers.
func TestApart(t *testing.T) {
	for workers, want := range map[int][]int{1: {1, 1, 1, 1, 1}, 2: {2, 2, 1}, 9: {5}} {
		var there atomic.Int32
		var waves []int
		c, err := Apart(5, workers, func(int) (bool, error) { there.Add(1); return true, nil }, func(from, to int) error {
			if int(there.Load()) != to-from {
				t.Errorf("%d workers: %d calls are not undone, want %d", workers, there.Load(), to-from)
			}
			there.Store(0)
			waves = append(waves, to-from)
			return nil
		})
		if err != nil || c.Hits != 5 || !slices.Equal(waves, want) {
			t.Errorf("%d workers: waves %v, want %v; %d hits, %v", workers, waves, want, c.Hits, err)
		}
	}
}

// TestFails: the first call that fails is named, a panic of a goroutine is an error, and what was done is undone.
func TestFails(t *testing.T) {
	bad := errors.New("no")
	fails := func(i int) (bool, error) {
		if i == 2 {
			return false, bad
		}
		return true, nil
	}
	if _, err := Together(5, 1, fails); !errors.Is(err, bad) || !strings.Contains(err.Error(), "call 3: no") {
		t.Error(err)
	}
	undone := 0
	if _, err := Apart(5, 1, fails, func(from, to int) error { undone += to - from; return nil }); !errors.Is(err, bad) ||
		undone != 3 {
		t.Errorf("%v, %d calls undone", err, undone)
	}
	if _, err := Apart(5, 1, func(int) (bool, error) { return true, nil },
		func(int, int) error { return bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
	if _, err := Together(5, 5, func(int) (bool, error) { panic("one\ntwo") }); err == nil ||
		!strings.Contains(err.Error(), "panic: one") || strings.Contains(err.Error(), "two") {
		t.Error(err)
	}
}
