package analyze

import (
	"math"

	"tare/internal/record"
	"tare/internal/report"
)

// mostMoments is how many points a report shows a soak in.
const mostMoments = 360

// Windows are all windows of the soak of a treatment, warm-up included, as they are written to the file beside the
// report; nil if there are none. An empty treatment is the first that has any.
func Windows(r *record.Record, treatment string) []report.Moment {
	for _, t := range newAnalysis(r).trials() {
		if len(t.Slices) > 0 && (treatment == "" || t.Treatment == treatment) {
			return newSoak(t).moments()
		}
	}
	return nil
}

// moments are the slices one by one.
func (s *soak) moments() []report.Moment {
	out := make([]report.Moment, 0, len(s.slices))
	for i := range s.slices {
		out = append(out, s.moment(i))
	}
	return out
}

func (s *soak) moment(i int) report.Moment {
	x, u := &s.slices[i], &s.used[i]
	long := (x.End - x.Start).Seconds()
	good, bad := goodIn(x)
	m := report.Moment{
		Start: s.at(x.Start), End: s.at(x.End), WarmUp: i < s.first, Good: float64(good) / long, Bad: float64(bad) / long,
		RSS: finite(u.rss), Heap: finite(u.heap), GC: finite(u.gc / long), Restarted: u.restarted, Other: u.other,
	}
	if good > 0 && !u.restarted {
		m.CPU = finite(u.cpu / float64(good))
	}
	for k := range x.Operations {
		o := &x.Operations[k]
		ended, failed := endedIn(x, o.Operation)
		m.Operations = append(m.Operations, report.MomentOperation{
			Operation: o.Operation, Calls: uint64(ended), Bad: uint64(failed), Mean: o.Mean, P50: known(o.P50),
			P99: known(o.P99), Max: o.Max,
		})
	}
	return m
}

// joined makes at most so many of moments: neighbours are joined, as many each, and never those of the warm-up with
// others.
func joined(all []report.Moment, most int) []report.Moment {
	warm := 0
	for warm < len(all) && all[warm].WarmUp {
		warm++
	}
	k := 1
	parts := func(n int) int { return (n + k - 1) / k }
	for parts(warm)+parts(len(all)-warm) > most {
		k++
	}
	var out []report.Moment
	for _, part := range [][]report.Moment{all[:warm], all[warm:]} {
		for len(part) > 0 {
			n := min(k, len(part))
			out = append(out, join(part[:n]))
			part = part[n:]
		}
	}
	return out
}

// join makes one moment of several. Levels are means of what is known; what was used is shared by the calls of all.
func join(of []report.Moment) report.Moment {
	if len(of) == 1 {
		return of[0]
	}
	out := report.Moment{Start: of[0].Start, End: of[len(of)-1].End, WarmUp: of[0].WarmUp}
	var good, bad, long, cpu, cpuGood float64
	var rss, heap, gc []float64
	other := map[string][]float64{}
	for i := range of {
		m := &of[i]
		d := m.End - m.Start
		good, bad, long = good+m.Good*d, bad+m.Bad*d, long+d
		if m.CPU != nil {
			cpu, cpuGood = cpu+*m.CPU*m.Good*d, cpuGood+m.Good*d
		}
		rss, heap, gc = appendKnown(rss, m.RSS), appendKnown(heap, m.Heap), appendKnown(gc, m.GC)
		for name, v := range m.Other {
			other[name] = append(other[name], v)
		}
		out.Restarted = out.Restarted || m.Restarted
		out.Operations = joinOperations(out.Operations, m.Operations)
	}
	out.Good, out.Bad, out.CPU = good/long, bad/long, finite(cpu/cpuGood)
	out.RSS, out.Heap, out.GC = meanOf(rss), meanOf(heap), meanOf(gc)
	for name, v := range other {
		if out.Other == nil {
			out.Other = map[string]float64{}
		}
		out.Other[name] = *meanOf(v)
	}
	for i := range out.Operations {
		o := &out.Operations[i]
		o.P50, o.P99 = meanQuantile(of, o.Operation, p50Of), meanQuantile(of, o.Operation, p99Of)
	}
	return out
}

// joinOperations adds the calls of a moment to those of others.
func joinOperations(to, of []report.MomentOperation) []report.MomentOperation {
next:
	for _, x := range of {
		for i := range to {
			o := &to[i]
			if o.Operation != x.Operation {
				continue
			}
			if n := float64(o.Calls + x.Calls); n > 0 {
				o.Mean = (o.Mean*float64(o.Calls) + x.Mean*float64(x.Calls)) / n
			}
			o.Calls, o.Bad, o.Max = o.Calls+x.Calls, o.Bad+x.Bad, max(o.Max, x.Max)
			continue next
		}
		to = append(to, x)
	}
	return to
}

func p50Of(o *report.MomentOperation) *float64 { return o.P50 }

func p99Of(o *report.MomentOperation) *float64 { return o.P99 }

// meanQuantile is the mean of an operation's quantiles over moments.
func meanQuantile(of []report.Moment, operation string, get func(*report.MomentOperation) *float64) *float64 {
	var v []float64
	for i := range of {
		for k := range of[i].Operations {
			if o := &of[i].Operations[k]; o.Operation == operation {
				v = appendKnown(v, get(o))
			}
		}
	}
	return meanOf(v)
}

func appendKnown(to []float64, v *float64) []float64 {
	if v == nil {
		return to
	}
	return append(to, *v)
}

func meanOf(v []float64) *float64 {
	sum := math.NaN()
	for _, x := range v {
		sum = plus(sum, x)
	}
	return finite(sum / float64(len(v)))
}
