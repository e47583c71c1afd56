package drive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
)

// An exactTarget is a target whose operations have an exact clock of their own, so that the cost of a call is known.
type exactTarget struct {
	mu             sync.Mutex
	turns          []string // treatment of each batch, in order
	sizes          map[int]int
	standing, most int
	fail           func(treatment string, turn int) error
	cost           func(treatment string) float64
}

func (*exactTarget) Name() string { return "scale" }

func (*exactTarget) Offers() area.Offers                                              { return area.Offers{} }
func (*exactTarget) NewSpec() area.Spec                                               { return nil }
func (*exactTarget) Preflight(context.Context, area.Spec, area.Env) []area.Finding    { return nil }
func (s *exactTarget) Open(context.Context, area.Spec, area.Env) (area.Target, error) { return s, nil }
func (*exactTarget) Undo(context.Context, []area.Change, area.Env) error              { return nil }
func (*exactTarget) Prepare(context.Context, design.Treatment, area.Journal) error    { return nil }
func (*exactTarget) Verify(context.Context, design.Treatment) error                   { return nil }
func (*exactTarget) Close(context.Context) error                                      { return nil }
func (*exactTarget) Parts() area.Parts                                                { return area.Parts{} }

func (s *exactTarget) Can() area.Can { return area.Can{Enter: s.Enter, Leave: s.Leave} }

func (s *exactTarget) Enter(context.Context, design.Treatment) error {
	s.standing++
	s.most = max(s.most, s.standing)
	return nil
}

func (s *exactTarget) Leave(context.Context, design.Treatment) error { s.standing--; return nil }

func (s *exactTarget) Operations(t design.Treatment) ([]load.Operation, error) {
	op := func(name string) load.Operation {
		return load.Operation{
			Name: name, Weight: 1, Rounds: 4, Span: time.Millisecond, Negative: name == "idle",
			Batch: func(ctx context.Context, n int) ([]load.BatchSample, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.turns = append(s.turns, t.ID)
				s.sizes[n]++
				if s.fail != nil {
					if err := s.fail(t.ID, len(s.turns)); err != nil {
						return nil, err
					}
				}
				c := s.cost(t.ID)
				return []load.BatchSample{{Metric: "wall", Value: 2 * c}, {Metric: "cpu", Value: c}}, ctx.Err()
			},
		}
	}
	return []load.Operation{op("work"), op("idle")}, nil
}

// An openedArea is an area that opens a given target.
type openedArea struct {
	area.Area
	target area.Target
}

func (o openedArea) Open(context.Context, area.Spec, area.Env) (area.Target, error) {
	return o.target, nil
}

var threeArms = design.Arms([]design.Treatment{{ID: "off", Baseline: true}, {ID: "on"}})

