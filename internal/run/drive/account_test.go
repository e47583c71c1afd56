package drive

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/run"
	"tare/rigs/hosttest"
)

// A lateCounter is a target that reports its counts only when asked often enough.
type lateCounter struct {
	exactTarget
	fails int
	asked int
	keeps bool
}

func (s *lateCounter) Can() area.Can { return area.Can{Counted: s.Counted} }

func (s *lateCounter) Counted(context.Context, design.Treatment) (map[string]float64, error) {
	if s.asked++; s.asked <= s.fails {
		return nil, errors.New("503 Service Unavailable")
	}
	if !s.keeps {
		return nil, nil
	}
	return map[string]float64{"permit": float64(s.asked)}, nil
}

func TestTargetCountsAreReadAgain(t *testing.T) {
	trial := design.Trial{Treatment: "here"}
	for name, c := range map[string]struct {
		target *lateCounter
		want   []record.Answers
	}{
		"at once": {
			&lateCounter{keeps: true},
			[]record.Answers{{
				Treatment: "here", Seen: map[string]uint64{}, Before: map[string]float64{"permit": 1},
				After: map[string]float64{"permit": 2},
			}},
		},
		"while starting": {
			&lateCounter{keeps: true, fails: 3},
			[]record.Answers{{
				Treatment: "here", Seen: map[string]uint64{}, Before: map[string]float64{"permit": 4},
				After: map[string]float64{"permit": 5},
			}},
		},
		"never": {
			&lateCounter{fails: 99},
			[]record.Answers{{
				Treatment: "here", Seen: map[string]uint64{},
				Error: "read the target's own counts: 503 Service Unavailable",
			}},
		},
		"keeps none": {&lateCounter{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clock.NewFake(time.Unix(0, 0))
			req, open := start(t, &c.target.exactTarget, run.Blocks{})
			req.Env.Clock = clk
			a := &run.Arm{Stage: &run.Stage{Request: req, Target: c.target}, Trial: trial}
			a.Treatment.ID = "here"
			if err := a.Writer.TrialBegin(record.TrialBegin{Trial: trial}); err != nil {
				t.Fatal(err)
			}
			if err := a.Account(t.Context()).Close(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, open().Trials[0].Answers); d != "" {
				t.Errorf("answers (-want +got):\n%s", d)
			}
			if waited := clk.Now().Sub(time.Unix(0, 0)); waited > 10*time.Second {
				t.Errorf("it waited for %v in all", waited)
			}
		})
	}
}

// TestCountsOfAComparisonIncludeWarmUp: the counts of a comparison's trials are compared with the target's, including
// their warm-up.
func TestCountsOfAComparisonIncludeWarmUp(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	v := &serverTarget{site: newTestServer(t)}
	req, open := start(t, &v.exactTarget, run.Blocks{Most: 1})
	req.Area = openedArea{Area: &v.exactTarget, target: v}
	req.Load = run.Load{Config: load.Config{Engine: load.Fast, Timeout: 5 * time.Second, MaxConns: 8}, Rate: 300}
	req.Load.Duration = 300 * time.Millisecond
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	r := open()
	if len(r.Trials) != len(threeArms) {
		t.Fatalf("got %d trials", len(r.Trials))
	}
	for _, trial := range r.Trials {
		countsAgree(t, trial)
		var window, all uint64
		for _, c := range trial.Counts {
			window += c.Count
		}
		for _, n := range trial.Answers[0].Seen {
			all += n
		}
		if all <= window || len(trial.TrialBegin.Answers) != 3 {
			t.Errorf("%d answers in all, %d of them in the window; operations answer %v", all, window, trial.TrialBegin.Answers)
		}
	}
}

func TestLengthsOfASoak(t *testing.T) {
	for _, c := range []struct{ length, ramp, slice, warm time.Duration }{
		{30 * time.Second, 0, time.Second / 2, 3 * time.Second},
		{2 * time.Second, 0, time.Second / 2, time.Second},
		{30 * time.Second, 10 * time.Second, time.Second / 2, 10 * time.Second},
		{time.Minute, 0, time.Second, 6 * time.Second},
		{3 * time.Minute, 0, time.Second, 18 * time.Second},
		{10 * time.Minute, 0, 2 * time.Second, time.Minute},
		{30 * time.Minute, 0, 5 * time.Second, 3 * time.Minute},
		{2 * time.Hour, 0, 10 * time.Second, 5 * time.Minute},
		{24 * time.Hour, 10 * time.Minute, 10 * time.Second, 10 * time.Minute},
	} {
		if s, w := sliceLength(c.length), question.WarmUp(c.length, c.ramp); s != c.slice || w != c.warm {
			t.Errorf("%v with a ramp of %v: slices of %v after %v, want %v after %v", c.length, c.ramp, s, w, c.slice, c.warm)
		}
	}
}

// TestSlicesHoldATail: where the rate is low, slices are longer, so that each has a 99th percentile, if enough remain.
func TestSlicesHoldATail(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		rate   float64
		want   time.Duration
	}{
		{time.Minute, 50, 2200 * time.Millisecond},
		{time.Minute, 1000, time.Second},
		{time.Minute, 10, time.Second}, // five slices would be left
		{time.Minute, 0, time.Second},  // closed workers
		{20 * time.Second, 100, time.Second / 2},
		{10 * time.Minute, 30, 3700 * time.Millisecond},
		{10 * time.Minute, 10, 2 * time.Second}, // an outage would be placed too coarsely
		{24 * time.Hour, 1000, 10 * time.Second},
	} {
		if got := sliceOf(c.length, c.rate); got != c.want {
			t.Errorf("%v at %v/s: slices of %v, want %v", c.length, c.rate, got, c.want)
		}
	}
}
