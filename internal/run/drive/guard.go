package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/signature"
	"tare/internal/stat"
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
		began := s.Env.Clock.Now()
		r, err := guardedRates(ctx, s, trial)
		if err != nil {
			return err
		}
		left := func() time.Duration { return r.within - s.Env.Clock.Now().Sub(began) }
		trial.Block++ // the search has the first
		watch := func(ctx context.Context, a *run.Arm) error { return guarded(ctx, a, r, left) }
		if err := s.Measure(ctx, alone(watch), trial); err != nil {
			return err
		}
	}
	return nil
}

// guardRates are the rates of a treatment's points.
type guardRates struct {
	rates    []float64
	given    bool          // by the file, which says that they are enough
	capacity float64       // 1/s; 0: not known
	base     float64       // the capacity, or a rate that holds, of which the rates are multiples; 0: neither is known
	within   time.Duration // in which no point begins that would end later
}

// guardedRates returns the rates to offer: those of the file, or multiples of the capacity, or of the highest rate that
// was served where the search found none. The search offers no trespasses: a breach must not look like a limit of the
// rate.
func guardedRates(ctx context.Context, s *run.Stage, trial design.Trial) (guardRates, error) {
	r := guardRates{within: guard.Within(s.Load.MaxTime, s.Load.Duration, s.Load.Trespass, s.Load.Rates)}
	if r.given = len(s.Load.Rates) > 0; r.given {
		r.rates = s.Load.Rates
		return r, nil
	}
	before := s.Load.MaxTime
	s.OnlyAllowed, s.Load.MaxTime = true, guard.SearchTime(r.within)
	defer func() { s.OnlyAllowed, s.Load.MaxTime = false, before }()
	var trace capacity.Trace
	err := s.Measure(ctx, alone(func(ctx context.Context, a *run.Arm) error {
		found, err := searched(ctx, a)
		if found != nil {
			trace = found.trace
		}
		return err
	}), trial)
	if err != nil {
		return r, err
	}
	found := capacity.Assess(trace)
	r.capacity, r.base = found.Rate, max(found.Rate, found.AtLeast)
	if r.base > 0 {
		r.rates = multiples(r.base, s.Load.MaxRate, guard.Factors())
		return r, nil
	}
	served := highestServed(&trace)
	if served == 0 {
		return r, fmt.Errorf("the search offered no load to %s: give load.rates instead", trial.Treatment)
	}
	r.rates = multiples(served, s.Load.MaxRate, guard.FactorsOfServed())
	return r, s.Writer.Note(record.Note{Treatment: trial.Treatment, Text: fmt.Sprintf(
		"the search found no capacity; the rates begin at parts of %.4g/s, the highest rate that was served for a moment, "+
			"and rise until the target is overloaded", served)})
}

// highestServed is the highest rate that the target kept up with in the ramp of a search that found no capacity, or the
// lowest that was offered if there is none.
func highestServed(t *capacity.Trace) float64 {
	served, lowest := 0.0, 0.0
	for _, step := range t.Steps {
		if step.Role != capacity.RoleRamp {
			continue
		}
		if step.Passed != nil && *step.Passed {
			served = max(served, step.Rate)
		}
		if lowest == 0 || step.Rate < lowest {
			lowest = step.Rate
		}
	}
	if served > 0 {
		return served
	}
	return lowest
}

// multiples are the multiples of a rate, with most in place of those above it; 0: there is no bound.
func multiples(rate, most float64, factors []float64) (out []float64) {
	for _, f := range factors {
		if r := f * rate; most == 0 || r < most {
			out = append(out, r)
			continue
		}
		return append(out, most)
	}
	return out
}

// guarding is one treatment whose control is watched.
type guarding struct {
	*run.Arm
	guardRates

	stream load.Stream
	share  float64              // of trespasses in the calls
	left   func() time.Duration // of the time for the treatment
	seen   []guard.Seen
	ops    []guard.Operation
}

