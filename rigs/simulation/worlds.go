package simulation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/signature"
)

// judged are the limits of the budgets that are tried, relative to the truth.
var judged = []float64{0.5, 0.8, 0.9, 1.1, 1.25, 2}

// WorldOutcome is one search against a composed world.
type WorldOutcome struct {
	Seed        uint64
	Index       int
	Composition Composition
	Outcome
	Trace capacity.Trace // of a single world only
	// Met are further right names of the failure: of what callers met in the overload that the search judged.
	Met []signature.Class
	// Wrong is how many budget verdicts are wrong.
	Wrong int
}

// SearchWorld searches a composition, from a cold server on.
func SearchWorld(ctx context.Context, c Composition, truth Truth) (WorldOutcome, error) {
	w := c.World()
	t, err := capacity.Search(ctx, w, c.Options(), nil)
	if err != nil {
		return WorldOutcome{}, fmt.Errorf("search %s: %w", c, err)
	}
	o := WorldOutcome{
		Composition: c, Trace: t,
		Outcome: Outcome{Truth: truth, Result: capacity.Assess(t), Peak: w.Peak(), Calls: len(load.CallsOf(t.Calls))},
	}
	if o.failureWrong() {
		rate, length := lastOverload(t)
		o.Met = c.metAt(truth.Capacity, rate, length)
	}
	if limit := o.limit(); !math.IsInf(limit, 1) {
		for _, x := range judged {
			v := judge(o.Result, x*limit)
			if v == budget.Pass && x > 1 || v == budget.Fail && x < 1 {
				o.Wrong++
			}
		}
	} else if judge(o.Result, 0.9*c.MaxRate) == budget.Fail {
		o.Wrong++
	}
	return o, nil
}

// judge decides the budget "capacity >= limit" (in 1/s) as every report does.
func judge(r capacity.Result, limit float64) budget.Verdict {
	x, _ := r.Interval()
	return budget.Decide(budget.Budget{Metric: "capacity", Op: budget.AtLeast, Limit: budget.Limit{Value: limit}}, x)
}

// lastOverload is the rate and the length of the overload that the search judged.
func lastOverload(t capacity.Trace) (rate float64, length time.Duration) {
	attempt := 0
	for _, s := range t.Steps {
		if s.Role != capacity.RoleOverload {
			continue
		}
		if s.Attempt != attempt {
			attempt, rate, length = s.Attempt, 0, 0
		}
		rate, length = max(rate, s.Rate), length+s.Length()
	}
	return rate, length
}

// limit is the true capacity, +Inf where there is none below the highest rate.
func (o WorldOutcome) limit() float64 {
	if o.Truth.Stop == capacity.StopMaxRate {
		return math.Inf(1)
	}
	return o.Truth.Capacity
}

// A Failure is a way in which an answer can be wrong.
type Failure string

// The failures, the gravest first.
const (
	Excluded     Failure = "interval excludes the truth"
	TooHigh      Failure = "at least too much"
	WrongVerdict Failure = "wrong verdict"
	WrongClass   Failure = "wrong class"
	AboveMax     Failure = "above the highest rate"
	NoAnswer     Failure = "no answer"
	UnknownClass Failure = "class unknown"
	TooSlow      Failure = "took too long"
)

// Failures are the ways in which this answer is wrong.
func (o WorldOutcome) Failures() []Failure {
	var f []Failure
	for _, x := range []struct {
		is   bool
		name Failure
	}{
		{o.excluded(), Excluded},
		{o.tooHigh(), TooHigh},
		{o.misjudged(), WrongVerdict},
		{o.misnamed(), WrongClass},
		{o.beyond(), AboveMax},
		{!o.answered(), NoAnswer},
		{o.answered() && !o.named() && !o.misnamed(), UnknownClass},
		{o.Result.Seconds > 180, TooSlow},
	} {
		if x.is {
			f = append(f, x.name)
		}
	}
	return f
}

// margin is how far the truth may be outside of an interval, and how much "at least" may be above it.
const margin = 1.05

func (o WorldOutcome) excluded() bool {
	r, limit := o.Result, o.limit()
	if r.Rate <= 0 || r.Hi <= 0 {
		return false
	}
	if math.IsInf(limit, 1) {
		return r.Hi*margin < o.Composition.MaxRate
	}
	return r.Lo > margin*limit || r.Hi < limit/margin
}

func (o WorldOutcome) tooHigh() bool { return o.Result.AtLeast > margin*o.limit() }

// misjudged reports whether a budget verdict is wrong.
func (o WorldOutcome) misjudged() bool { return o.Wrong > 0 }

// beyond reports whether more than the highest rate was offered.
func (o WorldOutcome) beyond() bool { return o.Peak > o.Composition.MaxRate*(1+1e-9) }

