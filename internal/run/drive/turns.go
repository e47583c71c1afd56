package drive

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
)

// longestBlock bounds the turns of a block, as a multiple of what was planned: calls of a target that hangs make every
// turn as long as their timeout. The block then has fewer rounds.
const longestBlock = 4

// A turning is a block whose arms are called in turns.
type turning struct {
	*run.Turns
	load   *run.Load
	layout design.Turns
	seed   uint64 // that all arms share
	rng    *rand.Rand
	arms   []*turningArm
}

// A turningArm is an arm in a block of turns.
type turningArm struct {
	*run.Arm
	account  *run.Account
	spending *run.Spending
	seen     func(context.Context) error // records what the target measured itself
	turns    []record.Turn
	counts   record.Generator // of its turns
	held     uint64           // calls of its turns that max_rate held back
}

// inTurns measures a block whose arms are all in force at once: each round has one turn of every arm, in an order drawn
// for it. Calls of two arms are never in flight together, and connections are new in each block.
func (x *blocks) inTurns(ctx context.Context, b int, arms []*run.Arm, layout design.Turns) (err error) {
	seed := blockSeed(x.Seed, b)
	t := &turning{load: &x.Load, layout: layout, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x0eade5))}
	if t.Turns, err = run.OpenTurns(ctx, arms, seed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for k, a := range arms {
		one := &turningArm{Arm: a}
		if !t.Shared(k) {
			one.account = a.Account(ctx)
		}
		t.arms = append(t.arms, one)
	}
	if err := t.warmUp(ctx); err != nil {
		return err
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	start, before := t.Now(), t.Meter()
	place := x.position(b)
	place.Rounds = layout.Rounds
	most := longestBlock * layout.Block(len(arms))
	for place.Round = 1; place.Round <= layout.Rounds && t.Now()-start < most; place.Round++ {
		at := *place
		x.Tell(during(arms[0], run.Measuring, &at))
		if err := t.round(ctx, uint64(place.Round)); err != nil {
			return err
		}
	}
	after := t.Meter()
	return t.end(ctx, start, after.Since(&before))
}

// warmUp calls every arm for a while, which does not count: connections are opened, and every identity calls once.
func (t *turning) warmUp(ctx context.Context) error {
	for _, k := range t.rng.Perm(len(t.arms)) {
		d := max(t.layout.Length, min(allCall(t.load, t.Keys(k)), mostWarmUp))
		if _, err := t.offer(ctx, k, d, t.seed+1); err != nil {
			return fmt.Errorf("warm-up of %s: %w", t.arms[k].Trial.Treatment, err)
		}
	}
	t.take()
	return nil
}

// take returns the histograms of each arm's calls since the last take, and accounts for their answers.
func (t *turning) take() [][]load.Cell {
	cells, out := t.Take(), make([][]load.Cell, len(t.arms))
	for k, a := range t.arms {
		if out[k] = t.CellsOf(k, cells); a.account != nil {
			a.account.Count(out[k])
		}
	}
	return out
}

// begin reads what the targets count and use, before the first turn.
func (t *turning) begin(ctx context.Context) (err error) {
	for k, a := range t.arms {
		a.seen = a.Witness(ctx, t.Shared(k))
	}
	for k, a := range t.arms {
		if a.spending, err = a.Spending(ctx, t.Shared(k)); err != nil {
			return err
		}
	}
	return nil
}

// round gives every arm one turn.
func (t *turning) round(ctx context.Context, number uint64) error {
	for _, k := range t.rng.Perm(len(t.arms)) {
		a := t.arms[k]
		a.spending.Begin()
		before := t.Progress()
		seg, err := t.offer(ctx, k, t.layout.Length, t.seed+number)
		if err != nil {
			return err
		}
		after := t.Progress()
		a.spending.End()
		a.counts, a.held = run.Between(before, after, a.counts), a.held+after.Held-before.Held
		a.turns = append(a.turns, record.Turn{Start: seg.Start, End: seg.Start + t.layout.Length})
		if err := t.Harmed(k, &before, &after); err != nil {
			return err
		}
	}
	return nil
}

// offer calls one arm for a while. All arms are called at the same instants of their turns in a round.
func (t *turning) offer(ctx context.Context, arm int, d time.Duration, seed uint64) (load.Segment, error) {
	if c := t.load.Closed; c != nil {
		return t.Cycle(ctx, load.Closed{Workers: c.Workers, Duration: d, Arm: arm}, poll, nil)
	}
	return t.Offer(ctx, load.Turn{Process: level(t.load, d, seed), Arm: arm}, poll, nil)
}

// end records what every arm's turns measured.
func (t *turning) end(ctx context.Context, start time.Duration, effort *load.Effort) error {
	end := t.Now()
	var err error
	for _, a := range t.arms {
		err = errors.Join(err, a.spending.Close(ctx))
	}
	for _, a := range t.arms {
		err = errors.Join(err, a.seen(ctx))
	}
	calls, cells := t.Calls(start), t.take()
	for k, a := range t.arms {
		w := record.Window{
			Treatment: a.Trial.Treatment, Block: a.Trial.Block, Start: start, End: end, Turns: a.turns,
			Settle: t.layout.Settle,
		}
		g := a.counts
		g.Seconds, g.Effort = (end - start).Seconds(), effort
		if effort != nil {
			g.CPUSeconds = effort.CPU
		}
		err = errors.Join(err, a.Writer.Cells(w.Treatment, w.Block, cells[k]), a.Writer.Window(w),
			a.Writer.Calls(w.Treatment, w.Block, t.OfArm(k, calls)), a.Record(g, a.held))
		if a.account != nil {
			err = errors.Join(err, a.account.Close(ctx, 0))
		}
	}
	return err
}
