package capacity

import (
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// slo searches the highest rate at which at most a given share of the calls takes longer than the objective, between 0
// and the capacity, or the highest rate that was held.
func (r *session) slo() error {
	if r.o.SLO <= 0 {
		return nil
	}
	held, broke, rate := 0.0, 0.0, Assess(r.t).Rate*0.9
	if rate <= 0 {
		rate = r.fastest
	}
	for range 7 {
		if !(rate > 0) || held > 0 && broke > 0 && broke < 1.04*held {
			return nil
		}
		ok, err := r.meets(rate)
		switch {
		case err != nil:
			return err
		case ok && rate >= r.o.MaxRate:
			return nil
		case ok:
			held = rate
		default:
			broke = rate
		}
		switch {
		case broke == 0:
			rate = min(1.1*rate, r.o.MaxRate)
		case held == 0:
			rate = broke / 2
		default:
			rate = math.Sqrt(held * broke)
		}
	}
	return nil
}

// meets tries whether the objective holds at rate, by a sequential test over batches: calls that follow one another
// share their fate, so that only the batches count as samples. What is left open counts as not met.
func (r *session) meets(rate float64) (bool, error) {
	if err := r.drain("before an objective is tried"); err != nil {
		return false, err
	}
	batch := max(lasting(rate, time.Second/2, 20), r.o.SLO/2)
	const builds = 3 * time.Second // a queue near the capacity takes a while to build up
	begun, next := r.s.Now()+builds, builds+5*batch+r.o.SLO
	var met *bool
	step, err := r.offer(RoleSLO, rate, builds+max(
		20*batch, lasting(rate, 10*time.Second, 0),
	)+r.o.SLO, func(elapsed time.Duration) bool {
		if elapsed < next {
			return false
		}
		next = elapsed + batch
		met = r.within(begun, elapsed-builds, batch)
		return met != nil
	})
	if err != nil {
		return false, err
	}
	if step.Passed = met; met == nil {
		step.Note = "undecided: noise"
		return false, nil
	}
	return *met, nil
}

// within tests the batches since begun that are old enough to tell. An objective that is missed only with the delays by
// the generator is left open.
func (r *session) within(begun, elapsed, batch time.Duration) *bool {
	held, _ := r.share(begun, elapsed-r.o.SLO, batch, r.o.SLOShare, false, func(c *load.Call) bool { return misses(c, r.o.SLO) })
	if held == nil || *held {
		return held
	}
	without, _ := r.share(begun, elapsed-r.o.SLO, batch, r.o.SLOShare, true, func(c *load.Call) bool {
		return misses(c, r.o.SLO+c.Lateness())
	})
	if without == nil || *without {
		return nil
	}
	return held
}

// share tests whether at most most of the calls that were due within d from begun on are bad: nil where noise leaves it
// open. The mean share of the batches is returned as well. Calls that were held back are left out if apart is set.
func (r *session) share(
	begun, d, batch time.Duration, most float64, apart bool, bad func(*load.Call) bool,
) (held *bool, mean float64) {
	n := int(d / batch)
	slow, all := make([]float64, max(n, 0)), make([]float64, max(n, 0))
	total, over := 0.0, 0.0
	var stopped heldBack
	for c := range load.Calls(r.s.Calls(begun)).All() {
		if stopped.disturbs(c) && apart {
			continue
		}
		k := int((c.Intended - begun) / batch)
		if k < 0 || k >= n {
			continue
		}
		all[k]++
		total++
		if bad(c) {
			slow[k]++
			over++
		}
	}
	for k := range slow {
		slow[k] /= math.Max(1, all[k])
	}
	e, ok := stat.MeanInterval(slow, level)
	switch {
	case !ok || total < 3/most && over <= most*total: // none of n calls proves less than 3/n
		return nil, over / math.Max(1, total)
	case e.Hi <= most:
		return new(true), e.Value
	case e.Lo > most:
		return new(false), e.Value
	}
	return nil, e.Value
}

// misses reports whether a call that is older than the objective missed it.
func misses(c *load.Call, slo time.Duration) bool {
	return c.Done == 0 || !c.Outcome.Good() || c.Response() > slo
}
