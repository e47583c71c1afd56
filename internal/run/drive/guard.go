package drive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
)

const (
	// calm is the load before a condition begins, and after it has ended; usualHold is how long it lasts.
	calm      = 2 * time.Second
	settled   = 4 * time.Second
	usualHold = 5 * time.Second
	// longestCondition bounds a condition from its begin to its end.
	longestCondition = 2 * time.Minute
	// patience is how long at least the target has to answer again after a point: its backlog may be long.
	patience = 30 * time.Second
	// freshInARow is how many fresh calls show that the target answers again.
	freshInARow = 3
)

// Guarded is the state of a run that watches whether a control guards.
type Guarded struct {
	Point    guard.Point
	Step     int // from 1
	Progress load.Progress
	Seen     *guard.Seen // what the whole point shows; nil: it has not ended
}

// eachGuarded finds the capacity of each treatment unless the file gives the rates, and then offers it trespasses among
// the calls: at rates below and above, and under conditions.
func eachGuarded(ctx context.Context, s *run.Stage, plan []design.Trial) error {
	for _, trial := range plan {
		capacity, rates, err := guardedRates(ctx, s, trial)
		if err != nil {
			return err
		}
		trial.Block++ // the search has the first
		watch := func(ctx context.Context, a *run.Arm) error { return guarded(ctx, a, capacity, rates) }
		if err := s.Measure(ctx, alone(watch), trial); err != nil {
			return err
		}
	}
	return nil
}

// guardedRates returns the capacity of a treatment, 0 if it is not known, and the rates to offer. The search offers no
// trespasses: a breach must not look like a limit of the rate.
func guardedRates(ctx context.Context, s *run.Stage, trial design.Trial) (float64, []float64, error) {
	if len(s.Load.Rates) > 0 {
		return 0, s.Load.Rates, nil
	}
	s.OnlyAllowed = true
	defer func() { s.OnlyAllowed = false }()
	var trace capacity.Trace
	err := s.Measure(ctx, alone(func(ctx context.Context, a *run.Arm) (err error) {
		trace, err = searched(ctx, a)
		return err
	}), trial)
	if err != nil {
		return 0, nil, err
	}
	found := capacity.Assess(trace)
	rate := max(found.Rate, found.AtLeast)
	if rate > 0 {
		return rate, multiples(rate, s.Load.MaxRate, guard.Factors()), nil
	}
	highest := 0.0
	for _, step := range trace.Steps {
		if step.Role == capacity.RoleRamp {
			highest = max(highest, step.Rate)
		}
	}
	if highest == 0 {
		return 0, nil, fmt.Errorf("the search offered no load to %s: give load.rates instead", trial.Treatment)
	}
	note := record.Note{Treatment: trial.Treatment, Text: fmt.Sprintf(
		"the search found no capacity; the rates are parts and multiples of %.4g/s, the highest rate of its ramp", highest)}
	return 0, multiples(highest, s.Load.MaxRate, []float64{0.125, 0.25, 0.5, 1, 2}), s.Writer.Note(note)
}

// multiples are the multiples of a rate that do not exceed most; 0: there is no bound.
func multiples(rate, most float64, factors []float64) (out []float64) {
	for _, f := range factors {
		if r := f * rate; most == 0 || r <= most {
			out = append(out, r)
		}
	}
	return out
}

// guarding is one treatment whose control is watched.
type guarding struct {
	*run.Arm
	stream   load.Stream
	capacity float64 // 1/s; 0: not known
	share    float64 // of trespasses in the calls
	seen     []guard.Seen
	ops      []guard.Operation
}

// guarded offers the rates, narrows the onset of breaches down, and brings about the conditions.
func guarded(ctx context.Context, a *run.Arm, capacity float64, rates []float64) (err error) {
	lowest := slices.Min(rates)
	g := &guarding{Arm: a, capacity: capacity, share: guard.Share(a.Load.Trespass, lowest)}
	if err := g.raise(); err != nil {
		return err
	}
	for _, op := range a.Ops {
		g.ops = append(g.ops, guard.Operation{Name: op.Name, Twin: op.Twin, Breaches: op.Breaches})
	}
	s, err := a.OpenStream(ctx, a.Trial.Seed, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	g.stream = s
	if err := a.Sample(ctx, record.Before, 0); err != nil {
		return err
	}
	before, began, cpu := s.Progress(), s.Now(), load.ProcessCPU()
	err = g.measure(ctx, rates)
	after := s.Progress()
	return errors.Join(err, a.Sample(context.WithoutCancel(ctx), record.After, 0),
		a.Writer.Cells(a.Trial.Treatment, a.Trial.Block, s.Take()),
		a.Audit(before, after, record.Generator{
			Seconds: (s.Now() - began).Seconds(), CPUSeconds: load.ProcessCPU() - cpu,
		}))
}

// raise raises the share of trespasses where the lowest rate has too few of them.
func (g *guarding) raise() error {
	if g.share <= g.Load.Trespass {
		return nil
	}
	if err := g.MixTrespasses(g.share); err != nil {
		return err
	}
	return g.Writer.Note(record.Note{Treatment: g.Trial.Treatment, Text: fmt.Sprintf(
		"%.0f %% of the calls are trespasses instead of %.3g %%, so that a point at the lowest rate has about %d of them",
		g.share*100, g.Load.Trespass*100, guard.LeastTrespasses)})
}

func (g *guarding) measure(ctx context.Context, rates []float64) error {
	for _, rate := range rates {
		if err := g.plain(ctx, rate, false); err != nil {
			return err
		}
	}
	for range guard.MostRefined {
		onset, ok := guard.OnsetOf(g.seen)
		if !ok {
			break
		}
		rate, ok := onset.Next()
		if !ok {
			break
		}
		if err := g.plain(ctx, rate, true); err != nil {
			return err
		}
	}
	conditions, err := g.Conditions()
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if err := g.under(ctx, c, g.conditionRate(rates)); err != nil {
			return err
		}
	}
	return nil
}

