package drive

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
	"tare/rigs/hosttest"
)

// A sleepingTarget is a target whose only operation takes a while.
type sleepingTarget struct{ exactTarget }

func (*sleepingTarget) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "call", Weight: 1, Call: func(context.Context, uint64) load.Result {
		time.Sleep(2 * time.Millisecond)
		return load.Result{Outcome: load.OK}
	}}}, nil
}

// TestAllWorkersRunInTheWindow: workers start during the warm-up, which is not measured. A host that stalls can make
// one first quarter poor, but not every one.
func TestAllWorkersRunInTheWindow(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	poor := poorFirstQuarters(t)
	for tries := 1; tries < 4 && len(poor) > 0; tries++ {
		again := poorFirstQuarters(t)
		maps.DeleteFunc(poor, func(arm, _ string) bool { return again[arm] == "" })
	}
	if len(poor) > 0 {
		t.Errorf("workers were still starting in the window, each time: %v", poor)
	}
}

// poorFirstQuarters describes the arms with less than half as many calls in the first quarter of the window as in the
// last.
func poorFirstQuarters(t *testing.T) map[string]string {
	t.Helper()
	poor := map[string]string{}
	s := &sleepingTarget{}
	req, open := start(t, &s.exactTarget, run.Blocks{Most: 1})
	req.Area = openedArea{Area: &s.exactTarget, target: s}
	const length = 800 * time.Millisecond
	req.Load = run.Load{
		Config:   load.Config{Engine: load.Std, Timeout: 5 * time.Second, MaxConns: 8},
		Duration: length,
		Closed:   &load.Closed{Workers: 8, Ramp: length},
	}
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	r := open()
	if len(r.Trials) != len(threeArms) {
		t.Fatalf("%d trials", len(r.Trials))
	}
	for _, trial := range r.Trials {
		calls, err := trial.Calls()
		if err != nil || trial.Window == nil {
			t.Fatal(trial.Window, err)
		}
		first, last := 0, 0
		for _, c := range calls {
			switch at := c.Intended - trial.Window.Start; {
			case at < 0:
				t.Fatal("a call of the warm-up was kept")
			case at < length/4:
				first++
			case at >= 3*length/4:
				last++
			}
		}
		if first*2 < last || first == 0 {
			poor[trial.Treatment] = fmt.Sprintf("%d calls in the first quarter of the window, %d in the last", first, last)
		}
	}
	return poor
}
