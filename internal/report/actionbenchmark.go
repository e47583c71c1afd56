package report

import (
	"fmt"
	"io"
	"math"
	"slices"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/stat"
	"tare/internal/unit"
)

// ActionBenchmark writes what github-action-benchmark (https://github.com/benchmark-action/github-action-benchmark)
// reads as "customSmallerIsBetter": one entry for each treatment and each metric that was measured in blocks and of
// which less is better, with the median of the blocks. Times are in nanoseconds whatever their size, since the action
// compares values without a look at their units. The A/A arm is left out, and what failed calls leave untold. Of a soak
// it has times, errors and CPU time of the whole run, and trends per hour. ErrNoBlocks of any other report without
// blocks.
func ActionBenchmark(w io.Writer, r *Report) error {
	if r.independent() != nil {
		entries, err := r.soakEntries()
		if err != nil {
			return fmt.Errorf("github-action-benchmark: %w", err)
		}
		return writeJSON(w, "github-action-benchmark", entries)
	}
	all, err := r.series()
	if err != nil {
		return fmt.Errorf("github-action-benchmark: %w", err)
	}
	out := []actionEntry{}
	for i := range all {
		s := &all[i]
		if s.treatment.Control == design.AA || s.treatment.ID == design.AAArm {
			continue
		}
		for _, b := range s.values {
			m, ok := metric.Find(b.Metric, r.Quantities...)
			values := b.measuredValues()
			if len(values) == 0 || ok && m.Better == metric.Higher {
				continue
			}
			out = append(out, r.entry(b, stat.Median(values)))
		}
	}
	if len(out) == 0 {
		return fmt.Errorf("github-action-benchmark: no metric was measured for which less is better")
	}
	return writeJSON(w, "github-action-benchmark", out)
}

type actionEntry struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Range string  `json:"range,omitempty"`
	Extra string  `json:"extra,omitempty"`
}

// entry returns one metric of one treatment. Its value is the report's, or if there is none, the median of its blocks.
func (r *Report) entry(b *BlockValues, value float64) actionEntry {
	name, scale := actionUnit(b.Unit)
	e := actionEntry{Name: sanitize(b.measured() + " · " + b.Treatment), Unit: name, Value: nearest(value * scale)}
	t := r.treatment(b.Treatment)
	i := slices.IndexFunc(t.Metrics, func(m Metric) bool { return m.measured() == b.measured() })
	if i >= 0 {
		m := &t.Metrics[i]
		e.Value = nearest(m.Value * scale)
		if m.Lo != nil && m.Hi != nil && !math.IsInf(*m.Hi-*m.Lo, 0) && !math.IsNaN(*m.Hi-*m.Lo) {
			e.Range = "± " + unit.Decimal((*m.Hi-*m.Lo)/2*scale, 3)
		}
		e.Extra = unit.Count(m.N, "block")
	}
	for i := range r.Effects {
		if x := &r.Effects[i]; x.Treatment == b.Treatment && x.measured() == b.measured() {
			e.Extra += "\n" + sanitize(x.Change()+" against "+x.Baseline+": "+x.Shown())
		}
	}
	return e
}

// nearest rounds off the error that scaling added to a number: 1190.0000000000002.
func nearest(v float64) float64 {
	if v == 0 {
		return v
	}
	scale := math.Pow(10, 11-math.Floor(math.Log10(math.Abs(v))))
	if r := math.Round(v*scale) / scale; !math.IsInf(r, 0) && !math.IsNaN(r) {
		return r
	}
	return v
}

// actionUnit is a unit, and how many of it make one base unit.
func actionUnit(u metric.Unit) (name string, scale float64) {
	switch u {
	case metric.Seconds:
		return "ns/op", 1e9
	case metric.CPUSeconds:
		return "cpu-ns/op", 1e9
	case metric.Bytes:
		return "B", 1
	case metric.Ratio:
		return "%", 100
	case metric.PerSecond:
		return "1/s", 1
	case metric.Count:
	}
	return "1", 1
}
