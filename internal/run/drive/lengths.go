package drive

import (
	"context"
	"fmt"
	"math"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/run"
)

const (
	// mostCalls bounds a batch whose calls seem to cost nothing.
	mostCalls = 1 << 24
	// apart is by which factor an arm must be slower or faster than the baseline for its batches to have their own number
	// of calls. Closer arms make as many calls as the baseline, so that the fixed cost of a batch is the same share of
	// each. With the baseline's number, a more distant arm would make batches of seconds, or of a few calls, which measure
	// the first calls after a pause.
	apart = 4
	// trialDivisor is the divisor: a batch of 1/trialDivisor of the baseline's calls decides whether an arm is apart.
	trialDivisor = 8
	// tries is how many batches of a size are timed. The fastest counts: on a busy host most of them wait for the CPU.
	tries = 5
)

// lengths returns how many calls make a batch of operation i of each arm, by treatment. It is calibrated once for the
// whole run, under the baseline.
func (x *blocks) lengths(ctx context.Context, arms []*run.Arm, i int) (map[string]int, error) {
	op := arms[0].Ops[i]
	if known := x.sizes[op.Name]; covers(known, arms) {
		return known, nil
	}
	r := ruler{i: i, span: op.Span, limit: mostCalls, whole: max(1, op.Whole)}
	if r.span <= 0 {
		r.span = area.UsualSpan
	}
	if op.Most > 0 {
		r.limit = min(r.limit, op.Most)
	}
	if r.limit > r.whole {
		x.Tell(run.Event{Phase: run.WarmingUp})
	}
	sizes, err := r.sizes(ctx, arms)
	if err != nil {
		return nil, err
	}
	x.sizes[op.Name] = sizes
	return sizes, nil
}

func covers(sizes map[string]int, arms []*run.Arm) bool {
	for _, a := range arms {
		if sizes[a.Trial.Treatment] <= 0 {
			return false
		}
	}
	return true
}

// A ruler calibrates how many calls of operation i last span; at most limit, and a multiple of whole.
type ruler struct {
	i     int
	span  time.Duration
	limit int
	whole int
}

// sizes returns the number of calls of each arm. It makes no call where only one number is possible.
func (r ruler) sizes(ctx context.Context, arms []*run.Arm) (map[string]int, error) {
	sizes := map[string]int{}
	base := arms[0]
	for _, a := range arms {
		sizes[a.Trial.Treatment] = r.whole
		if a.Treatment.Baseline {
			base = a
		}
	}
	if r.limit <= r.whole {
		return sizes, nil
	}
	n, err := r.fit(ctx, base, r.whole)
	if err != nil {
		return nil, err
	}
	for _, a := range arms {
		if sizes[a.Trial.Treatment], err = r.own(ctx, base, a, n); err != nil {
			return nil, err
		}
	}
	sizes[base.Trial.Treatment] = n
	for _, a := range arms { // arms with the same program are measured alike
		if t := a.Treatment; t.Control == design.AA && sizes[t.Of] > 0 {
			sizes[a.Trial.Treatment] = sizes[t.Of]
		}
	}
	return sizes, nil
}

// round returns the least multiple of whole that is at least n.
func (r ruler) round(n int) int { return (n + r.whole - 1) / r.whole * r.whole }

// fit starts with batches of n calls.
func (r ruler) fit(ctx context.Context, a *run.Arm, n int) (int, error) {
	for {
		per, err := r.quickest(ctx, a, n)
		if err != nil {
			return 0, err
		}
		lasts := time.Duration(per * float64(n) * 1e9)
		if lasts >= r.span/2 || n >= r.limit {
			return r.calls(per), nil
		}
		n = r.round(min(r.limit, n*int(max(2, min(10, float64(r.span)/max(1, float64(lasts)))))))
	}
}

// calls returns how many calls make a batch, if one takes so many seconds.
func (r ruler) calls(per float64) int {
	return r.round(int(max(1, min(float64(r.limit), math.Round(r.span.Seconds()/max(per, 1e-12))))))
}

// own returns n, the baseline's number, or a separate number if the arm is apart. A host that stalls makes an arm look
// apart that is not, or the baseline before it; so an arm that seems apart is measured once more, beside the baseline.
func (r ruler) own(ctx context.Context, base, a *run.Arm, n int) (int, error) {
	some := r.round(max(1, n/trialDivisor))
	per, err := r.quickest(ctx, a, some)
	if err != nil {
		return 0, err
	}
	span := r.span.Seconds()
	isApart := func(lasts float64) bool { return lasts > apart*span || lasts < span/apart && n < r.limit }
	if !isApart(per * float64(n)) {
		return n, nil
	}
	beside, err := r.quickest(ctx, base, some)
	if err != nil {
		return 0, err
	}
	again, err := r.quickest(ctx, a, some)
	if err != nil {
		return 0, err
	}
	per = min(per, again)
	switch {
	case !isApart(per / beside * span):
		return n, nil
	case per > beside:
		return r.calls(per), nil
	}
	return r.fit(ctx, a, some)
}

// quickest returns the shortest time of a call in seconds over a few batches of n. It does not repeat a long batch.
func (r ruler) quickest(ctx context.Context, a *run.Arm, n int) (float64, error) {
	least := math.Inf(1)
	for range tries {
		s, err := a.Ops[r.i].Batch(ctx, n)
		if err != nil {
			return 0, fmt.Errorf("%s under %s: %w", a.Ops[r.i].Name, a.Trial.Treatment, err)
		}
		least = min(least, perCall(s))
		if least*float64(n) > tries*area.UsualSpan.Seconds() {
			break
		}
	}
	return least, nil
}
