package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/record"
)

// cell is one of n calls, of which sent were sent.
func cell(op int, o load.Outcome, n, sent int, causes ...load.CauseCount) load.Cell {
	c := load.Cell{Operation: op, Outcome: o, Response: &hist.Histogram{}, Service: &hist.Histogram{}, Causes: causes}
	c.Response.RecordN(1, uint64(n))
	c.Service.RecordN(1, uint64(sent))
	return c
}

func TestAccountCountsAnswers(t *testing.T) {
	ops := []load.Operation{
		{Name: "a", Answer: "permit", CauseAnswers: []string{"", "deny"}},
		{Name: "b", Answer: "deny"},
		{Name: "health"},
	}
	own := func(k int, status uint16, n uint64) load.CauseCount {
		return load.CauseCount{Cause: load.OwnCauses + load.Cause(k), Status: status, Count: n}
	}
	for name, c := range map[string]struct {
		cell       load.Cell
		seen       map[string]uint64
		unanswered uint64
	}{
		"good":                     {cell(0, load.OK, 5, 5), map[string]uint64{"permit": 5}, 0},
		"denied as it should be":   {cell(1, load.Denied, 4, 4), map[string]uint64{"deny": 4}, 0},
		"an answer without a word": {cell(2, load.OK, 3, 3), map[string]uint64{}, 0},
		"wrong": {
			cell(0, load.Wrong, 3, 3, own(1, 200, 2), own(0, 200, 1)),
			map[string]uint64{"deny": 2},
			0,
		},
		"wrong, of no known meaning": {cell(1, load.Wrong, 2, 2, own(1, 200, 2)), map[string]uint64{}, 0},
		"timeouts": {cell(0, load.Timeout, 7, 4, load.CauseCount{Cause: load.CauseNoByte, Count: 4},
			load.CauseCount{Cause: load.CauseNoConnection, Count: 3}), map[string]uint64{}, 4},
		"refused connections": {cell(0, load.ConnFailed, 9, 0, load.CauseCount{
			Cause: load.CauseConnect, Errno: 111,
			Count: 9,
		}), map[string]uint64{}, 0},
		"resets": {cell(0, load.ConnFailed, 9, 9,
			load.CauseCount{Cause: load.CauseClosedEarly, Errno: 104, Count: 9}), map[string]uint64{}, 9},
		"answers of 500": {
			cell(0, load.Failed, 6, 6, load.CauseCount{Status: 500, Count: 6}),
			map[string]uint64{},
			0,
		},
		"closed without an answer": {
			cell(0, load.Failed, 6, 6, load.CauseCount{Cause: load.CauseClosedEarly, Count: 6}),
			map[string]uint64{},
			6,
		},
		"cut within an answer": {cell(0, load.Failed, 2, 2, load.CauseCount{
			Cause: load.CauseClosedWithin, Status: 200,
			Count: 2,
		}), map[string]uint64{}, 2},
		"redirects": {cell(0, load.Failed, 2, 2, load.CauseCount{
			Cause: load.CauseRedirect, Status: 302,
			Count: 2,
		}), map[string]uint64{}, 0},
		"shed": {
			cell(0, load.Refused, 2, 2, load.CauseCount{Status: 429, Count: 2}),
			map[string]uint64{},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &account{arm: &arm{ops: ops}, seen: map[string]uint64{}}
			a.count([]load.Cell{c.cell})
			if d := cmp.Diff(c.seen, a.seen); d != "" || a.unanswered != c.unanswered {
				t.Errorf("unanswered %d, want %d; seen (-want +got):\n%s", a.unanswered, c.unanswered, d)
			}
		})
	}
}

// silent is a target that says what it counted only when it is asked often enough.
type silent struct {
	scale
	fails int
	asked int
	keeps bool
}

func (s *silent) Counted(context.Context, design.Treatment) (map[string]float64, error) {
	if s.asked++; s.asked <= s.fails {
		return nil, errors.New("503 Service Unavailable")
	}
	if !s.keeps {
		return nil, nil
	}
	return map[string]float64{"permit": float64(s.asked)}, nil
}

var _ area.Ledger = (*silent)(nil)

func TestAccountAsksAgain(t *testing.T) {
	trial := design.Trial{Treatment: "here"}
	for name, c := range map[string]struct {
		target *silent
		want   []record.Answers
	}{
		"at once": {
			&silent{keeps: true},
			[]record.Answers{{
				Treatment: "here", Seen: map[string]uint64{}, Before: map[string]float64{"permit": 1},
				After: map[string]float64{"permit": 2},
			}},
		},
		"while starting": {
			&silent{keeps: true, fails: 3},
			[]record.Answers{{
				Treatment: "here", Seen: map[string]uint64{}, Before: map[string]float64{"permit": 4},
				After: map[string]float64{"permit": 5},
			}},
		},
		"never": {
			&silent{fails: 99},
			[]record.Answers{{
				Treatment: "here", Seen: map[string]uint64{},
				Error: "read the target's own counts: 503 Service Unavailable",
			}},
		},
		"keeps none": {&silent{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clock.NewFake(time.Unix(0, 0))
			req, open := start(t, &c.target.scale, Blocks{})
			req.Env.Clock = clk
			a := &arm{runner: &runner{Request: req, target: c.target}, trial: trial, treatment: design.Treatment{ID: "here"}}
			if err := a.Writer.TrialBegin(record.TrialBegin{Trial: trial}); err != nil {
				t.Fatal(err)
			}
			if err := a.newAccount(t.Context()).close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, open().Trials[0].Answers); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if waited := clk.Now().Sub(time.Unix(0, 0)); waited > 10*time.Second {
				t.Errorf("it waited for %v", waited)
			}
		})
	}
}

// Trials of a comparison are compared with the target's counts too, including their warm-up.
func TestAccountOfAComparison(t *testing.T) {
	v := &visited{site: newSite(t)}
	req, open := start(t, &v.scale, Blocks{Most: 1})
	req.Area = opened{Area: &v.scale, target: v}
	req.Load = Load{Engine: load.Fast, Timeout: 5 * time.Second, MaxConns: 8, Duration: 300 * time.Millisecond, Rate: 300}
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	r := open()
	if len(r.Trials) != len(threeArms) {
		t.Fatalf("%d trials", len(r.Trials))
	}
	for _, trial := range r.Trials {
		agree(t, trial)
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
		{30 * time.Second, 0, time.Second, 3 * time.Second},
		{2 * time.Second, 0, time.Second, time.Second},
		{30 * time.Second, 10 * time.Second, time.Second, 10 * time.Second},
		{3 * time.Minute, 0, time.Second, 18 * time.Second},
		{10 * time.Minute, 0, 2 * time.Second, time.Minute},
		{30 * time.Minute, 0, 5 * time.Second, 3 * time.Minute},
		{2 * time.Hour, 0, 10 * time.Second, 5 * time.Minute},
		{24 * time.Hour, 10 * time.Minute, 10 * time.Second, 10 * time.Minute},
	} {
		if s, w := SliceLength(c.length), question.WarmUp(c.length, c.ramp); s != c.slice || w != c.warm {
			t.Errorf("%v with a ramp of %v: slices of %v after %v, want %v after %v", c.length, c.ramp, s, w, c.slice, c.warm)
		}
	}
}
