package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
	"tare/rigs/hosttest"
)

// A turningTarget is a target whose only operation takes longer under one treatment.
type turningTarget struct{ exactTarget }

func (*turningTarget) Operations(t design.Treatment) ([]load.Operation, error) {
	d := time.Millisecond
	if t.ID == "on" {
		d = 3 * time.Millisecond
	}
	return []load.Operation{{Name: "call", Weight: 1, Call: func(context.Context, uint64) load.Result {
		time.Sleep(d)
		return load.Result{Outcome: load.OK}
	}}}, nil
}

// TestCallsTakeTurns: all arms are in force together; each has one turn in every round, in varying order, and the calls
// of a turn have ended before the next one begins.
func TestCallsTakeTurns(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const blocks = 2
	turns := &design.Turns{Length: 20 * time.Millisecond, Rounds: 5, Settle: 2 * time.Millisecond}
	for name, l := range map[string]run.Load{
		"at a rate":  {Rate: 500},
		"one worker": {Closed: &load.Closed{Workers: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &turningTarget{}
			req, open := start(t, &s.exactTarget, run.Blocks{Most: blocks})
			req.Area = openedArea{Area: &s.exactTarget, target: s}
			l.Config = load.Config{Engine: load.Std, Timeout: 5 * time.Second, MaxConns: 8}
			l.Turns = turns
			req.Load = l
			began := time.Now()
			if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
				t.Fatal(status, err)
			}
			took := time.Since(began)
			if s.most != len(threeArms) || s.standing != 0 {
				t.Errorf("%d arms were in force together, %d were not taken back", s.most, s.standing)
			}
			r := open()
			if r.Plan.Load.Turns == nil || *r.Plan.Load.Turns != *turns {
				t.Errorf("the plan has turns %+v", r.Plan.Load.Turns)
			}
			orders, rounds := map[string]bool{}, 0
			for b := range blocks {
				rounds += checkBlock(t, r, b, turns, orders)
			}
			// A host that stands still takes rounds from a block, but not before the block has lasted for its longest.
			longest := longestBlock * turns.Block(len(threeArms))
			if all := blocks * turns.Rounds; rounds < all && took < longest {
				t.Errorf("%d of %d rounds, though the run took %v, and one block may take %v", rounds, all, took, longest)
			}
			if len(orders) < 2 && rounds == blocks*turns.Rounds {
				t.Error("all rounds have one order")
			}
		})
	}
}

// TestATargetThatHangsInTurns has fewer rounds, the same number in all arms.
func TestATargetThatHangsInTurns(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	req, open := startHanging(t, 1, run.Load{
		Config: load.Config{Engine: load.Std, Timeout: 200 * time.Millisecond, MaxConns: 8}, Rate: 200,
		Turns: &design.Turns{Length: 10 * time.Millisecond, Rounds: 20},
	})
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	rounds := map[int]bool{}
	for _, trial := range open().Trials {
		rounds[len(trial.Window.Turns)] = true
	}
	if len(rounds) != 1 || rounds[0] || rounds[20] {
		t.Errorf("rounds of the arms: %v", rounds)
	}
}

// TestATargetThatSuffersInTurns ends the run, though the other targets answer well.
func TestATargetThatSuffersInTurns(t *testing.T) {
	req, open := startHanging(t, 3, run.Load{
		Config: load.Config{Engine: load.Std, Timeout: 50 * time.Millisecond, MaxConns: 8}, Rate: 500,
		Turns: &design.Turns{Length: 20 * time.Millisecond, Rounds: 50},
		Abort: &run.Abort{Share: 0.5, For: 300 * time.Millisecond},
	})
	status, err := Do(t.Context(), req)
	if status != record.Errored || !errors.Is(err, run.ErrAborted) {
		t.Errorf("%v, %v", status, err)
	}
	if n := len(open().Trials); n != len(threeArms) {
		t.Errorf("%d trials", n)
	}
}

// startHanging is start for a hangingTarget.
func startHanging(t *testing.T, blocks int, l run.Load) (run.Request, func() *record.Record) {
	t.Helper()
	s := &hangingTarget{}
	req, open := start(t, &s.exactTarget, run.Blocks{Most: blocks})
	req.Area, req.Load = openedArea{Area: &s.exactTarget, target: s}, l
	return req, open
}

// A hangingTarget does not answer under one treatment.
type hangingTarget struct{ exactTarget }

func (*hangingTarget) Operations(t design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "call", Weight: 1, Call: func(ctx context.Context, _ uint64) load.Result {
		if t.ID == "on" {
			<-ctx.Done()
			return load.Result{Outcome: load.Timeout}
		}
		return load.Result{Outcome: load.OK}
	}}}, nil
}

