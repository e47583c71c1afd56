package workload

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRunAt: a batch waits for the common start, and its wall time counts from it.
func TestRunAt(t *testing.T) {
	c, _ := start(t)
	if _, err := c.Run(t.Context(), "compute", 1); err != nil { // the worker is ready
		t.Fatal(err)
	}
	now, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	at := now + 100*time.Millisecond
	cost, err := c.RunAt(t.Context(), "compute", 100, at)
	ended, e := Now()
	if err := errors.Join(err, e); err != nil {
		t.Fatal(err)
	}
	if cost.N != 100 || cost.Wall <= 0 || at+cost.Wall > ended || cost.CPU > 90*time.Millisecond {
		t.Errorf("asked at %v to begin at %v, ended by %v: %+v", now, at, ended, cost)
	}
	_, err = c.RunAt(t.Context(), "compute", 100, now)
	if f, ok := errors.AsType[*Failure](err); !ok || f.Call != CommonStart {
		t.Errorf("a start that has passed: %v", err)
	}
	if _, err := c.Run(t.Context(), "compute", 1); err != nil {
		t.Errorf("after a late start: %v", err)
	}
}

// TestRunAtHalts: a worker whose client is gone does not wait for the common start.
func TestRunAtHalts(t *testing.T) {
	w := &worker{halt: &atomic.Bool{}}
	w.halt.Store(true)
	now, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.await("compute", now+3*spinFor); !errors.Is(err, errHalted) {
		t.Errorf("halted: %v", err)
	}
	for _, r := range []request{{Verb: verbTry, Op: "open", At: 5}, {Verb: verbRun, Op: "open", N: 1, At: -5}} {
		if err := r.validate(); err == nil || !strings.Contains(err.Error(), "at ") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
