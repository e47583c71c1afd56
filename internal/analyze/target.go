package analyze

import (
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// These subjects are not parts of the target. Simulated nodes run on this host in place of other ones: what they use is
// shown, and is no cost of what is measured.
const (
	generatorSubject = "generator"
	hostSubject      = "host"
	simulatedSubject = "simulated-nodes"
)

// stealLimit is the share of the host's CPU time beyond which steal makes times doubtful.
const stealLimit = 0.02

// targets adds what the parts of the target used during t.
func (a *analysis) targets(t *record.Trial) {
	before, after := reading(t, record.Before, 0), reading(t, record.After, 0)
	if len(before) == 0 && len(after) == 0 {
		return
	}
	delta := probe.Delta(before, after)
	for _, subject := range subjects(after) {
		switch subject {
		case generatorSubject:
			continue
		case hostSubject:
			if s, ok := probe.Share(delta, hostSubject, probe.Steal, probe.HostAll); ok {
				a.steal[t.Treatment] = append(a.steal[t.Treatment], s)
			}
		}
		x := a.target(t.Treatment, subject)
		for _, s := range delta {
			if s.Subject == subject {
				use(x, s, before)
			}
		}
	}
}

// stolen warns of trials during which the hypervisor gave this host's CPU time to others.
func (a *analysis) stolen() {
	for i := range a.rep.Treatments {
		id, over, most := a.rep.Treatments[i].ID, 0, 0.0
		for _, s := range a.steal[id] {
			if most = max(most, s); s > stealLimit {
				over++
			}
		}
		switch n := len(a.steal[id]); {
		case over == 0:
		case n == 1:
			a.warn(
				id, "the hypervisor took %.1f %% of this host's CPU time during the trial (steal): times are doubtful", most*100,
			)
		default:
			a.warn(id, "the hypervisor took up to %.1f %% of this host's CPU time (steal), and more than %.0f %% in %d of %d "+
				"trials: times are doubtful",
				most*100, stealLimit*100, over, n)
		}
	}
}

// reading joins the samples of one place in the trial; point is 0, or the number of a point of a ladder.
func reading(t *record.Trial, when record.When, point int) []metric.Sample {
	var out []metric.Sample
	for _, s := range t.Samples {
		if s.When == when && s.Point == point {
			out = append(out, s.Samples...)
		}
	}
	return out
}

func subjects(samples []metric.Sample) []string {
	var out []string
	for _, s := range samples {
		addOnce(&out, s.Subject)
	}
	return out
}

// target finds or makes the entry of a part of the target.
func (a *analysis) target(treatment, name string) *report.Target {
	for i := range a.rep.Target {
		if x := &a.rep.Target[i]; x.Treatment == treatment && x.Name == name {
			return x
		}
	}
	a.rep.Target = append(a.rep.Target, report.Target{Treatment: treatment, Name: name})
	return &a.rep.Target[len(a.rep.Target)-1]
}

// use adds one difference, or one last value of a gauge. Costs of several blocks add up.
func use(x *report.Target, s metric.Sample, before []metric.Sample) {
	first := func() *float64 {
		if v, ok := find(before, subjectProbed{s.Subject, probed{s.Metric, s.Part}}); ok {
			return &v
		}
		return nil
	}
	switch s.Metric {
	case probe.CPU.Name, probe.HostCPU.Name:
		x.CPUSeconds = sum(x.CPUSeconds, s.Value)
	case probe.RSS.Name:
		x.RSS = orNew(x.RSS)
		if x.RSS.Before == nil {
			x.RSS.Before = first()
		}
		x.RSS.After = &s.Value
	case probe.RSSPeak.Name:
		x.RSS = orNew(x.RSS)
		x.RSS.Peak = &s.Value
	case probe.ThrottledPeriods.Name:
		x.Throttled = orNew(x.Throttled)
		x.Throttled.Periods = sum(x.Throttled.Periods, s.Value)
	case probe.ThrottledTime.Name:
		x.Throttled = orNew(x.Throttled)
		x.Throttled.Seconds = sum(x.Throttled.Seconds, s.Value)
	case probe.GCCount.Name:
		collector(x, s.Part).Count += s.Value
	case probe.GCTime.Name:
		collector(x, s.Part).Seconds += s.Value
	case probe.HeapUsed.Name:
		x.Heap = orNew(x.Heap)
		if x.Heap.Before == nil {
			x.Heap.Before = first()
		}
		x.Heap.After = &s.Value
	case probe.HeapCommitted.Name:
		x.Heap = orNew(x.Heap)
		x.Heap.Committed = &s.Value
	case probe.StartSeconds.Name:
		x.StartSeconds = &s.Value
	case probe.LoadSeconds.Name:
		x.LoadSeconds = &s.Value
	default:
		keepOther(x, s)
	}
}

// keepOther keeps a value that has no field of its own.
func keepOther(x *report.Target, s metric.Sample) {
	if x.Other == nil {
		x.Other = map[string]float64{}
	}
	name := probed{s.Metric, s.Part}.name()
	if counter(s.Metric) {
		s.Value += x.Other[name]
	}
	x.Other[name] = s.Value
}

func counter(name string) bool {
	for _, q := range probe.Quantities() {
		if q.Name == name {
			return q.Kind == probe.Counter || q.Kind == probe.Lifetime
		}
	}
	return false
}

func sum(p *float64, v float64) *float64 {
	if p != nil {
		v += *p
	}
	return &v
}

func orNew[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// perOperation divides the CPU time of each part of the target by the calls that were answered well.
func (a *analysis) perOperation() {
	good := map[string]uint64{}
	for i := range a.rep.Operations {
		good[a.rep.Operations[i].Treatment] += a.rep.Operations[i].Outcomes.Good()
	}
	for i := range a.rep.Target {
		x := &a.rep.Target[i]
		if n := good[x.Treatment]; n > 0 && x.CPUSeconds != nil && partOfTarget(x.Name) {
			v := *x.CPUSeconds / float64(n)
			x.CPUPerOp = &v
		}
	}
}

// used is what the target's probes saw around one point of a ladder, by "subject metric"; nil if they were not read.
// good is how many calls were answered well: upstream calls are also given for each of them.
func used(t *record.Trial, point int, good float64) map[string]float64 {
	before, after := reading(t, record.Before, point), reading(t, record.After, point)
	out := map[string]float64{}
	for _, s := range probe.Delta(before, after) {
		out[s.Subject+" "+probed{s.Metric, s.Part}.name()] = s.Value
		if s.Metric == probe.Upstream.Name && good > 0 {
			out[s.Subject+" "+s.Metric+" per good call"] = s.Value / good
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
