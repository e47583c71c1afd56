package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/run"
)

const (
	// probeWithin bounds a probe in a soak: a later value does not belong to that instant.
	probeWithin = time.Second
	// mostLosses bounds the warnings about one intermittent probe.
	mostLosses = 20
	// callsPerReading is how many calls max_rate has to allow between two readings of an endpoint of metrics.
	callsPerReading = 10
)

// gauges are the probes of a soak, which are read repeatedly, even while the target restarts.
type gauges struct {
	*run.Arm
	lost     map[gauge]*loss
	born     map[gauge]float64 // start of each subject's process
	asked    map[gauge]time.Duration
	restarts int
}

// gauge identifies a probe, or a quantity: two probes may have the same subject.
type gauge struct {
	subject string
	part    string
}

// loss is the state of a probe that has failed.
type loss struct {
	gone  bool
	since time.Duration
	times int
}

func newGauges(a *run.Arm) *gauges {
	return &gauges{Arm: a, lost: map[gauge]*loss{}, born: map[gauge]float64{}, asked: map[gauge]time.Duration{}}
}

// read reads every probe once; where the measured part neither begins nor ends, only those that isDue returns. It omits
// values that are not read in time, and records when that begins and ends. now is the stream's clock.
func (g *gauges) read(ctx context.Context, now func() time.Duration, bound bool) ([]metric.Sample, error) {
	var all []metric.Sample
	ordinal := map[string]int{}
	// The host's probes run beside the target's: they distinguish a drift of the target from one of its host.
	for _, p := range append(g.Probes(g.Treatment), probe.Probe(probe.Host{})) {
		key := gauge{p.Subject(), fmt.Sprint(ordinal[p.Subject()])}
		ordinal[p.Subject()]++
		if !g.isDue(key, p, now()) && !bound {
			continue
		}
		samples, err := g.ask(ctx, p, now)
		if err != nil && ctx.Err() != nil {
			continue // the interrupt ended the probe, not a failure
		}
		if err := g.note(key, err, now()); err != nil {
			return nil, err
		}
		all = append(all, samples...)
	}
	for _, s := range all {
		g.births(s)
	}
	return all, nil
}

// isDue reports whether p may be read again. A reading of an endpoint of metrics is a request to the target.
func (g *gauges) isDue(key gauge, p probe.Probe, now time.Duration) bool {
	if _, ok := p.(probe.Exposition); !ok {
		return true
	}
	last, known := g.asked[key]
	if known && now-last < g.Env.Limit.Takes(callsPerReading) {
		return false
	}
	g.asked[key] = now
	return true
}

// errLate is the error of a probe that answered too late.
var errLate = errors.New("it took more than " + probeWithin.String())

func (g *gauges) ask(ctx context.Context, p probe.Probe, now func() time.Duration) ([]metric.Sample, error) {
	within, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	asked := g.Env.Clock.Now()
	samples, err := p.Read(within)
	switch {
	case within.Err() != nil, g.Env.Clock.Now().Sub(asked) > probeWithin:
		return nil, errLate
	case err != nil && len(samples) == 0:
		return nil, err
	}
	return probe.Stamp(samples, now()), err
}

// note warns once when a probe is lost, and once when it has recovered.
func (g *gauges) note(key gauge, err error, now time.Duration) error {
	l := g.lost[key]
	switch {
	case err != nil && l == nil:
		l = &loss{}
		g.lost[key] = l
		fallthrough
	case err != nil && !l.gone:
		l.gone, l.since = true, now
		l.times++
		return g.warn(l, "the probe of %s cannot be read any more, %s after the load's stream was opened: %v", key.subject,
			now.Round(time.Second), err)
	case err == nil && l != nil && l.gone:
		l.gone = false
		return g.warn(l, "the probe of %s can be read again, after %s", key.subject, (now - l.since).Round(time.Second))
	}
	return nil
}

func (g *gauges) warn(l *loss, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	switch {
	case l.times > mostLosses:
		return nil
	case l.times == mostLosses && !l.gone:
		text += "; this has happened so often that it is not said again"
	}
	return g.Writer.Warning(record.Warning{Treatment: g.Treatment.ID, Text: text})
}

// births counts processes that were replaced.
func (g *gauges) births(s metric.Sample) {
	if s.Metric != probe.Started.Name {
		return
	}
	key := gauge{s.Subject, s.Part}
	if was, known := g.born[key]; known && was != s.Value {
		g.restarts++
	}
	g.born[key] = s.Value
}