// guarded offers the rates, raises them until the target is overloaded, narrows the onset of breaches down, and brings
// about the conditions.
func guarded(ctx context.Context, a *run.Arm, r guardRates, left func() time.Duration) (err error) {
	g := &guarding{Arm: a, guardRates: r, left: left, share: guard.Share(a.Load.Trespass, slices.Min(r.rates))}
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
	err = g.measure(ctx)
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

// measure offers all points. If the time runs out, the conditions that are left are recorded as not brought about.
func (g *guarding) measure(ctx context.Context) error {
	end, err := g.measureRates(ctx)
	if err != nil {
		return err
	}
	end.Given = g.given
	if err := g.Writer.Step(g.Trial.Treatment, g.Trial.Block, guard.StepEnd, end); err != nil {
		return err
	}
	conditions, err := g.Conditions()
	if err != nil {
		return err
	}
	for _, c := range conditions {
		if err := g.under(ctx, c, g.conditionRate()); err != nil {
			return err
		}
	}
	return nil
}

// measureRates offers the planned rates, given ones once more that the generator did not keep up with, and others until
// the target is overloaded. Then it offers what the verdict still lacks, and what narrows the onset of breaches down.
// It returns why no higher rate was offered.
func (g *guarding) measureRates(ctx context.Context) (end guard.End, err error) {
	if end, err = g.each(ctx, g.rates); err != nil || end.Stop == guard.StopMaxTime {
		return end, err
	}
	if g.given { // a host that stalled once is no limit
		_, err = g.each(ctx, guard.Missed(g.seen, g.rates))
	} else {
		end, err = g.climb(ctx)
	}
	if err != nil || end.Stop == guard.StopMaxTime {
		return end, err
	}
	for vain := 0; vain < guard.MostVain; {
		rate, length, lacks := guard.More(g.seen, g.share, g.need())
		if !lacks {
			break
		}
		if fits, err := g.plain(ctx, rate, length, false); err != nil || !fits {
			return end, err
		}
		if guard.MoreInVain(&g.seen[len(g.seen)-1], length, g.share) {
			vain++
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
		if fits, err := g.plain(ctx, rate, 0, true); err != nil || !fits {
			return end, err
		}
	}
	return end, nil
}

// each offers rates, one after the other, and returns which one the time did not allow.
func (g *guarding) each(ctx context.Context, rates []float64) (guard.End, error) {
	for _, rate := range rates {
		if fits, err := g.plain(ctx, rate, 0, false); err != nil || !fits {
			return guard.End{Stop: guard.StopMaxTime, Rate: rate}, err
		}
	}
	return guard.End{Stop: guard.StopRates}, nil
}

// need is how many trespasses the control must decide for the budgets.
func (g *guarding) need() uint64 {
	n := guard.Enough()
	for _, text := range g.Budget {
		if b, err := budget.Parse(text); err == nil && b.Metric == metric.Permitted.Name {
			n = max(n, stat.TrialsToBound(b.Limit.Value, guard.Level))
		}
	}
	return n
}

// climb raises the rate until the target is overloaded, or something ends that.
func (g *guarding) climb(ctx context.Context) (guard.End, error) {
	for {
		rate, end := guard.Higher(g.seen, g.Load.MaxRate)
		if end.Stop != "" {
			return end, nil
		}
		if fits, err := g.plain(ctx, rate, 0, false); err != nil || !fits {
			return guard.End{Stop: guard.StopMaxTime, Rate: rate}, err
		}
	}
}

// conditionRate is half of the capacity, or of a rate that holds, or else the lowest rate.
func (g *guarding) conditionRate() float64 {
	if g.base > 0 {
		return g.base / 2
	}
	return slices.Min(g.rates)
}

// plain is a point at one rate, without a condition; length 0: the usual one. fits is false, and nothing was offered,
// if it would end too late.
func (g *guarding) plain(ctx context.Context, rate float64, length time.Duration, refined bool) (fits bool, err error) {
	p := guard.Point{Rate: rate, Refined: refined}
	if g.capacity > 0 {
		p.Factor = rate / g.capacity
		p.Name = guard.Title(p.Factor)
	}
	if length == 0 {
		length = guard.Length(cmp.Or(g.Load.Duration, guard.UsualPoint), rate, g.share)
	}
	if length > g.left() {
		return false, nil
	}
	return true, g.offer(ctx, p, length, nil)
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
	used := g.WatchCPU(ctx)
	seg, err := g.stream.Offer(ctx, level(&l, length, seed), poll, func() bool {
		g.tell(&p, step, nil)
		return stop != nil && stop(&p)
	})
	if err != nil {
		return err
	}
	p.Segment, p.TargetCPU = seg, used()
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
	due := load.Calls(calls).Due(p.Segment.Start, p.Segment.End)
	seen.Late = !signature.AuditCalls(due, p.Segment.End, p.Segment.Offered).Valid
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
		c := g.stream.Fresh(ctx, 0, i, g.Load.Timeout)
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
