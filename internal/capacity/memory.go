package capacity

import (
	"math"
	"time"
)

// remembers finds out whether a limiter lets so little through because of what was offered before. Where far more held
// in the ramp than passes under overload, a rate between the two is held from rest, for longer than what can have been
// saved up lasts: then each rate is to be confirmed from rest.
func (r *session) remembers() error {
	traits := r.class().Traits()
	if !traits.Saves || traits.Falls || traits.Strands || r.rests || r.estimate.Value <= 0 ||
		r.fastest < 3*r.estimate.Value {
		return nil
	}
	rate := min(math.Sqrt(r.estimate.Value*r.fastest), r.o.MaxRate)
	d := time.Duration(
		(1.5*surplus(r.t, lastOverload(r.t), r.estimate.Value)+20)/(rate-r.estimate.Value)*1e9,
	) + time.Second
	if d > 40*time.Second {
		return nil
	}
	if err := r.settle("until the limiter has forgotten the overload"); err != nil {
		return err
	}
	broke := r.exceeds(excused(int(rate * d.Seconds())))
	step, err := r.offer(RoleConfirmHigh, rate, d, broke)
	if err != nil {
		return err
	}
	r.rests = !broke(math.MaxInt64)
	step.Passed, step.Note = new(r.rests), "does it pass from rest?"
	return nil
}
