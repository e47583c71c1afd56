package analyze

import (
	"math"
	"slices"
	"time"

	"tare/internal/capacity"
	"tare/internal/hist"
	"tare/internal/report"
	"tare/internal/stat"
)

// maxBins bounds a timeline: more than a page has pixels for would only make it larger.
const maxBins = 400

// binOf is the length of a bin: a round one, so that it can be read, and not so short that a slow load looks like a
// comb.
func binOf(total time.Duration) time.Duration {
	for scale := 100 * time.Millisecond; ; scale *= 10 {
		for _, bin := range []time.Duration{2 * scale, 5 * scale, 10 * scale} {
			if total <= maxBins*bin {
				return bin
			}
		}
	}
}

// timeline cuts a trace into bins of time; nil if there were no steps.
func timeline(treatment string, trace *capacity.Trace) *report.Timeline {
	if len(trace.Steps) == 0 {
		return nil
	}
	start, end := trace.Steps[0].Segment.Start, trace.Read
	for _, s := range trace.Steps {
		end = max(end, s.Segment.End)
	}
	bin := binOf(end - start)
	n := int((end-start)/bin) + 1
	t := &binned{
		start: start, bin: bin, read: trace.Read, good: make([]hist.Sorter, n),
		out: &report.Timeline{
			Treatment: treatment, Bin: bin.Seconds(), Offered: make([]float64, n), Sent: make([]float64, n),
			Good: make([]float64, n),
			Bad:  make([]float64, n), Outstanding: make([]float64, n), P50: make([]*float64, n), P99: make([]*float64, n),
		},
	}
	t.fill(trace)
	t.steps(trace)
	t.marks(trace)
	return t.out
}

// binned is a timeline in the making.
type binned struct {
	start, bin, read time.Duration
	good             []hist.Sorter // response times by bin
	out              *report.Timeline
}

// slot is the bin that holds an instant, −1 for one outside.
func (t *binned) slot(at time.Duration) int {
	if i := int((at - t.start) / t.bin); at >= t.start && i < len(t.good) {
		return i
	}
	return -1
}

func (t *binned) count(to []float64, at time.Duration, n float64) {
	if i := t.slot(at); i >= 0 {
		to[i] += n
	}
}

func (t *binned) fill(trace *capacity.Trace) {
	each := 1 / t.bin.Seconds()
	for c := range trace.Calls.Due(0, math.MaxInt64) {
		t.count(t.out.Offered, c.Intended, each)
		t.count(t.out.Outstanding, c.Intended, 1)
		if c.Sent != 0 {
			t.count(t.out.Sent, c.Sent, each)
		}
		if c.Outstanding(t.read) {
			continue
		}
		t.count(t.out.Outstanding, c.Done, -1)
		if !c.Outcome.Good() {
			t.count(t.out.Bad, c.Done, each)
			continue
		}
		t.count(t.out.Good, c.Done, each)
		if i := t.slot(c.Done); i >= 0 {
			t.good[i].Add(int64(c.Response()))
		}
	}
	open := 0.0
	for i := range t.good {
		open += t.out.Outstanding[i]
		t.out.Outstanding[i] = open
		if x := (durations{t.good[i].Sorted()}); x.Len() > 0 {
			t.out.P50[i], t.out.P99[i] = new(stat.SampleQuantile(.5, x)), new(stat.SampleQuantile(.99, x))
		}
	}
}

func (t *binned) since(at time.Duration) float64 { return (at - t.start).Seconds() }

func (t *binned) steps(trace *capacity.Trace) {
	for _, s := range trace.Steps {
		name := s.Name
		if name == "" {
			name = string(s.Role)
		}
		t.out.Steps = append(t.out.Steps, report.Stretch{
			From: t.since(s.Segment.Start), To: t.since(s.Segment.End), Name: name, Rate: s.Rate,
		})
	}
	recovery := func(s capacity.Step) bool { return s.Role == capacity.RoleRecovery }
	if r := trace.Recovery; r != nil && len(r.Probes) > 0 && !slices.ContainsFunc(trace.Steps, recovery) {
		t.out.Steps = append(t.out.Steps, report.Stretch{
			From: t.since(r.Start), To: t.since(r.Probes[len(r.Probes)-1].At), Name: string(capacity.RoleRecovery),
		})
	}
}

// marks are the instants at which the failure shows: the first call that did not end well, counted from when it was
// due, and the first answer after the load.
func (t *binned) marks(trace *capacity.Trace) {
	for c := range trace.Calls.Due(0, math.MaxInt64) {
		if !c.Outcome.Good() || c.Outstanding(t.read) {
			t.out.Marks = append(t.out.Marks, report.Mark{
				At: t.since(c.Intended), Text: "the first call that did not end well was due",
			})
			break
		}
	}
	if r := trace.Recovery; r != nil && r.Recovered {
		for _, p := range r.Probes {
			if p.Good {
				t.out.Marks = append(t.out.Marks, report.Mark{At: t.since(p.At), Text: "a fresh call was answered well again"})
				return
			}
		}
	}
}
