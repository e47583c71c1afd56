package run

import (
	"testing"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
)

// TestSlowArmsBoundBatches: where a control makes a call a thousand times dearer, batches are as long as it allows, the same in all arms; and an
// operation's own bound holds.
func TestSlowArmsBoundBatches(t *testing.T) {
	for name, c := range map[string]struct {
		most int
		slow float64 // seconds of CPU of a call of the slow arm; elapsed time is twice that
		want int
	}{
		"alike":      {0, 5e-6, 100},
		"4 times":    {0, 20e-6, 100},
		"1000 times": {0, 5e-3, 1},
		"10 times":   {0, 50e-6, 40},
		"of its own": {7, 5e-6, 7},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scale{cost: func(treatment string) float64 {
				if treatment == "on" {
					return c.slow
				}
				return 5e-6
			}}
			req, open := start(t, s, Blocks{Most: 1, Margin: 0.02})
			req.Area = opened{s, &bounding{s, c.most}}
			if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
				t.Fatal(status, err)
			}
			for _, trial := range open().Trials {
				for _, b := range trial.Batches {
					if b.N != c.want {
						t.Errorf("%s of %s: batches of %d calls, want %d", b.Operation, b.Treatment, b.N, c.want)
					}
				}
			}
		})
	}
}

// bounding is a scale whose operations bound their batches, and a 1 ms batch.
type bounding struct {
	*scale
	most int
}

func (b *bounding) Operations(t design.Treatment) ([]load.Operation, error) {
	ops, err := b.scale.Operations(t)
	for i := range ops {
		ops[i].Most, ops[i].Span = b.most, time.Millisecond
	}
	return ops, err
}
