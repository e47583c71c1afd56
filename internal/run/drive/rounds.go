package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/run"
)

// sideBySide measures a block whose arms are all in force at once and take turns batch by batch, so that disturbances
// of the host affect them equally.
func (x *blocks) sideBySide(ctx context.Context, b int, arms []*run.Arm) error {
	for _, a := range arms {
		if err := a.Sample(ctx, record.Before, 0); err != nil {
			return err
		}
	}
	err := x.takeTurns(ctx, b, arms)
	for _, a := range arms {
		if ctx.Err() != nil {
			break // interrupted programs may have ended, and the counts of half a block are not used
		}
		err = errors.Join(err, a.Sample(ctx, record.After, 0))
	}
	return err
}

// takeTurns measures one operation after another, in an order drawn for the block.
func (x *blocks) takeTurns(ctx context.Context, b int, arms []*run.Arm) error {
	rng := rand.New(rand.NewPCG(blockSeed(x.Seed, b), 0x0eade5))
	for _, i := range rng.Perm(len(arms[0].Ops)) {
		if err := x.operation(ctx, b, arms, i, rng); err != nil {
			return err
		}
	}
	return nil
}

// operation measures the batches of one operation: a warm-up of every arm, then rounds in which each arm has one turn.
func (x *blocks) operation(ctx context.Context, b int, arms []*run.Arm, i int, rng *rand.Rand) error {
	op := arms[0].Ops[i]
	place := x.position(b)
	place.Operation, place.Rounds = op.Name, op.Rounds
	if place.Rounds <= 0 {
		place.Rounds = area.UsualRounds
	}
	sizes, err := x.lengths(ctx, arms, i)
	if err != nil {
		return err
	}
	for _, a := range arms {
		if _, err := a.Ops[i].Batch(ctx, max(1, sizes[a.Trial.Treatment]/4)); err != nil {
			return fmt.Errorf("%s under %s: %w", op.Name, a.Trial.Treatment, err)
		}
	}
	taken, own := make([]batches, len(arms)), x.Area.Parts().Quantities
	for r := range place.Rounds {
		place.Round = r + 1
		at := *place
		x.Tell(during(arms[0], run.Measuring, &at))
		for _, k := range rng.Perm(len(arms)) {
			s, err := arms[k].Ops[i].Batch(ctx, sizes[arms[k].Trial.Treatment])
			if err == nil {
				err = taken[k].add(s, r, own)
			}
			if err != nil {
				return fmt.Errorf("%s under %s: %w", op.Name, arms[k].Trial.Treatment, err)
			}
		}
	}
	for k, a := range arms {
		if err := taken[k].write(x.Writer, a.Trial, op.Name, sizes[a.Trial.Treatment]); err != nil {
			return err
		}
	}
	return nil
}

// perInstruction is how long an instruction counts where a target measures no time: a nanosecond, as on an emulated
// machine.
const perInstruction = 1e-9

// perCall returns the elapsed time of one call in seconds, or its CPU time, or its instructions as seconds: the first
// of these that was measured.
func perCall(s []load.BatchSample) float64 {
	var cpu, instructions float64
	for _, v := range s {
		switch v.Metric {
		case metric.Wall.Name:
			return v.Value
		case metric.CPU.Name:
			cpu = v.Value
		case metric.Instructions.Name:
			instructions = v.Value * perInstruction
		}
	}
	return cmp.Or(cpu, instructions)
}

// blockSeed is the seed of what all arms of a block share: the order of turns, and the arrivals of calls.
func blockSeed(seed uint64, b int) uint64 { return seed + uint64(b+1)*0x9e3779b97f4a7c15 }

// batches are one arm's samples of one operation, by metric in the order in which they came.
type batches struct {
	metrics []string
	values  [][]float64
}

// add adds round r. It rejects a metric that is unknown or not in all rounds: that is a defect of the target. own are
// the quantities that only its area measures.
func (b *batches) add(s []load.BatchSample, r int, own []metric.Metric) error {
	for _, v := range s {
		if _, ok := metric.Find(v.Metric, own...); !ok {
			return fmt.Errorf("the target measured %q, which is not a known metric", v.Metric)
		}
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Value < 0 {
			return fmt.Errorf("the target measured %s = %v", v.Metric, v.Value)
		}
		k := 0
		for k < len(b.metrics) && b.metrics[k] != v.Metric {
			k++
		}
		if k == len(b.metrics) {
			b.metrics, b.values = append(b.metrics, v.Metric), append(b.values, nil)
		}
		b.values[k] = append(b.values[k], v.Value)
	}
	for k, values := range b.values {
		if len(values) != r+1 {
			return fmt.Errorf("the target measured %s in %d of %d batches", b.metrics[k], len(values), r+1)
		}
	}
	if len(b.metrics) == 0 {
		return errors.New("the target measured nothing")
	}
	return nil
}

func (b *batches) write(w *record.Writer, t design.Trial, op string, n int) error {
	for k, m := range b.metrics {
		if err := w.Batches(record.Batches{
			Treatment: t.Treatment, Block: t.Block, Operation: op, Metric: m, N: n,
			Values: b.values[k],
		}); err != nil {
			return err
		}
	}
	return nil
}
