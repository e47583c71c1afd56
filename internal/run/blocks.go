package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"tare/internal/design"
	"tare/internal/record"
)

// Blocks lay out a comparison: randomised complete blocks, judged at a few looks.
type Blocks struct {
	Most   int           // maximum number of blocks
	Spare  int           // additional blocks, to replace blocks whose times cannot be used
	From   int           // complete blocks that the record holds already
	Lost   int           // of those, the blocks whose times cannot be used
	Within time.Duration // no block starts that would end later; 0: unbounded
	Margin float64       // the largest effect that counts as equivalent, as a share
	// Factors are the varied factors, for the record.
	Factors []record.Factor
	// Sizes are the calls of a batch by operation and treatment, of a continued run; nil: calibrate them.
	Sizes map[string]map[string]int
	// Decide judges the blocks so far, at the look that was planned after look blocks, and says whether they are enough.
	// It is called at looks only, since each uses a part of the allowed error.
	Decide func(blocks, look int) (Decision, error)
}

// Decision is the result of a look.
type Decision struct {
	Stop   bool
	Reason string // why the run may stop, or what is still undecided
	Lost   int    // blocks whose times cannot be used
	// More is how many replacement blocks must be measured before the look counts; until then the rest of the decision is
	// void.
	More int
}

// Block is a run's position among its blocks.
type Block struct {
	Number, Most int // from 1
	Operation    string
	Round        int // from 1; of Rounds
	Rounds       int
	Left         time.Duration // until the last block at this pace; 0: unknown
}

// looks returns the remaining looks.
func (b Blocks) looks() []int {
	if b.Most == 0 {
		return nil
	}
	return design.Looks(b.Most)
}

// blocks measures block after block until a look decides that they are enough, or the budget of blocks or of time is
// spent.
func (x *runner) blocks(ctx context.Context, plan []design.Trial) error {
	arms := len(x.Treatments)
	x.sizes = map[string]map[string]int{}
	maps.Copy(x.sizes, x.Blocks.Sizes)
	x.begun = x.Env.Clock.Now()
	x.due = x.Blocks.looks()
	for len(x.due) > 1 && x.due[0] <= x.Blocks.From-x.Blocks.Lost {
		x.due = x.due[1:]
	}
	for b := x.Blocks.From; b < x.Blocks.Most+x.Blocks.Spare; b++ {
		at := x.Env.Clock.Now()
		seen := x.watch(ctx, b)
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

// look judges after b blocks, if that is a look or the run ends here. A look with lost blocks waits for their
// replacements.
func (x *runner) look(b int, late bool) (stop bool, err error) {
	if b < max(x.due[0], x.again) && !late {
		return false, nil
	}
	x.event(Event{Phase: Looking, Block: &Block{Number: b, Most: x.last()}})
	d := Decision{Reason: "nothing judges this run"}
	if x.Blocks.Decide != nil {
		if d, err = x.Blocks.Decide(b, x.due[0]); err != nil {
			return true, fmt.Errorf("judge %d blocks: %w", b, err)
		}
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
		look.Stop, look.Reason = true, fmt.Sprintf("the time of %s is spent; %s", x.Blocks.Within, d.Reason)
	case len(x.due) == 1 || all:
		look.Stop, look.Reason = true, fmt.Sprintf("%d blocks are done; %s", b, d.Reason)
	default:
		x.due = x.due[1:]
	}
	x.event(Event{Phase: Looking, Look: &look, Block: &Block{Number: b, Most: x.last()}})
	return look.Stop, x.Writer.Look(look)
}

// last is the number of the last block, as far as known.
func (x *runner) last() int { return max(x.Blocks.Most, x.again) }

// block measures every arm once. Arms whose operations have their own clock run side by side and take turns; others run
// one after another, each under its own load.
func (x *runner) block(ctx context.Context, b int, trials []design.Trial) error {
	ops, err := x.operations(x.treatment(trials[0].Treatment))
	if err != nil {
		return err
	}
	if len(ops) > 0 && ops[0].Batch != nil {
		return x.sideBySide(ctx, b, trials)
	}
	for _, t := range trials {
		x.event(Event{Phase: Measuring, Treatment: t.Treatment, Trial: t.Index + 1, Block: x.position(b)})
		if err := x.arm(t).measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// position returns the run's position at block b.
func (x *runner) position(b int) *Block {
	p := &Block{Number: b + 1, Most: max(x.last(), b+1)}
	if done := b - x.Blocks.From; done > 0 {
		spent := x.Env.Clock.Now().Sub(x.begun)
		p.Left = spent / time.Duration(done) * time.Duration(max(1, x.last()-b))
	}
	return p
}

// enter puts every arm of a block in force and verifies it. leave undoes those that were entered, even after an error.
func enter(ctx context.Context, arms []*arm) (leave func() error, err error) {
	var entered []*arm
	leave = func() (err error) {
		for _, a := range entered {
			err = errors.Join(err, a.leave(ctx))
		}
		return err
	}
	for _, a := range arms {
		if err := a.enter(ctx); err != nil {
			return leave, err
		}
		entered = append(entered, a)
		if err := a.verify(ctx); err != nil {
			return leave, err
		}
	}
	return leave, nil
}