// answered reports whether there is a number with an interval, or where there is no limit an "at least".
func (o WorldOutcome) answered() bool {
	r := o.Result
	if math.IsInf(o.limit(), 1) {
		return r.AtLeast > 0
	}
	return r.Rate > 0 && r.Lo > 0 && r.Hi > r.Lo
}

// named reports whether the class is right.
func (o WorldOutcome) named() bool { return o.Right() }

// misnamed reports whether a wrong class is claimed; unknown is none.
func (o WorldOutcome) misnamed() bool {
	return !o.named() && o.Result.Signature.Class != signature.Unknown && o.Result.Signature.Class != ""
}

// failureRight reports whether the failure is a right one, or, for a server that does not break, whether none was
// claimed. Of what only sets the rate, a CPU quota, callers meet a queue, and of pauses pauses or a queue; and a full
// accept queue is one whatever sets the rate behind it.
func (o WorldOutcome) failureRight() bool {
	if len(o.Truth.Classes) == 0 {
		return !o.Result.Broke
	}
	said := o.Failure().Class
	if p, ok := o.Composition.part(acceptLimit); ok && said == signature.AcceptQueue &&
		math.Abs(float64(o.Result.Signature.Stuck)-p.With["backlog"]-1) <= 1 {
		return true
	}
	if p, ok := o.Composition.part(shedByAge); ok && o.Truth.Part == shedByAge && said == signature.ConcurrencyLimit {
		if s, ok := o.Composition.part(service); ok && p.With["age"] < s.With["mean"]/2 {
			return true // hardly a call waits: those that find no worker are refused
		}
	}
	return slices.ContainsFunc(slices.Concat(o.Truth.Classes, o.Met), func(c signature.Class) bool {
		return met(c) == said || c == signature.Pauses && said == signature.Queue
	})
}

// failureWrong reports whether a wrong failure is claimed; unknown is none.
func (o WorldOutcome) failureWrong() bool {
	return !o.failureRight() && o.Failure().Class != signature.Unknown
}

// failureShownWrong reports whether a wrong failure is called shown.
func (o WorldOutcome) failureShownWrong() bool {
	return o.failureWrong() && o.Failure().Certainty == signature.Shown
}

// limiter reports whether the failure is due to a part that refuses calls.
func (o WorldOutcome) limiter() bool { return mechanisms[o.Truth.Part].limits }

// missed lists the findings that are expected and not there, spurious those that are there and cannot be true.
func (o WorldOutcome) missed() (missed, spurious []capacity.FindingKind) {
	for _, k := range o.Truth.Findings {
		if !slices.ContainsFunc(o.Result.Findings, func(f capacity.Finding) bool { return f.Kind == k }) {
			missed = append(missed, k)
		}
	}
	for _, f := range o.Result.Findings {
		if !slices.Contains(o.Truth.Possible, f.Kind) {
			spurious = append(spurious, f.Kind)
		}
	}
	return missed, spurious
}

// Worlds is a study of composed worlds.
type Worlds struct {
	Seed     uint64
	Outcomes []WorldOutcome
}

// WorldsOptions say what to study. Only N and Seed have no default.
type WorldsOptions struct {
	Seed       uint64
	N, Workers int
	// Only keeps the worlds whose failure is due to that part.
	Only PartKind
	// Truth computes a truth, or remembers it; default Composition.Truth. It is called by several at once.
	Truth func(Composition) Truth
	// Done is told of each world, by one at a time.
	Done func(WorldOutcome)
}

// RunWorlds searches composed worlds drawn from a seed, several at once. The result depends on the seed only.
func RunWorlds(ctx context.Context, opts WorldsOptions) (Worlds, error) {
	seed, n, only, done := opts.Seed, opts.N, opts.Only, opts.Done
	if opts.Truth == nil {
		opts.Truth = Composition.Truth
	}
	s := Worlds{Seed: seed, Outcomes: make([]WorldOutcome, n)}
	keep := make([]bool, n)
	tasks := make(chan int)
	errs := make([]error, n)
	var wg sync.WaitGroup
	var one sync.Mutex
	for range max(1, opts.Workers) {
		wg.Go(func() {
			for i := range tasks {
				c := Draw(seed, i)
				if only != "" && !c.has(only) {
					continue
				}
				truth := opts.Truth(c)
				if only != "" && truth.Part != only {
					continue
				}
				o, err := SearchWorld(ctx, c, truth)
				o.Seed, o.Index, o.Trace = seed, i, capacity.Trace{}
				s.Outcomes[i], errs[i], keep[i] = o, err, err == nil
				if done != nil && err == nil {
					one.Lock()
					done(o)
					one.Unlock()
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		tasks <- i
	}
	close(tasks)
	wg.Wait()
	kept := s.Outcomes[:0]
	for i, o := range s.Outcomes {
		if keep[i] {
			kept = append(kept, o)
		}
	}
	s.Outcomes = kept
	return s, errors.Join(append(errs, ctx.Err())...)
}
