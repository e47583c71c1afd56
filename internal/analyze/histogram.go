package analyze

import (
	"math"

	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// histograms reports the operations of a trial whose raw calls are not there, from its histograms. They have no
// instants, so that there are no rates.
func (a *analysis) histograms(t *record.Trial) error {
	sums := map[string]map[record.Measure]*hist.Histogram{}
	damaged, err := t.Histograms(func(iv *record.Interval) {
		per := sums[iv.Operation]
		if per == nil {
			per = map[record.Measure]*hist.Histogram{}
			sums[iv.Operation] = per
		}
		if per[iv.Measure] == nil {
			per[iv.Measure] = compact()
		}
		per[iv.Measure].Merge(iv.Hist)
	})
	if err != nil {
		a.warn(t.Treatment, "%v", err)
	}
	if damaged > 0 {
		a.warn(t.Treatment, "%s could not be read", unit.Count(damaged, "histogram"))
	}
	for _, name := range t.Operations {
		op := report.Operation{Treatment: t.Treatment, Operation: name, Outcomes: outcomes(t.Counts, name)}
		if op.Outcomes.Ended() == 0 {
			continue
		}
		op.Response = summed(sums[name][record.Response])
		op.Service = summed(sums[name][record.Service])
		op.PoolWait = summed(sums[name][record.PoolWait])
		a.rep.Operations = append(a.rep.Operations, op)
	}
	return nil
}

// compact is an empty histogram: damaged records can have thousands of them.
func compact() *hist.Histogram {
	h := hist.Compact()
	return &h
}

func outcomes(counts []record.Count, operation string) report.Outcomes {
	var o report.Outcomes
	for _, c := range counts {
		if c.Operation == operation {
			*field(&o, c.Outcome) += c.Count
			o.Unsent += c.Unsent
		}
	}
	return o
}

// field is where an outcome is counted.
func field(o *report.Outcomes, outcome load.Outcome) *uint64 {
	switch outcome {
	case load.OK:
		return &o.OK
	case load.Denied:
		return &o.Denied
	case load.Wrong:
		return &o.Wrong
	case load.Refused:
		return &o.Refused
	case load.Timeout:
		return &o.Timeout
	case load.ConnFailed:
		return &o.ConnFailed
	case load.Failed:
		return &o.Failed
	case load.Permitted:
		return &o.Permitted
	default:
		return &o.Failed
	}
}

// summed turns a histogram of nanoseconds into a distribution of seconds; nil if it is empty.
func summed(h *hist.Histogram) *report.Distribution {
	if h == nil || h.Count() == 0 {
		return nil
	}
	n := h.Count()
	d := &report.Distribution{N: n, Min: float64(h.Min()) / 1e9, Mean: h.Mean() / 1e9, Max: float64(h.Max()) / 1e9}
	if s := h.Stddev() / 1e9; !math.IsNaN(s) {
		d.Stddev = &s
	}
	at := func(q float64) *float64 {
		if !enough(int(n), q) {
			return nil
		}
		v := h.Quantile(q) / 1e9
		return &v
	}
	d.P50, d.P90, d.P95, d.P99, d.P999 = at(.5), at(.9), at(.95), at(.99), at(.999)
	return d
}
