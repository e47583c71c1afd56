package analyze

import (
	"cmp"
	"slices"
	"strings"

	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
)

// A phase is one stretch of the calls of an operation, trial by trial.
type phase struct {
	treatment, operation, name string
	whole                      hist.Histogram
	trials                     []*hist.Histogram
}

// phases reports the phases of calls over all complete trials.
func (a *analysis) phases() {
	for _, t := range a.trials() {
		if !t.Complete() {
			continue
		}
		seen := map[[2]string]*hist.Histogram{}
		if s := a.soaked[t.Treatment]; s != nil { // its many histograms have been read
			for operation, per := range s.hists.per {
				for m, h := range per {
					a.phaseOf(t, operation, m, h, seen)
				}
			}
			continue
		}
		if _, err := t.Histograms(
			func(iv *record.Interval) { a.phaseOf(t, iv.Operation, iv.Measure, iv.Hist, seen) },
		); err != nil {
			a.warn(t.Treatment, "%v", err)
		}
	}
	a.sortPhases()
	for _, p := range a.phased {
		if n := p.whole.Count(); n > 0 {
			at := func(q float64) float64 { return p.whole.Quantile(q) / 1e9 }
			a.rep.Phases = append(a.rep.Phases, report.Phase{
				Treatment: p.treatment, Operation: p.operation, Phase: p.name, N: n,
				Mean: p.whole.Mean() / 1e9, P50: at(.5), P90: at(.9), P99: at(.99), Max: float64(p.whole.Max()) / 1e9,
			})
		}
	}
}

// phaseOf takes in one histogram of a trial; seen are the trial's own so far, since each outcome has one.
func (a *analysis) phaseOf(
	t *record.Trial, operation string, m record.Measure, h *hist.Histogram, seen map[[2]string]*hist.Histogram,
) {
	name, ok := m.Phase()
	if !ok {
		return
	}
	p := a.phase(t.Treatment, operation, name)
	if p == nil {
		p = &phase{treatment: t.Treatment, operation: operation, name: name, whole: hist.Compact()}
		a.phased = append(a.phased, p)
	}
	p.whole.Merge(h)
	k := [2]string{operation, name}
	if seen[k] == nil {
		seen[k] = compact()
		p.trials = append(p.trials, seen[k])
	}
	seen[k].Merge(h)
}

// The phases of a pod's start, in the order in which they are told.
const (
	phasePost           = "post"             // sent until answered
	phaseStartup        = "startup"          // sent until seen running
	phaseCreatedToWatch = "created-to-watch" // creationTimestamp until seen running
	phaseWatchToWatch   = "watch-to-watch"   // first seen until seen running
	phaseConditions     = "conditions"       // creationTimestamp until the Ready condition's lastTransitionTime
)

// sortPhases puts them in the order of treatments, then of operations, then of time.
func (a *analysis) sortPhases() {
	order := []string{
		phasePost, "scheduled", "running", phaseStartup, phaseCreatedToWatch, phaseWatchToWatch, phaseConditions,
	}
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	arm := func(id string) int {
		return slices.IndexFunc(a.rec.Plan.Treatments, func(t design.Treatment) bool { return t.ID == id })
	}
	slices.SortStableFunc(a.phased, func(x, y *phase) int {
		return cmp.Or(cmp.Compare(arm(x.treatment), arm(y.treatment)), strings.Compare(x.operation, y.operation),
			cmp.Compare(rank(x.name), rank(y.name)), strings.Compare(x.name, y.name))
	})
}

// phase is a phase of an operation under a treatment, nil if there is none.
func (a *analysis) phase(treatment, operation, name string) *phase {
	for _, p := range a.phased {
		if p.treatment == treatment && p.operation == operation && p.name == name {
			return p
		}
	}
	return nil
}

// mostSamples bounds how many values of a phase an interval is computed from, one by one.
const mostSamples = 1 << 20

// samples are the values by trial, in seconds and sorted, as exact as histograms keep them; nil if there are too many.
func (p *phase) samples() []stat.Sample {
	if p.whole.Count() > mostSamples {
		return nil
	}
	var out []stat.Sample
	for _, h := range p.trials {
		var s stat.Values
		h.Each(func(v int64, n uint64) {
			for range n {
				s = append(s, float64(v)/1e9)
			}
		})
		out = append(out, s)
	}
	return out
}
