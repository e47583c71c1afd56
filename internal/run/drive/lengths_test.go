package drive

import (
	"testing"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
)

// TestBatchSizes: arms whose calls cost about as much as the baseline's make as many in a batch; much dearer or cheaper
// ones make batches that take as long; and the limit of an operation applies.
func TestBatchSizes(t *testing.T) {
	for name, c := range map[string]struct {
		most int
		// whole is the multiple; 0: 1
		whole int
		own   float64 // seconds of CPU of a call of the other arm; elapsed time is twice that
		want  int     // calls of the other arm
		base  int     // of the baseline and its A/A arm
	}{
		"alike":         {0, 0, 5e-6, 100, 100},
		"3 times":       {0, 0, 15e-6, 100, 100},
		"a third":       {0, 0, 5e-6 / 3, 100, 100},
		"10 times":      {0, 0, 50e-6, 10, 100},
		"1000 times":    {0, 0, 5e-3, 1, 100},
		"a thousandth":  {0, 0, 5e-9, 100_000, 100},
		"of its own":    {7, 0, 5e-6, 7, 7},
		"one":           {1, 0, 50e-6, 1, 1},
		"whole":         {0, 30, 5e-6, 120, 120},
		"no less":       {0, 500, 50e-6, 500, 500},
		"and far apart": {500, 0, 5e-9, 500, 100},
	} {
		t.Run(name, func(t *testing.T) {
			s := &exactTarget{cost: func(treatment string) float64 {
				if treatment == "on" {
					return c.own
				}
				return 5e-6
			}}
			req, open := start(t, s, run.Blocks{Most: 1, Margin: 0.02})
			req.Area = openedArea{s, &boundedTarget{s, c.most, c.whole}}
			if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
				t.Fatal(status, err)
			}
			if made := len(s.turns); c.most == 1 && made != 3*2*(4+1) {
				t.Errorf("%d batches, want those of 3 arms, 2 operations, and 4 rounds after a warm-up: none to find a length",
					made)
			}
			r := open()
			for _, trial := range r.Trials {
				for _, b := range trial.Batches {
					want := c.base
					if b.Treatment == "on" {
						want = c.want
					}
					if b.N != want || r.BatchSizes()[b.Operation][b.Treatment] != want {
						t.Errorf("%s of %s: batches of %d calls, want %d", b.Operation, b.Treatment, b.N, want)
					}
				}
			}
		})
	}
}

// A boundedTarget is an exactTarget whose operations limit their batches to 1 ms.
type boundedTarget struct {
	*exactTarget
	most, whole int
}

func (b *boundedTarget) Operations(t design.Treatment) ([]load.Operation, error) {
	ops, err := b.exactTarget.Operations(t)
	for i := range ops {
		ops[i].Most, ops[i].Whole, ops[i].Span = b.most, b.whole, time.Millisecond
	}
	return ops, err
}
