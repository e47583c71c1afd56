package drive

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/run"
	"tare/rigs/hosttest"
)

// A countingTarget counts the calls that it is sent, as a server would.
type countingTarget struct {
	exactTarget
	calls atomic.Uint64
	now   func(reading int, s *area.Served) (*area.Served, error) // changes a reading; readings are counted from 1

	mu       sync.Mutex
	readings int
	order    []string
	patience []time.Duration
}

func (c *countingTarget) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "call", Weight: 1, Call: func(context.Context, uint64) load.Result {
		c.calls.Add(1)
		sent := time.Now()
		time.Sleep(time.Millisecond)
		return load.Result{Sent: sent, Marks: []load.Mark{{Name: "nap", From: sent, At: sent.Add(3 * time.Millisecond)}}}
	}}}, nil
}

func (c *countingTarget) Witnessed(ctx context.Context, _ design.Treatment) (*area.Served, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings++
	c.order = append(c.order, "witness")
	if deadline, ok := ctx.Deadline(); ok {
		c.patience = append(c.patience, time.Until(deadline))
	}
	n := c.calls.Load()
	s := &area.Served{
		Started: 1000,
		Requests: []area.ServedRequests{
			{Verb: "POST", Resource: "pods", Count: n, Seconds: float64(n) / 2},
			{Verb: "GET", Resource: "pods", Count: 7},
		},
		Parts: []area.ServedPart{{Part: "storage", Name: "pods", Action: "create", Count: 2 * n}},
	}
	if c.now != nil {
		return c.now(c.readings, s)
	}
	return s, nil
}

func (c *countingTarget) Can() area.Can {
	return area.Can{Enter: c.Enter, Leave: c.Leave, Probes: c.Probes, Witnessed: c.Witnessed}
}

func (c *countingTarget) Probes(design.Treatment) []probe.Probe { return []probe.Probe{orderProbe{c}} }

// An orderProbe notes when it is read.
type orderProbe struct{ *countingTarget }

func (orderProbe) Subject() string { return "server" }

func (r orderProbe) Read(context.Context) ([]metric.Sample, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order = append(r.order, "probe")
	return nil, nil
}

// recordServed runs one experiment on a target and returns its record.
func recordServed(t *testing.T, c *countingTarget, q design.Question, l run.Load) *record.Record {
	t.Helper()
	req, open := start(t, &c.exactTarget, run.Blocks{Most: 1})
	req.Area, req.Question = openedArea{Area: &c.exactTarget, target: c}, q
	req.Load = l
	if q != design.Compare {
		req.Treatments, req.Blocks = req.Treatments[:1], run.Blocks{}
	}
	req.Load.Engine, req.Load.Timeout, req.Load.MaxConns = load.Std, 5*time.Second, 8
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	return open()
}

// TestServedCountsMatchCallsSent: between its two readings the target counts the calls of the window, without the
// warm-up, and the probes are read in between.
func TestServedCountsMatchCallsSent(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	c := &countingTarget{}
	r := recordServed(t, c, design.Compare, run.Load{Rate: 100, Duration: 500 * time.Millisecond})
	if len(r.Warned) > 0 || len(r.Trials) != len(threeArms) {
		t.Fatalf("%d trials, warnings %v", len(r.Trials), r.Warned)
	}
	for _, trial := range r.Trials {
		var calls, phases uint64
		for _, n := range trial.Counts {
			calls += n.Count
		}
		if _, err := trial.Histograms(func(iv *record.Interval) {
			if iv.Measure == record.PhaseMeasure("nap") {
				phases += iv.Hist.Count()
			}
		}); err != nil {
			t.Fatal(err)
		}
		if len(trial.Served) != 1 {
			t.Fatalf("served %v", trial.Served)
		}
		s := trial.Served[0]
		if len(s.Requests) != 1 || s.Requests[0].Verb != "POST" || len(s.Parts) != 1 || s.Error != "" || s.Restarted {
			t.Fatalf("got %+v, want only the counts that have changed", s)
		}
		// A call of the warm-up may be under way when the target is asked.
		if n := s.Requests[0].Count; n+8 < calls || n > calls || n < 40 || s.Requests[0].Seconds != float64(n)/2 ||
			s.Parts[0].Count != 2*n || phases != calls {
			t.Errorf("the target counts %+v, %d calls were made, %d phases", s, calls, phases)
		}
	}
	want := slices.Repeat([]string{"witness", "probe", "probe", "witness"}, len(r.Trials))
	if d := cmp.Diff(want, c.order); d != "" {
		t.Errorf("order of readings (-want +got):\n%s", d)
	}
	if len(c.patience) != len(r.Trials)*2 || slices.Max(c.patience) > 10*time.Second {
		t.Errorf("readings had these deadlines: %v", c.patience)
	}
}

