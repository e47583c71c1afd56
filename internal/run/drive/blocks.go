package drive

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/unit"
)

// Block is a run's position among its blocks.
type Block struct {
	Number, Most int          // from 1
	Look         *record.Look // after a judgement of the blocks
	Hint         string       // what spoils the run, and what would help
	Operation    string
	Round        int // from 1; of Rounds
	Rounds       int
	Left         time.Duration // until the last block at this pace; 0: unknown
}

// blocks are the blocks of a run.
type blocks struct {
	*run.Stage
	begun time.Time // start of the first block: preparation precedes it
	due   []int     // remaining looks, by their planned blocks
	again int       // the block after which the first of them is repeated
	// sizes are the calls of a batch by operation and treatment.
	sizes map[string]map[string]int
	// renewing is the time that was spent on starting targets afresh.
	renewing time.Duration
}

// renewShare is the part of a run's time that may go into starting targets afresh.
const renewShare = 0.4

// inBlocks measures block after block until a look decides that they are enough, or the budget of blocks or of time is
// spent.
func inBlocks(ctx context.Context, s *run.Stage, plan []design.Trial) error {
	x := &blocks{Stage: s, begun: s.Env.Clock.Now(), due: s.Blocks.Looks(), sizes: map[string]map[string]int{}}
	arms := len(x.Treatments)
	maps.Copy(x.sizes, x.Blocks.Sizes)
	for len(x.due) > 1 && x.due[0] <= x.Blocks.From-x.Blocks.Lost {
		x.due = x.due[1:]
	}
	for b := x.Blocks.From; b < x.Blocks.Most+x.Blocks.Spare; b++ {
		at := x.Env.Clock.Now()
		seen := x.WatchHost(ctx, b)
		if err := x.renew(ctx, plan[b*arms:(b+1)*arms]); err != nil {
			return err
		}
		if err := x.block(ctx, b, plan[b*arms:(b+1)*arms]); err != nil {
			return fmt.Errorf("block %d: %w", b+1, err)
		}
		if err := seen(); err != nil {
			return err
		}
		took := x.Env.Clock.Now().Sub(at)
		late := x.Blocks.Within > 0 && x.Env.Clock.Now().Add(took).Sub(x.begun) > x.Blocks.Within
		if stop, err := x.look(b+1, late); err != nil || stop {
			return err
		}
	}
	return nil
}

// renew has the target start afresh what it started for the treatments of a block: processes of one program differ by
// per cents for as long as they live, and an interval knows of chance only what differs from block to block. All start
// at one time, so that none is the first; what the first block finds was prepared one after another. Where a start
// takes long, not every block has new ones.
func (x *blocks) renew(ctx context.Context, trials []design.Trial) error {
	at := x.Env.Clock.Now()
	if x.renewing.Seconds() > at.Sub(x.begun).Seconds()*renewShare {
		return nil
	}
	err := x.Renew(ctx, trials)
	x.renewing += x.Env.Clock.Now().Sub(at)
	return err
}

// look judges after b blocks, if that is a look or the run ends here. A look with lost blocks waits for their
// replacements.
func (x *blocks) look(b int, late bool) (stop bool, err error) {
	if b < max(x.due[0], x.again) && !late {
		return false, nil
	}
	x.Tell(run.Event{Phase: run.Looking, Detail: &Block{Number: b, Most: x.last()}})
	d := run.Decision{Reason: "nothing judges this run"}
	if x.Blocks.Decide != nil {
		if d, err = x.Blocks.Decide(b, x.due[0]); err != nil {
			return true, fmt.Errorf("judge %s: %w", unit.Count(b, "block"), err)
		}
	}
	if d.Hint != "" {
		x.Tell(run.Event{Phase: run.Looking, Detail: &Block{Number: b, Most: x.last(), Hint: d.Hint}})
	}
	all := b >= x.Blocks.Most+x.Blocks.Spare
	if d.More > 0 && !late && !all {
		x.again = min(b+d.More, x.Blocks.Most+x.Blocks.Spare)
		return false, nil
	}
	look := record.Look{Blocks: b, Lost: d.Lost, Stop: d.Stop, Reason: d.Reason}
	switch {
	case d.Stop:
	case late:
		look.Stop, look.Reason = true, fmt.Sprintf("another block would not end within %s; %s", x.Blocks.Within, d.Reason)
	case len(x.due) == 1 || all:
		look.Stop, look.Reason = true, fmt.Sprintf("all %s are measured; %s", unit.Count(b, "block"), d.Reason)
	default:
		x.due = x.due[1:]
	}
	x.Tell(run.Event{Phase: run.Looking, Detail: &Block{Number: b, Most: x.last(), Look: &look}})
	return look.Stop, x.Writer.Look(look)
}

// last is the number of the last block, as far as known.
func (x *blocks) last() int { return max(x.Blocks.Most, x.again) }

// block measures every arm once. Arms whose operations have their own clock take turns batch by batch, and those that
// are called at a rate turn by turn; where they cannot, one has its trial after another.
func (x *blocks) block(ctx context.Context, b int, trials []design.Trial) error {
	ops, err := x.Operations(x.Treatments[0])
	if err != nil {
		return err
	}
	if len(ops) > 0 && !slices.ContainsFunc(ops, func(op load.Operation) bool { return op.Batch == nil }) {
		do := func(ctx context.Context, arms []*run.Arm) error { return x.sideBySide(ctx, b, arms) }
		return x.Measure(ctx, do, trials...)
	}
	if x.Load.Turns != nil {
		do := func(ctx context.Context, arms []*run.Arm) error { return x.inTurns(ctx, b, arms, *x.Load.Turns) }
		return x.Measure(ctx, do, trials...)
	}
	for _, t := range trials {
		x.Tell(run.Event{Phase: run.Measuring, Treatment: t.Treatment, Trial: t.Index + 1, Detail: x.position(b)})
		if err := x.Measure(ctx, alone(steady), t); err != nil {
			return err
		}
	}
	return nil
}

// position returns the run's position at block b.
func (x *blocks) position(b int) *Block {
	p := &Block{Number: b + 1, Most: max(x.last(), b+1)}
	if done := b - x.Blocks.From; done > 0 {
		spent := x.Env.Clock.Now().Sub(x.begun)
		p.Left = spent / time.Duration(done) * time.Duration(max(1, x.last()-b))
	}
	return p
}
