package probe

import (
	"context"
	"os"
	"testing"
	"time"

	"tare/internal/metric"
)

// wrapped is a probe of an area's own, which reads a process.
type wrapped struct{ of Process }

func (w wrapped) Subject() string { return w.of.Name }

func (w wrapped) Read(ctx context.Context) ([]metric.Sample, error) { return w.of.Read(ctx) }

// TestClocks: whatever reads a process gives its clock, which runs while the process computes.
func TestClocks(t *testing.T) {
	ctx, clocks := WithClocks(t.Context())
	if _, err := (wrapped{Process{Name: "self", PID: os.Getpid(), Light: true}}).Read(ctx); err != nil {
		t.Fatal(err)
	}
	if !clocks.Has("self") || clocks.Has("other") {
		t.Fatal("the clocks are not of the process that was read")
	}
	read := func() (out float64) {
		clocks.Each(func(subject string, seconds float64, ok bool) {
			if subject != "self" || !ok {
				t.Errorf("%s, %v", subject, ok)
			}
			out = seconds
		})
		return out
	}
	before := read()
	for deadline := time.Now().Add(time.Minute); read()-before < 0.01; {
		if time.Now().After(deadline) {
			t.Fatal("the clock stands")
		}
	}
}

// TestClockOfAnEndedProcess says that it is not known.
func TestClockOfAnEndedProcess(t *testing.T) {
	const none = 1 << 23 // above every pid (PID_MAX_LIMIT)
	ctx, clocks := WithClocks(t.Context())
	addClocks(ctx, "gone", []int{os.Getpid(), none})
	clocks.Each(func(_ string, _ float64, ok bool) {
		if ok {
			t.Error("the clock of a process that does not exist was read")
		}
	})
}
