package run

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// A witness reads the target's own measurements of the requests of a trial.
type witness struct {
	*Arm
	shared bool      // its target may be another arm's, too
	ask    witnessed // nil: the target measures nothing
	before *area.Served
	asked  time.Time // when before was read
	err    error
}

// Witness reads the target's totals before the measured part. That may cost the target work: the probes are read after
// it. The returned function reads the totals again and records the difference. Of a target that may be another arm's,
// too, it keeps only what was let pass undecided, which is nobody's alone.
func (a *Arm) Witness(ctx context.Context, shared bool) (seen func(context.Context) error) {
	w := &witness{Arm: a, shared: shared, asked: a.Env.Clock.Now()}
	ask := witnessed(a.Target.Can().Witnessed)
	if ask == nil {
		return w.close
	}
	if w.before, w.err = ask.in(ctx, a.Treatment); w.before != nil || w.err != nil {
		w.ask = ask
	}
	return w.close
}

// witnessed is area.Can.Witnessed.
type witnessed func(context.Context, design.Treatment) (*area.Served, error)

func (ask witnessed) in(ctx context.Context, t design.Treatment) (*area.Served, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return ask(ctx, t)
}

// close reads the totals again and writes the difference. If they cannot be read, the run continues: the record says
// so, and the analysis warns. After an interrupt ctx has ended, and it reads nothing, since the trial is dropped.
func (w *witness) close(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
	}
	if w.ask == nil {
		return nil
	}
	r := record.Served{Treatment: w.Trial.Treatment, Block: w.Trial.Block}
	err := w.err
	if err == nil {
		err = w.since(ctx, &r)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return w.Writer.Served(r)
}

// since completes r.
func (w *witness) since(ctx context.Context, r *record.Served) error {
	after, err := w.ask.in(ctx, w.Treatment)
	if err != nil {
		return err
	}
	if after == nil {
		return errors.New("the target no longer reports what it has served")
	}
	if !isFinite(w.before) || !isFinite(after) {
		return errors.New("the target's totals contain a value that is not finite")
	}
	r.Served, r.Restarted = after.Since(w.before)
	if s := after.Started; r.Restarted && s != w.before.Started && s > 0 && s < float64(w.asked.UnixNano())/1e9 {
		r.Served, r.Restarted = area.Served{}, false
		return errors.New("the readings before and after the trial are of two servers: each counts only what it served " +
			"itself")
	}
	if w.shared {
		r.Requests = nil
		r.Parts = slices.DeleteFunc(r.Parts, func(x area.ServedPart) bool { return x.Part != area.Undecided })
	}
	return nil
}

// isFinite reports whether all numbers are finite: a record cannot hold others.
func isFinite(s *area.Served) bool {
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
	return !math.IsNaN(sum) // 0 × infinity is NaN too
}

// WatchHost reads what the host does, and this run's share of it: this process and its children, including ended ones.
// The returned function writes the differences. If the host does not report them, that is no failure.
func (x *Stage) WatchHost(ctx context.Context, b int) func() error {
	probes := []probe.Probe{probe.Host{}, probe.PSI{}, probe.Process{Name: "tare", PID: os.Getpid()}}
	read := func() (all []metric.Sample, at time.Time) {
		for _, p := range probes {
			if s, err := p.Read(ctx); err == nil {
				all = append(all, s...)
			}
		}
		return all, x.Env.Clock.Now()
	}
	before, from := read()
	return func() error {
		after, to := read()
		return x.Writer.Surroundings(record.Surroundings{
			Block: b, Seconds: to.Sub(from).Seconds(),
			Samples: probe.Delta(before, after),
		})
	}
}
