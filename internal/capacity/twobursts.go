package capacity

import (
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
)

// places tells a limit on calls in flight from one on their rate where the refusals do not: two bursts from rest. A
// limit on places takes the same number of each, as many as the accepted rate keeps in flight; a bucket takes what it
// has saved up.
func (r *session) places() error {
	base := baseOf(r.t).mean
	flight := r.estimate.Value * base.Seconds()
	if c := r.class(); c != signature.TokenBucket && c != signature.ConcurrencyLimit || flight < 2 || r.rests {
		return nil
	}
	if v := r.estimate.verdict; v.Class == signature.ConcurrencyLimit && v.Scores[signature.ConcurrencyLimit] > 0.61 {
		return nil
	}
	n := int(2*flight) + 10
	over := time.Duration(math.Ceil(float64(n)/r.o.MaxRate*1e9)) + time.Microsecond
	if over > base/3 || n > r.o.MaxConns/2 {
		return nil // not at once, as this limit sees it
	}
	for range 2 {
		if err := r.drain("before a burst"); err != nil {
			return err
		}
		if err := r.pause(max(4*base, 100*time.Millisecond), nil, "before a burst"); err != nil {
			return err
		}
		d := over + 3*base + 50*time.Millisecond
		if _, err := r.offerProcess(
			Step{Role: RoleBurst, Rate: float64(n) / over.Seconds()}, load.Burst{Calls: n, Over: over, Duration: d}, nil,
		); err != nil {
			return err
		}
	}
	r.judge()
	return nil
}