// checkBlock checks the turns of one block, notes their orders, and returns how many rounds there are.
func checkBlock(t *testing.T, r *record.Record, b int, turns *design.Turns, orders map[string]bool) int {
	t.Helper()
	type turn struct {
		arm       string
		at, ended time.Duration
	}
	var all []turn
	rounds := 0
	for _, trial := range r.Trials {
		if trial.Block != b {
			continue
		}
		w := trial.Window
		if w == nil || len(w.Turns) == 0 || len(w.Turns) > turns.Rounds || w.Settle != turns.Settle {
			t.Fatalf("%s has the window %+v", trial.Treatment, w)
		}
		if rounds == 0 {
			rounds = len(w.Turns)
		}
		if len(w.Turns) != rounds {
			t.Errorf("%s has %d turns in block %d, another treatment has %d", trial.Treatment, len(w.Turns), b, rounds)
		}
		calls, err := trial.Calls()
		if err != nil || len(calls) < rounds {
			t.Fatalf("%s has %d calls, %v", trial.Treatment, len(calls), err)
		}
		for _, x := range w.Turns {
			one := turn{arm: trial.Treatment, at: x.Start}
			calls = slices.DeleteFunc(calls, func(c load.Call) bool {
				if c.Intended < x.Start || c.Intended >= x.End {
					return false
				}
				one.ended = max(one.ended, c.Done)
				return true
			})
			all = append(all, one)
		}
		if len(calls) > 0 {
			t.Errorf("%d calls of %s are in none of its turns", len(calls), trial.Treatment)
		}
	}
	slices.SortFunc(all, func(x, y turn) int { return int(x.at - y.at) })
	for i := 0; i < len(all); i += len(threeArms) {
		round := all[i:min(len(all), i+len(threeArms))]
		order := ""
		seen := map[string]bool{}
		for _, x := range round {
			order += x.arm + " "
			seen[x.arm] = true
		}
		orders[order] = true
		if len(seen) != len(threeArms) {
			t.Errorf("a round of block %d is %s", b, order)
		}
	}
	for i := 1; i < len(all); i++ {
		if all[i].at < all[i-1].ended {
			t.Errorf("a turn of %s began at %v, before a call of %s had ended at %v", all[i].arm, all[i].at, all[i-1].arm,
				all[i-1].ended)
		}
	}
	return rounds
}

// hangs is when what others must end is given up.
const hangs = time.Minute

// A renewingTarget starts afresh what it started. If it is slow, an hour passes meanwhile on its clock.
type renewingTarget struct {
	turningTarget
	slow bool
	clock.System
	hours atomic.Int64

	mu      sync.Mutex
	renewed map[string]int
	waiting int           // treatments that are being started
	all     chan struct{} // is closed when those of a block are
}

// Now implements clock.Clock.
func (s *renewingTarget) Now() time.Time {
	return s.System.Now().Add(time.Duration(s.hours.Load()) * time.Hour)
}

func (s *renewingTarget) Can() area.Can {
	can := s.turningTarget.Can()
	can.Renew = func(_ context.Context, t design.Treatment) (bool, error) {
		s.mu.Lock()
		s.renewed[t.ID]++
		all := s.all
		if s.waiting++; s.waiting == len(threeArms) {
			close(all)
			s.waiting, s.all = 0, make(chan struct{})
		}
		s.mu.Unlock()
		if s.slow {
			s.hours.Add(1)
		}
		select {
		case <-all:
			return true, nil
		case <-time.After(hangs):
			return false, errors.New("the others are not started at the same time")
		}
	}
	return can
}

// TestTargetsAreStartedAfresh for every block, all of them at one time or none, and less often where that takes a large
// part of the time. The record says for which trials.
func TestTargetsAreStartedAfresh(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const blocks = 5
	for slow, want := range map[bool]int{false: blocks, true: 1} {
		t.Run(fmt.Sprintf("slow %v", slow), func(t *testing.T) {
			s := &renewingTarget{slow: slow, all: make(chan struct{}), renewed: map[string]int{}}
			req, open := start(t, &s.exactTarget, run.Blocks{Most: blocks})
			req.Area = openedArea{Area: &s.exactTarget, target: s}
			req.Env.Clock = s
			req.Load = run.Load{
				Rate: 500, Config: load.Config{Engine: load.Std, Timeout: 5 * time.Second, MaxConns: 8},
				Turns: &design.Turns{Length: 5 * time.Millisecond, Rounds: 2, Settle: time.Millisecond},
			}
			if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
				t.Fatal(status, err)
			}
			recorded := map[string]int{}
			for _, trial := range open().Trials {
				if trial.Renewed {
					recorded[trial.Treatment]++
				}
				if trial.Block == 0 && !trial.Renewed {
					t.Error("the first block has the processes that were prepared one after another")
				}
			}
			for _, arm := range threeArms {
				if n := s.renewed[arm.ID]; n != want || recorded[arm.ID] != n {
					t.Errorf("%s was started afresh %d times, recorded %d times; want %d", arm.ID, n, recorded[arm.ID], want)
				}
			}
		})
	}
}