// conditionRate is half of the capacity, or the lowest rate.
func (g *guarding) conditionRate(rates []float64) float64 {
	if g.capacity > 0 {
		return g.capacity / 2
	}
	return slices.Min(rates)
}

// plain is a point at one rate, without a condition.
func (g *guarding) plain(ctx context.Context, rate float64, refined bool) error {
	p := guard.Point{Rate: rate, Refined: refined}
	if g.capacity > 0 {
		p.Factor = rate / g.capacity
		p.Name = guard.Title(p.Factor)
	}
	asked := g.Load.Duration
	if asked == 0 {
		asked = guard.UsualPoint
	}
	return g.offer(ctx, p, guard.Length(asked, rate, g.share), nil)
}

// offer offers one point until stop says so (nil: until length has passed), waits until its calls have ended, and
// records it.
func (g *guarding) offer(ctx context.Context, p guard.Point, length time.Duration, stop func(*guard.Point) bool) error {
	seed := g.Trial.Seed + uint64(len(g.seen)) + 1
	l := g.Load
	l.Rate = p.Rate
	step := len(g.seen) + 1
	p.Segment.Start = g.stream.Now()
	g.tell(&p, step, nil)
	seg, err := g.stream.Offer(ctx, level(&l, length, seed), poll, func() bool {
		g.tell(&p, step, nil)
		return stop != nil && stop(&p)
	})
	if err != nil {
		return err
	}
	p.Segment = seg
	idle := func() bool { return g.stream.Progress().Open() == 0 }
	if err := g.stream.Wait(ctx, l.Timeout+time.Second, poll, idle); err != nil {
		return err
	}
	return g.keep(ctx, p, step)
}

// keep records a point with its calls, asks for its breaches again, and waits until the target answers again.
func (g *guarding) keep(ctx context.Context, p guard.Point, step int) error {
	p.Read = g.stream.Now()
	calls := g.stream.Calls(p.Segment.Start)
	seen := guard.Assess(p, g.ops, load.Calls(calls))
	g.seen = append(g.seen, seen)
	g.stream.Reset()
	back, err := g.back(ctx)
	if err != nil {
		return err
	}
	g.tell(&p, step, &seen)
	err = errors.Join(
		g.Writer.Calls(g.Trial.Treatment, g.Trial.Block, calls),
		g.Writer.Step(g.Trial.Treatment, g.Trial.Block, guard.StepPoint, p),
		g.ConfirmBreaches(ctx, g.stream),
	)
	if err == nil && !back {
		err = fmt.Errorf("after %s the target did not answer fresh calls again for %v: what was measured until then is kept",
			titled(&p), g.comeback())
	}
	return err
}

// comeback is how long the target has to answer again.
func (g *guarding) comeback() time.Duration { return max(2*g.Load.Timeout, patience) }

// back waits until the target answers a few fresh calls in a row.
func (g *guarding) back(ctx context.Context) (bool, error) {
	began, row := g.stream.Now(), 0
	for i := uint64(0); row < freshInARow; i++ {
		if g.stream.Now()-began > g.comeback() {
			return false, nil
		}
		c := g.stream.Fresh(ctx, 0, i, min(2*time.Second, g.Load.Timeout))
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if row++; c.Done == 0 || !c.Outcome.Good() {
			row = 0
			if err := g.stream.Wait(ctx, time.Second/4, poll, nil); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

func (g *guarding) tell(p *guard.Point, step int, seen *guard.Seen) {
	g.Tell(during(g.Arm, run.Measuring, &Guarded{Point: *p, Step: step, Progress: g.stream.Progress(), Seen: seen}))
}
