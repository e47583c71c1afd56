package capacity

import (
	"errors"
	"fmt"
	"time"

	"tare/internal/stat"
)

// errDown says that the target stays down.
var errDown = errors.New("the target stays down")

const (
	// singles is how many single calls in a row have to be answered as before the load.
	singles = 3
	// idleFactor is how many times the idle response a single call may take.
	idleFactor = 3
)

// settle waits until the calls in flight have ended, and then until single calls are answered as they were before the
// load. A target that does not come back within the length of a timeout is given the recovery probe; if that fails as
// well, the search ends.
func (r *session) settle(why string) error {
	if err := r.drain(why); err != nil {
		return err
	}
	if err := r.waitForConnections(); err != nil {
		return err
	}
	limit := min(r.o.Timeout, 20*time.Second)
	for begun := r.s.Now(); r.s.Now()-begun < limit; {
		idle, err := r.single()
		if err != nil || idle {
			return err
		}
		if err := r.pause(time.Second/2, nil, "the target does not answer single calls as before"); err != nil {
			return err
		}
	}
	return r.comesBack()
}

// single offers a few calls far apart, and reports whether all were answered well and about as fast as before the load.
func (r *session) single() (bool, error) {
	rate := min(r.o.MaxRate, 20, max(r.o.Start, r.fastest/10))
	if typical := r.typical.Seconds(); typical > 0 {
		rate = min(rate, max(0.5/typical, 1))
	}
	limit := max(idleFactor*r.typical, r.typical+50*time.Millisecond, min(baseOf(r.t).p99, 10*r.typical))
	if r.typical == 0 {
		limit = r.o.Timeout
	}
	step, err := r.offer(RoleSingle, rate, time.Duration(singles/rate*1e9), nil)
	if err != nil {
		return false, err
	}
	if err := r.s.Wait(r.ctx, limit, poll, func() bool { return r.s.Progress().Open() == 0 }); err != nil {
		return false, fmt.Errorf("wait for single calls: %w", err)
	}
	r.watchNow()
	var response []float64
	good := 0
	for _, c := range due(r.s.Calls(step.Segment.Start), step.Segment.Start, step.Segment.End) {
		if c.Done != 0 && c.Outcome.Good() {
			good++
			response = append(response, c.Response().Seconds())
		}
	}
	n := step.Segment.Offered
	allowed := int(2 * r.floor() * float64(n))
	if r.floor() > 0 {
		allowed = max(allowed, 1)
	}
	idle := n > 0 && good >= n-allowed && len(response) > 0 && stat.Quantile(response, 0.5) <= limit.Seconds()
	step.Passed = &idle
	return idle, nil
}

// comesBack gives the target the recovery probe in the middle of a search.
func (r *session) comesBack() error {
	if err := r.recovery(); err != nil {
		return err
	}
	if r.t.Recovery.Recovered {
		return nil
	}
	return errDown
}