func start(t *testing.T, s *exactTarget, b run.Blocks) (run.Request, func() *record.Record) {
	t.Helper()
	s.sizes = map[int]int{}
	if s.cost == nil {
		s.cost = func(string) float64 { return 5e-6 }
	}
	w, err := record.Create(t.TempDir(), record.Header{
		Experiment: record.Experiment{Name: "x", Seed: 7},
		Question:   design.Compare,
	}, nil, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	read := func() *record.Record {
		t.Helper()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := record.Open(w.Dir())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return run.Request{
		Area: s, Env: area.Env{Clock: clock.System{}}, Question: design.Compare, Treatments: threeArms, Seed: 7,
		Writer: w, Blocks: b,
	}, read
}

// TestArmsTakeTurns: within a block all arms are prepared at the same time, and in every round each has one turn, in
// varying order.
func TestArmsTakeTurns(t *testing.T) {
	s := &exactTarget{}
	req, open := start(t, s, run.Blocks{Most: 3, Margin: 0.02})
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	if s.most != 3 || s.standing != 0 {
		t.Errorf("%d arms were prepared at the same time, %d were not closed", s.most, s.standing)
	}
	if s.sizes[100] == 0 {
		t.Errorf("batch sizes are %v, want 100: 1 ms of calls of 10 µs", s.sizes)
	}
	orders := map[string]bool{}
	turns := s.turns
	for len(turns) >= 3 {
		round := slices.Clone(turns[:3])
		if slices.Sort(round); !slices.Equal(round, []string{"aa", "off", "on"}) {
			turns = turns[1:] // finding the size of a batch
			continue
		}
		orders[strings.Join(turns[:3], " ")] = true
		turns = turns[3:]
	}
	if len(orders) < 4 {
		t.Errorf("drew only the orders %v", orders)
	}
	r := open()
	if n := r.CompleteBlocks(); n != 3 || r.Plan.Margin != 0.02 || r.Plan.Blocks != 3 ||
		!slices.Equal(r.Plan.Looks, []int{3}) {
		t.Errorf("%d complete blocks of plan %+v", n, r.Plan)
	}
	for _, trial := range r.Trials {
		if len(trial.Batches) != 4 || !slices.Equal(trial.Negative, []string{"idle"}) {
			t.Fatalf("got trial %+v", trial)
		}
		for _, b := range trial.Batches {
			if len(b.Values) != 4 || b.N != 100 {
				t.Errorf("got batches %+v", b)
			}
		}
	}
}

// TestLostBlocksAreReplaced: a look that finds lost blocks waits for their replacements, within the spare blocks and
// the time.
func TestLostBlocksAreReplaced(t *testing.T) {
	for _, c := range []struct {
		name   string
		b      run.Blocks
		lost   []int // numbers of the lost blocks
		asked  []int // after so many blocks
		looked []record.Look
	}{
		{"none", run.Blocks{Most: 10, Spare: 5}, nil, []int{10}, []record.Look{{Blocks: 10}}},
		{"three", run.Blocks{Most: 10, Spare: 5}, []int{2, 3, 9}, []int{10, 13}, []record.Look{{Blocks: 13, Lost: 3}}},
		{
			"a replacement as well",
			run.Blocks{Most: 10, Spare: 5},
			[]int{2, 3, 12},
			[]int{10, 12, 13},
			[]record.Look{{Blocks: 13, Lost: 3}},
		},
		{
			"more than are spare",
			run.Blocks{Most: 10, Spare: 2},
			[]int{2, 3, 9, 11},
			[]int{10, 12},
			[]record.Look{{Blocks: 12, Lost: 4}},
		},
		{
			"at the first of two looks",
			run.Blocks{Most: 14, Spare: 7},
			[]int{2, 3},
			[]int{10, 12, 14, 16},
			[]record.Look{{Blocks: 12, Lost: 2}, {Blocks: 16, Lost: 2}},
		},
		{"no time", run.Blocks{Most: 10, Spare: 5, Within: 1}, []int{1}, []int{1}, []record.Look{{Blocks: 1, Lost: 1}}},
		{
			"of a run that goes on",
			run.Blocks{Most: 20, Spare: 10, From: 12, Lost: 2},
			[]int{2, 3},
			[]int{20, 22},
			[]record.Look{{Blocks: 22, Lost: 2}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []int
			c.b.Decide = func(n, look int) (run.Decision, error) {
				asked = append(asked, n)
				d := run.Decision{Reason: "more"}
				for _, l := range c.lost {
					if l <= n {
						d.Lost++
					}
				}
				d.More = max(0, look+d.Lost-n)
				return d, nil
			}
			req, open := start(t, &exactTarget{}, c.b)
			if _, err := Do(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			r := open()
			for i := range r.Looks {
				if stop := i == len(r.Looks)-1; r.Looks[i].Stop != stop {
					t.Errorf("look %d: %+v", i, r.Looks[i])
				}
				r.Looks[i].Stop, r.Looks[i].Reason = false, ""
			}
			if !slices.Equal(asked, c.asked) || !slices.Equal(r.Looks, c.looked) {
				t.Errorf("asked after %v, want %v; looks %+v, want %+v", asked, c.asked, r.Looks, c.looked)
			}
			if n := len(r.Plan.Trials); n != c.b.Most*len(r.Plan.Treatments) {
				t.Errorf("%d trials are in the plan", n)
			}
		})
	}
}

func TestInterimLooksStopARun(t *testing.T) {
	for _, c := range []struct {
		name   string
		b      run.Blocks
		stop   int
		looked []int
		blocks int
		reason string
	}{
		{"decided at a look", run.Blocks{Most: 40}, 10, []int{10}, 10, "enough"},
		{"never decided", run.Blocks{Most: 25}, 99, []int{10, 20, 25}, 25, "all 25 blocks are measured; more"},
		{"out of time", run.Blocks{Most: 40, Within: 1}, 99, []int{1}, 1, "another block would not end within 1ns; more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var looked []int
			c.b.Decide = func(n, _ int) (run.Decision, error) {
				if looked = append(looked, n); n >= c.stop {
					return run.Decision{Stop: true, Reason: "enough"}, nil
				}
				return run.Decision{Reason: "more"}, nil
			}
			req, open := start(t, &exactTarget{}, c.b)
			if _, err := Do(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			r := open()
			last := r.Looks[len(r.Looks)-1]
			if !slices.Equal(looked, c.looked) || r.CompleteBlocks() != c.blocks || !last.Stop ||
				!strings.Contains(last.Reason, c.reason) {
				t.Errorf("looks %v, %d blocks, last %+v", looked, r.CompleteBlocks(), last)
			}
		})
	}
}

// TestInterruptDropsTheBlock: an incomplete block is not analyzed, and its treatment is undone.
func TestInterruptDropsTheBlock(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &exactTarget{}
	s.fail = func(_ string, turn int) error {
		if turn == 150 {
			cancel()
		}
		return nil
	}
	req, open := start(t, s, run.Blocks{Most: 20})
	if status, err := Do(ctx, req); status != record.Interrupted || err != nil {
		t.Fatal(status, err)
	}
	r := open()
	dropped := 0
	for _, trial := range r.Trials {
		if trial.End != nil && trial.End.Status == record.Dropped {
			dropped++
		}
	}
	if s.standing != 0 || dropped != 3 || r.CompleteBlocks() == 0 {
		t.Errorf("%d arms were not closed, %d trials dropped, %d blocks", s.standing, dropped, r.CompleteBlocks())
	}
}

// TestResumedRunMeasuresMissingBlocks: a resumed run measures only the missing blocks, in the order of the whole plan,
// with batches of the old size.
func TestResumedRunMeasuresMissingBlocks(t *testing.T) {
	whole, part := &exactTarget{}, &exactTarget{}
	seven := map[string]int{"off": 7, "on": 7, "aa": 7}
	sizes := map[string]map[string]int{"work": seven, "idle": seven}
	req, _ := start(t, whole, run.Blocks{Most: 4, Sizes: sizes})
	if _, err := Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	req, _ = start(t, part, run.Blocks{Most: 4, From: 2, Sizes: sizes})
	if _, err := Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(part.turns, whole.turns[len(whole.turns)/2:]) {
		t.Errorf("the second half differs:\n%v\n%v", part.turns, whole.turns[len(whole.turns)/2:])
	}
	if part.sizes[7] == 0 || len(part.sizes) > 2 {
		t.Errorf("batch sizes %v", part.sizes)
	}
}

func TestBadMeasurementsEndTheRun(t *testing.T) {
	broken := errors.New("the worker died")
	for name, c := range map[string]struct {
		s    *exactTarget
		want string
	}{
		"an error": {&exactTarget{fail: func(id string, turn int) error {
			return map[bool]error{true: broken}[id == "on" &&
				turn > 9]
		}}, "under on: the worker died"},
		"a negative": {&exactTarget{cost: func(string) float64 { return -1 }}, "wall = -2"},
	} {
		t.Run(name, func(t *testing.T) {
			req, open := start(t, c.s, run.Blocks{Most: 2})
			status, err := Do(t.Context(), req)
			if status != record.Errored || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %v; want %q", status, err, c.want)
			}
			if r := open(); c.s.standing != 0 || r.CompleteBlocks() != 0 {
				t.Errorf("%d arms were not closed, %d blocks are complete", c.s.standing, r.CompleteBlocks())
			}
		})
	}
}

// TestBlocksRecordHostLoad: every block records the load of the host and the share of this process in it.
func TestBlocksRecordHostLoad(t *testing.T) {
	req, open := start(t, &exactTarget{}, run.Blocks{Most: 2})
	if _, err := Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	r := open()
	if len(r.Host) != 2 || r.Host[1].Block != 1 {
		t.Fatalf("got host readings %+v", r.Host)
	}
	seen := map[string]bool{}
	for _, s := range r.Host[0].Samples {
		seen[s.Subject+" "+s.Metric] = s.Value >= 0
	}
	for _, want := range []string{"host host_cpu", "host host_all", "tare cpu"} {
		if !seen[want] {
			t.Errorf("no reading of %q among %v", want, seen)
		}
	}
}

// An oddTarget is an exactTarget with another operation under the treatment "on".
type oddTarget struct {
	*exactTarget
	change func(*load.Operation)
}

func (o *oddTarget) Operations(t design.Treatment) ([]load.Operation, error) {
	ops, err := o.exactTarget.Operations(t)
	if t.ID == "on" {
		o.change(&ops[1])
	}
	return ops, err
}

// TestArmsHaveTheSameOperations: arms of one block whose operations differ are not measured.
func TestArmsHaveTheSameOperations(t *testing.T) {
	for name, change := range map[string]func(*load.Operation){
		"another name":        func(op *load.Operation) { op.Name = "rest" },
		"no clock of its own": func(op *load.Operation) { op.Batch = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := &exactTarget{}
			req, open := start(t, s, run.Blocks{Most: 1})
			req.Area = openedArea{s, &oddTarget{s, change}}
			_, err := Do(t.Context(), req)
			if err == nil || !strings.Contains(err.Error(), "do not have the same operations") {
				t.Errorf("error %v", err)
			}
			if r := open(); s.standing != 0 || len(s.turns) != 0 || len(r.Trials) != 0 {
				t.Errorf("%d arms were not closed after %d turns and %d trials", s.standing, len(s.turns), len(r.Trials))
			}
		})
	}
}