func TestServedCountsOfALadderAndASoak(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	for q, l := range map[design.Question]run.Load{
		design.Capacity: {Rates: []float64{50, 100}, Duration: 300 * time.Millisecond},
		design.Soak:     {Rate: 100, Duration: 2 * time.Second},
	} {
		t.Run(string(q), func(t *testing.T) {
			t.Parallel()
			c := &countingTarget{}
			r := recordServed(t, c, q, l)
			var calls, phases uint64
			if _, err := r.Trials[0].Histograms(func(iv *record.Interval) {
				if iv.Measure == record.Response {
					calls += iv.Hist.Count()
				} else if iv.Measure == record.PhaseMeasure("nap") {
					phases += iv.Hist.Count()
				}
			}); err != nil {
				t.Fatal(err)
			}
			if len(r.Warned) > 0 || len(r.Trials) != 1 || len(r.Trials[0].Served) != 1 {
				t.Fatalf("warnings %v, served %v", r.Warned, r.Trials[0].Served)
			}
			s := r.Trials[0].Served[0]
			// Calls are in flight when a soak's window begins and when a search ends; a search makes calls that are in no
			// histogram.
			if n := s.Requests[0].Count; n+20 < calls || n > calls+100 || calls < 30 || phases != calls {
				t.Errorf("the target counts %d, %d calls were made, %d phases", n, calls, phases)
			}
			if c.readings != 2 {
				t.Errorf("the target was read %d times, want 2", c.readings)
			}
		})
	}
}

func TestServedCountsThatCannotBeRead(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	recently := float64(time.Now().Add(time.Hour).Unix())
	for name, c := range map[string]struct {
		now     func(int, *area.Served) (*area.Served, error)
		err     string
		rows    int
		again   bool
		nothing bool
	}{
		"never": {
			now: func(int, *area.Served) (*area.Served, error) { return nil, errors.New("forbidden") },
			err: "forbidden",
		},
		"not once": {
			now: atSecond(func(*area.Served) (*area.Served, error) { return nil, errors.New("gone") }), err: "gone",
		},
		"silent": {now: atSecond(func(*area.Served) (*area.Served, error) { return nil, nil }), err: "no longer reports"},
		"measures nothing": {
			now: func(int, *area.Served) (*area.Served, error) { return nil, nil }, nothing: true,
		},
		"no number": {now: atSecond(func(s *area.Served) (*area.Served, error) {
			s.Parts[0].Seconds = math.Inf(1)
			return s, nil
		}), err: "not finite"},
		"started anew": {now: atSecond(func(s *area.Served) (*area.Served, error) {
			s.Started = recently
			return s, nil
		}), rows: 2, again: true},
		"counts went down": {now: atSecond(func(s *area.Served) (*area.Served, error) {
			s.Requests[1].Count = 3
			return s, nil
		}), rows: 2, again: true},
		"another server": {now: atSecond(func(s *area.Served) (*area.Served, error) {
			s.Started = 2000
			return s, nil
		}), err: "two servers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := run.Load{Rate: 50, Duration: 100 * time.Millisecond}
			r := recordServed(t, &countingTarget{now: c.now}, design.Compare, l)
			if len(r.Warnings) > 0 {
				t.Fatal(r.Warnings)
			}
			for _, trial := range r.Trials {
				if c.nothing {
					if len(trial.Served) > 0 {
						t.Errorf("served %v", trial.Served)
					}
					continue
				}
				if len(trial.Served) != 1 || !trial.Complete() {
					t.Fatalf("served %v, end %v", trial.Served, trial.End)
				}
				s := trial.Served[0]
				if !strings.Contains(s.Error, c.err) || (c.err == "") != (s.Error == "") || len(s.Requests) != c.rows ||
					s.Restarted != c.again {
					t.Errorf("got %+v, want error %q, %d rows, restarted %t", s, c.err, c.rows, c.again)
				}
			}
			if len(r.Warned) > 0 {
				t.Errorf("got warnings %v, want none: the analysis takes them from the record", r.Warned)
			}
		})
	}
}

// atSecond applies change to every second reading, the one after the measured window.
func atSecond(change func(*area.Served) (*area.Served, error)) func(int, *area.Served) (*area.Served, error) {
	return func(reading int, s *area.Served) (*area.Served, error) {
		if reading%2 == 1 {
			return s, nil
		}
		return change(s)
	}
}
