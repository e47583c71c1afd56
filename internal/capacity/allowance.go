package capacity

import (
	"math"
	"time")

// A limiter that lets calls wait may have saved up an allowance, as a token bucket has: at first it serves more than
// its rate. That looks like a collapse, when the allowance is used up and goodput falls to the rate; and it makes rates
// above the capacity hold for a while after every rest. So it is told apart by a rate between the two that is held for
// long enough to use up what was saved, and rates are then confirmed with a queue that stands, so that nothing can be
// saved.

// allowance finds out whether what was served beyond the capacity at first was an allowance.
func (r *session) allowance() error {
	if !r.class().Traits().MaySave {
		return nil
	}
	over := lastOverload(r.t)
	e := overloaded(r.t, over)
	saved := surplus(r.t, over, e.Value)
	from, to := span(over)
	if e.Value <= 0 || saved < max(10, 0.05*e.Value, 3*e.Half()*e.Value*(to-from).Seconds()) {
		return nil
	}
	used, err := r.usesUp(saved, e.Value, max(r.estimate.Value, r.fastest))
	if err != nil || !used {
		return err
	}
	r.t.Allowance = saved
	if r.class().Traits().Lossless {
		return nil
	}
	// Without the allowance, the overload looks as what it is.
	r.fastest = min(r.fastest, e.Value)
	_, err = r.overload(e.Value)
	return err
}

// surplus is how many calls ended well beyond rate × time, from the first offer above the rate on.
func surplus(t Trace, over []Step, rate float64) float64 {
	_, to := span(over)
	best := 0.0
	for _, s := range t.Steps {
		if s.Rate <= rate || s.Segment.Start >= to {
			continue
		}
		n := len(t.ends(s.Segment.Start, to))
		best = max(best, float64(n)-rate*(to-s.Segment.Start).Seconds())
	}
	return best
}

// usesUp holds a rate between low and high from rest on, for so long that saved calls would be used up. It reports
// whether calls then began to wait; a target that had collapsed under its queue takes the rate for ever.
func (r *session) usesUp(saved, low, high float64) (bool, error) {
	rate := min(low+0.3*(high-low), r.o.MaxRate) // well below what a target that collapses can take
	if rate < 1.02*low {
		return false, nil
	}
	d := time.Duration((2.5*saved/(rate-low) + 2) * 1e9)
	if d > 40*time.Second {
		return false, nil
	}
	if err := r.prepare(RoleConfirmHigh); err != nil {
		return false, err
	}
	r.watchNow()
	waiting := float64(r.seen.last().open) + 0.25*saved + 0.05*rate + 3*math.Sqrt(rate*d.Seconds())
	step, err := r.offer(
		RoleConfirmHigh, rate, d, func(time.Duration) bool { return float64(r.seen.last().open) > waiting },
	)
	if err != nil {
		return false, err
	}
	used := float64(r.seen.last().open) > waiting
	step.Passed, step.Note = new(!used), "is it an allowance that is used up?"
	return used, nil
}

// stands reports whether confirmations are made with a queue that stands.
func (r *session) stands() bool { return r.t.Allowance > 0 && r.class().Traits().Lossless }

// prime brings the queue to between half a second and a quarter of the timeout.
func (r *session) prime() error {
	least := 0.5 * r.estimate.Value
	most := max(3*least, 0.25*r.o.Timeout.Seconds()*r.estimate.Value)
	open := func() float64 { return float64(r.seen.last().open) }
	switch r.watchNow(); {
	case open() > most:
		return r.pause(r.o.Timeout, func() bool { return open() <= most }, "until the queue is shorter")
	case open() >= least:
		return nil
	}
	rate := min(1.5*r.estimate.Value, r.o.MaxRate)
	if rate <= 1.01*r.estimate.Value {
		return nil
	}
	d := time.Duration((least + 1.5*r.t.Allowance) / (rate - r.estimate.Value) * 1e9)
	_, err := r.offer(RolePrime, rate, d, func(time.Duration) bool { return open() >= 1.5*least })
	return err
}

func (r *session) watchNow() { r.seen.add(r.s.Progress()) }

// backlog is the mean time in each block for which the open calls would keep the target busy.
func (r *session) backlog(from, now, block time.Duration) (x, y []float64) {
	n := int((now - from) / block)
	sum, count := make([]float64, n), make([]float64, n)
	for _, m := range r.seen.moments {
		if k := int((m.at - from) / block); m.at >= from && k < n {
			sum[k] += float64(m.open) / r.estimate.Value
			count[k]++
		}
	}
	for k := range n {
		if count[k] > 0 {
			x = append(x, float64(k)*block.Seconds())
			y = append(y, sum[k]/count[k])
		}
	}
	return x, y
}
