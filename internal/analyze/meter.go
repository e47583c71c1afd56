package analyze

import (
	"cmp"
	"math"
	"slices"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// usage is what all parts of the target together used in a slice, or held at its end; NaN is what is not known.
type usage struct {
	cpu, gc   float64 // CPU-seconds, seconds that programs stood still for collections
	rss, heap float64
	other     map[string]float64
	others    float64 // share of the host's CPU time that neither the target nor the generator used
	stolen    float64 // share of it that the hypervisor took
	restarted bool    // some part was replaced in it
}

// A meter adds up what the parts of the target used over consecutive readings. A part that was replaced counts from 0
// again.
type meter struct {
	last  map[string]map[probed]float64 // by subject
	sums  map[string]map[probed]float64 // of counters, and the last values of gauges
	peaks map[string]float64            // of resident memory, since resetSums
	marks map[string]float64            // the most resident memory that a process had before that
	times map[string]int                // how often each subject was replaced
	order []string                      // subjects, as they came
}

// probed names a value of a subject.
type probed struct{ metric, part string }

type subjectProbed struct {
	subject string
	probed
}

func newMeter() *meter {
	return &meter{
		last: map[string]map[probed]float64{}, sums: map[string]map[probed]float64{}, peaks: map[string]float64{},
		marks: map[string]float64{}, times: map[string]int{},
	}
}

// kinds are how the quantities behave, by name.
var kinds = func() map[string]probe.Kind {
	out := map[string]probe.Kind{}
	for _, q := range probe.Quantities() {
		out[q.Name] = q.Kind
	}
	return out
}()

// read takes in a reading. It returns what was used since the one before, by subject; replaced lists the subjects that
// are not what they were.
func (m *meter) read(samples []metric.Sample) (used map[string]map[probed]float64, replaced []string) {
	used = map[string]map[probed]float64{}
	for _, subject := range subjects(samples) {
		addOnce(&m.order, subject)
		now := map[probed]float64{}
		for _, s := range samples {
			if s.Subject == subject {
				now[probed{s.Metric, s.Part}] = s.Value
			}
		}
		anew := m.replaced(subject, now)
		if anew {
			delete(m.marks, subject)
		}
		m.peak(subject, now)
		if anew {
			replaced = append(replaced, subject)
			m.times[subject]++
		}
		used[subject] = m.add(subject, now, anew)
	}
	return used, replaced
}

// peak takes in how much memory a subject has resident. What its process had at most counts only where it had that
// since resetSums.
func (m *meter) peak(subject string, now map[probed]float64) {
	if v, ok := now[probed{metric: probe.RSS.Name}]; ok {
		m.peaks[subject] = max(m.peaks[subject], v)
	}
	if v, ok := now[probed{metric: probe.RSSPeak.Name}]; ok && v > m.marks[subject] {
		m.peaks[subject] = max(m.peaks[subject], v)
	}
}

// replaced reports whether a subject's process is another one than at the last reading: by its start, or, where that is
// not known, by a count that fell.
func (m *meter) replaced(subject string, now map[probed]float64) bool {
	last := m.last[subject]
	if last == nil || subject == hostSubject || subject == generatorSubject {
		return false
	}
	birth := probed{metric: probe.Started.Name}
	was, before := last[birth]
	is, after := now[birth]
	if before && after {
		return was != is
	}
	for k, v := range now {
		if old, ok := last[k]; ok && kinds[k.metric] == probe.Lifetime && v < old {
			return true
		}
	}
	return false
}

// add adds what a subject used since its last reading, and returns it with the present values of gauges.
func (m *meter) add(subject string, now map[probed]float64, anew bool) map[probed]float64 {
	last, used := m.last[subject], map[probed]float64{}
	if last == nil {
		last = map[probed]float64{}
		m.last[subject] = last
	}
	for k, v := range now {
		old, known := last[k]
		last[k] = v
		switch kind, ok := kinds[k.metric]; {
		case !ok || kind == probe.Birth:
		case kind == probe.Gauge:
			used[k] = v
		case kind == probe.Lifetime && anew:
			used[k] = v
		case known && v >= old:
			used[k] = v - old
		}
	}
	for k, v := range used {
		m.sum(subjectProbed{subject, k}, v)
	}
	return used
}

// sum adds to what a subject used; of a gauge the last value stands.
func (m *meter) sum(k subjectProbed, v float64) {
	sums := m.sums[k.subject]
	if sums == nil {
		sums = map[probed]float64{}
		m.sums[k.subject] = sums
	}
	if kinds[k.metric] != probe.Gauge {
		v += sums[k.probed]
	}
	sums[k.probed] = v
}

// resetSums forgets the sums, and keeps what was read last and how often parts were replaced.
func (m *meter) resetSums() {
	clear(m.sums)
	clear(m.peaks)
	for subject, last := range m.last {
		m.marks[subject] = last[probed{metric: probe.RSSPeak.Name}]
	}
}

// keys are what was added up: subjects in the order in which they came, their values in that of the alphabet.
func (m *meter) keys() []subjectProbed {
	var out []subjectProbed
	for subject, sums := range m.sums {
		for k := range sums {
			out = append(out, subjectProbed{subject, k})
		}
	}
	slices.SortFunc(out, func(x, y subjectProbed) int {
		return cmp.Or(
			cmp.Compare(slices.Index(m.order, x.subject), slices.Index(m.order, y.subject)), cmp.Compare(x.metric, y.metric),
			cmp.Compare(x.part, y.part),
		)
	})
	return out
}

// meter reads through all slices.
func (s *soak) meter() {
	m := newMeter()
	s.parts = m
	before := reading(s.trial, record.Before, 0)
	cpu, rss := s.having(probe.CPU.Name, probe.CgroupCPU.Name), s.having(probe.RSS.Name)
	seen := map[string]bool{} // of which the last reading had a value
	for i := range s.slices {
		var moved []string
		if i == s.first {
			if len(before) > 0 {
				_, moved = m.read(before)
				seen = present(before)
			}
			m.resetSums()
		}
		used, replaced := m.read(s.slices[i].Samples)
		now := present(s.slices[i].Samples)
		u := usageOf(used, cpu, rss)
		if slices.ContainsFunc(cpu, func(x string) bool { return !seen[x] || !now[x] }) {
			u.cpu, u.gc = math.NaN(), math.NaN()
		}
		simulated, _ := cpuOf(used[simulatedSubject])
		u.others = othersOf(used[hostSubject], u.cpu, s.slices[i].CPU+simulated)
		u.stolen = stolenOf(used[hostSubject])
		u.restarted = len(replaced)+len(moved) > 0
		s.used = append(s.used, u)
		seen = now
	}
}

func present(samples []metric.Sample) map[string]bool {
	out := map[string]bool{}
	for i := range samples {
		out[samples[i].Subject] = true
	}
	return out
}

// having lists the parts of the target of which some slice has one of the metrics.
func (s *soak) having(names ...string) []string {
	var out []string
	for i := range s.slices {
		for _, x := range s.slices[i].Samples {
			if slices.Contains(names, x.Metric) && partOfTarget(x.Subject) {
				addOnce(&out, x.Subject)
			}
		}
	}
	return out
}

func partOfTarget(subject string) bool {
	return subject != hostSubject && subject != generatorSubject && subject != simulatedSubject
}

// usageOf adds up over the parts of the target. Those with memory and CPU time are named, since a sum without one of
// them is none.
func usageOf(used map[string]map[probed]float64, cpu, rss []string) usage {
	nan := math.NaN()
	u := usage{cpu: nan, gc: nan, rss: nan, heap: nan}
	if v, ok := summedOver(used, cpu, cpuOf); ok {
		u.cpu = v
	}
	if v, ok := summedOver(
		used, rss, func(x map[probed]float64) (float64, bool) { v, ok := x[probed{metric: probe.RSS.Name}]; return v, ok },
	); ok {
		u.rss = v
	}
	for subject, values := range used {
		if !partOfTarget(subject) {
			continue
		}
		for k, v := range values {
			switch {
			case k.metric == probe.GCTime.Name:
				u.gc = plus(u.gc, v)
			case k.metric == probe.HeapUsed.Name:
				u.heap = plus(u.heap, v)
			case shown(k.metric):
				if u.other == nil {
					u.other = map[string]float64{}
				}
				u.other[k.name()] += v
			}
		}
	}
	return u
}

// cpuOf is the CPU time of a process tree, or else of its control group.
func cpuOf(x map[probed]float64) (float64, bool) {
	if v, ok := x[probed{metric: probe.CPU.Name}]; ok {
		return v, true
	}
	v, ok := x[probed{metric: probe.CgroupCPU.Name}]
	return v, ok
}

// summedOver adds up a value of all subjects; ok is false if there are none, or if one of them lacks it.
func summedOver(
	used map[string]map[probed]float64, of []string, value func(map[probed]float64) (float64, bool),
) (sum float64, ok bool) {
	for _, subject := range of {
		v, ok := value(used[subject])
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum, len(of) > 0
}

// plus adds to a sum that may not have begun.
func plus(sum, v float64) float64 {
	if math.IsNaN(sum) {
		return v
	}
	return sum + v
}

// shown are the further values whose course over the run is told.
func shown(name string) bool {
	switch name {
	case probe.Threads.Name, probe.FDs.Name, probe.Goroutines.Name, probe.Metaspace.Name, probe.SeriesValue.Name,
		probe.SeriesTotal.Name:
		return true
	}
	return false
}

// name is a value's name with its part, as in a report.
func (p probed) name() string {
	if p.part == "" {
		return p.metric
	}
	return p.metric + " " + p.part
}

// soakTarget reports what the parts of the target used over what was measured.
func (a *analysis) soakTarget(s *soak) {
	m, id := s.parts, s.trial.Treatment
	keys := m.keys()
	if len(keys) == 0 {
		a.targets(s.trial) // the slices have no readings
		return
	}
	before, after := reading(s.trial, record.Before, 0), reading(s.trial, record.After, 0)
	if len(before) == 0 && s.first > 0 {
		before = s.slices[s.first-1].Samples
	}
	for _, k := range keys {
		if k.subject == generatorSubject || accounts(k.metric) {
			continue
		}
		v := metric.Sample{Subject: k.subject, Metric: k.metric, Part: k.part, Value: m.sums[k.subject][k.probed]}
		if last, ok := find(after, k); ok && kinds[k.metric] == probe.Gauge {
			v.Value = last
		}
		use(a.target(id, k.subject), v, before)
	}
	for i := range a.rep.Target {
		x := &a.rep.Target[i]
		if x.Treatment != id {
			continue
		}
		x.Restarts = m.times[x.Name]
		if peak, ok := m.peaks[x.Name]; ok && x.RSS != nil {
			x.RSS.Peak = &peak
		}
	}
	if steal, ok := probe.Share(m.of(hostSubject), hostSubject, probe.Steal, probe.HostAll); ok {
		a.steal[id] = append(a.steal[id], steal)
	}
}

// accounts are of the host as a whole: they are read to see what its other work was, and are no cost of the target. A
// kernel that accounts by ticks misses much of what runs for less than one.
func accounts(name string) bool {
	return name == probe.HostCPU.Name || name == probe.HostAll.Name || name == probe.Load.Name
}

// of lists what was added up of a subject.
func (m *meter) of(subject string) []metric.Sample {
	var out []metric.Sample
	for k, v := range m.sums[subject] {
		out = append(out, metric.Sample{Subject: subject, Metric: k.metric, Part: k.part, Value: v})
	}
	return out
}

func find(samples []metric.Sample, k subjectProbed) (float64, bool) {
	i := slices.IndexFunc(samples, func(s metric.Sample) bool {
		return s.Subject == k.subject && s.Metric == k.metric && s.Part == k.part
	})
	if i < 0 {
		return 0, false
	}
	return samples[i].Value, true
}

// collector finds or makes the entry of one of a program's collectors.
func collector(x *report.Target, name string) *report.GC {
	if name == "" {
		name = "gc"
	}
	i := slices.IndexFunc(x.GC, func(g report.GC) bool { return g.Name == name })
	if i < 0 {
		x.GC = append(x.GC, report.GC{Name: name})
		i = len(x.GC) - 1
	}
	return &x.GC[i]
}
