package report

import (
	"errors"
	"fmt"

	"tare/internal/metric"
	"tare/internal/unit"
)

// ErrWindows reports that a format for independent values was requested for a soak, whose windows follow each other in
// time.
var ErrWindows = fmt.Errorf("the windows of a soak are not independent, and tools that read this format would treat "+
	"them as repetitions; use github-action-benchmark, json or openmetrics, or ask the question compare for two "+
	"targets: %w", ErrNoBlocks)

// independent returns an error if a format that needs independent values is requested for a report of dependent ones.
func (r *Report) independent() error {
	if len(r.Blocks) == 0 && r.soaked() {
		return ErrWindows
	}
	return nil
}

// soakEntries returns the figures of a soak for which less is better: times of each operation, shares of errors, CPU
// time, and trends. They have no range if it is unknown how much they would differ in a second run.
func (r *Report) soakEntries() ([]actionEntry, error) {
	var out []actionEntry
	for _, s := range r.soakedWholes() {
		r.eachOperation(s, func(name string, o *Operation) {
			d := orZero(o.Response)
			for _, x := range []struct {
				metric string
				unit   metric.Unit
				value  *float64
			}{
				{"response.p50", metric.Seconds, d.P50},
				{"response.p99", metric.Seconds, d.P99},
				{"error", metric.Ratio, errorShare(o.Outcomes)},
			} {
				out = appendEntry(out, Measured(name, x.metric, ""), s, x.unit, x.value)
			}
		})
		out = appendEntry(out, "cpu", s, metric.CPUSeconds, orZero(s.Total).CPUPerOp)
	}
	for i := range r.Soak {
		s := &r.Soak[i]
		for _, name := range driftNames(s.Drift) {
			d := s.Drift[name]
			if !d.Known() {
				continue
			}
			name, scale := actionUnit(d.Unit)
			e := actionEntry{
				Name: sanitize(Measured(s.Operation, name, "") + " drift · " + s.Treatment), Unit: name + "/h",
				Value: nearest(d.PerHour * scale), Extra: d.Slope() + ": " + d.says(),
			}
			if d.Lo != nil && d.Hi != nil {
				e.Range = "± " + unit.Decimal((*d.Hi-*d.Lo)/2*scale, 3)
			}
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no metric was measured for which less is better")
	}
	return out, nil
}

// eachOperation calls do for each operation of a soak, and with an empty name for all of them together.
func (r *Report) eachOperation(s *Soak, do func(name string, o *Operation)) {
	if s.Total != nil {
		do("", &s.Total.Operation)
	}
	for i := range r.Operations {
		if o := &r.Operations[i]; o.Treatment == s.Treatment {
			do(o.Operation, o)
		}
	}
}

func appendEntry(out []actionEntry, name string, s *Soak, u metric.Unit, v *float64) []actionEntry {
	if v == nil {
		return out
	}
	shown, scale := actionUnit(u)
	return append(out, actionEntry{Name: sanitize(name + " · " + s.Treatment), Unit: shown, Value: nearest(*v * scale)})
}
