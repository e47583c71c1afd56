package run

import (
	"context"
	"errors"
	"math"
	"time"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/record"
)

// A witness is what the target says of the requests that it serves while a trial is measured.
type witness struct {
	*runner
	trial     design.Trial
	treatment design.Treatment
	target    area.Witness // nil: the target measures nothing
	before    *area.Served
	asked     time.Time // when before was read
	err       error
}

// witness reads the target's totals before what is measured. It may cost the target work: the probes are read after it.
func (x *runner) witness(ctx context.Context, t design.Trial, treatment design.Treatment) *witness {
	w := &witness{runner: x, trial: t, treatment: treatment, asked: x.Env.Clock.Now()}
	target, ok := x.target.(area.Witness)
	if !ok {
		return w
	}
	if w.before, w.err = witnessed(ctx, target, treatment); w.before != nil || w.err != nil {
		w.target = target
	}
	return w
}

func witnessed(ctx context.Context, target area.Witness, t design.Treatment) (*area.Served, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return target.Witnessed(ctx, t)
}

// close reads the totals again and writes the difference. That they cannot be read does not end the run: the record says so, and the analysis warns.
// After an interrupt ctx has ended, and what is not going to be judged is not asked for.
func (w *witness) close(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
	}
	if w.target == nil {
		return nil
	}
	r := record.Served{Treatment: w.trial.Treatment, Block: w.trial.Block}
	err := w.err
	if err == nil {
		err = w.since(ctx, &r)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return w.Writer.Served(r)
}

// since fills in r.
func (w *witness) since(ctx context.Context, r *record.Served) error {
	after, err := witnessed(ctx, w.target, w.treatment)
	if err != nil {
		return err
	}
	if after == nil {
		return errors.New("the target no longer says what it has served")
	}
	if !sayable(w.before) || !sayable(after) {
		return errors.New("the target's totals hold what is no number")
	}
	r.Served, r.Restarted = after.Since(w.before)
	if s := after.Started; r.Restarted && s != w.before.Started && s > 0 && s < float64(w.asked.UnixNano())/1e9 {
		r.Served, r.Restarted = area.Served{}, false
		return errors.New("the readings before and after the trial are of two servers: each counts only what it served itself")
	}
	return nil
}

// sayable reports whether all numbers are finite: no record can hold others.
func sayable(s *area.Served) bool {
	sum := s.Started * 0
	for i := range s.Requests {
		r := &s.Requests[i]
		sum += 0 * (r.Seconds + r.SLISeconds)
		for _, b := range r.Buckets {
			sum += 0 * b.LE
		}
		for _, b := range r.SLIBuckets {
			sum += 0 * b.LE
		}
	}
	for _, p := range s.Parts {
		sum += 0 * p.Seconds
	}
	return !math.IsNaN(sum) // 0 × infinity is none either
}
