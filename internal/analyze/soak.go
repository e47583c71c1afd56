package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// A soak is what one long trial left behind: its slices, and what the target used in each of them.
type soak struct {
	trial   *record.Trial
	planned float64        // seconds that were to be measured
	rate    float64        // at which calls come due, of all operations, in 1/s; 0: they wait for one another
	slices  []record.Slice // in the order of time, warm-up first
	length  time.Duration  // of a window, usually
	first   int            // index of the first slice that is measured; len(slices): there is none
	origin  time.Duration  // when the load began, on the trial's stream
	used    []usage        // by slice
	out     []bool         // by slice: no call was answered well in it
	total   tallies
	hists   *timings
	parts   *meter
	delays  map[string]*ownDelay // the generator's own, by operation
	// disputed is by how many answers of one kind the target's own count differs at most from its callers'.
	disputed float64
	// disturbance says that other work on the host changed; nil: not looked yet.
	disturbance *string
}

// soaks answers how the target held over a long time.
func (a *analysis) soaks(budgets []budget.Budget) {
	a.asked = map[string]bool{}
	for i := range budgets {
		a.asked[budgets[i].Metric] = true
	}
	a.soaked = map[string]*soak{}
	for _, t := range a.trials() {
		s := newSoak(t)
		s.rate, s.planned = a.rec.Plan.Load.Rate, a.rec.Plan.Load.Duration
		a.timings(s)
		a.soaked[t.Treatment] = s
		a.soakTarget(s)
		a.soakAudit(s, budgets)
		ops, total := a.soakOperations(s)
		a.rep.Operations = append(a.rep.Operations, ops...)
		a.rep.Soak = append(a.rep.Soak, a.wholeSoak(s, total))
		for i := range ops {
			a.rep.Soak = append(a.rep.Soak, report.Soak{
				Treatment: t.Treatment, Operation: ops[i].Operation, Drift: s.drifts(ops[i].Operation),
			})
		}
		a.soakMetrics(s)
		a.soakedTrespasses(s)
		a.soakRemarks(s)
	}
}

// newSoak puts the slices of a trial in order. A damaged record may hold them twice, or without a length.
func newSoak(t *record.Trial) *soak {
	s := &soak{trial: t}
	for _, x := range t.Slices {
		if x.End > x.Start && x.Start >= 0 {
			s.slices = append(s.slices, x)
		}
	}
	slices.SortStableFunc(s.slices, func(x, y record.Slice) int { return cmp.Compare(x.Start, y.Start) })
	var end time.Duration
	s.slices = slices.DeleteFunc(s.slices, func(x record.Slice) bool {
		twice := x.Start < end
		end = max(end, x.End)
		return twice
	})
	if len(s.slices) > 0 {
		s.origin = s.slices[0].Start
	}
	for s.first < len(s.slices) && s.slices[s.first].WarmUp {
		s.first++
	}
	s.length = s.window()
	s.outages()
	s.meter()
	s.total = tallied(t, s.measured())
	return s
}

// measured are the slices after the warm-up.
func (s *soak) measured() []record.Slice { return s.slices[s.first:] }

// seconds is how long was measured.
func (s *soak) seconds() float64 { return s.lasted(s.measured()) }

func (s *soak) lasted(of []record.Slice) float64 {
	var d time.Duration
	for i := range of {
		d += of[i].End - of[i].Start
	}
	return d.Seconds()
}

// at is an instant in seconds since the load began.
func (s *soak) at(t time.Duration) float64 { return (t - s.origin).Seconds() }

// wholeSoak is the entry of all operations together.
func (a *analysis) wholeSoak(s *soak, total *report.Total) report.Soak {
	load := &a.rec.Plan.Load
	out := report.Soak{
		Treatment: s.trial.Treatment, Drift: s.drifts(""), Seconds: s.seconds(), WarmUpSeconds: s.lasted(s.slices[:s.first]),
		Planned:       load.Duration,
		WindowSeconds: s.length.Seconds(), Workers: load.Workers, Rate: load.Rate, Outages: s.listOutages(), Total: total,
		Moments: joined(s.moments(), mostMoments),
	}
	out.Behind, out.BehindWhy = s.behind()
	out.Stalls = s.stalls()
	for i, u := range s.used {
		if u.restarted {
			out.Restarts = append(out.Restarts, s.at(s.slices[i].End))
		}
	}
	return out
}

// window is the usual length of a slice.
func (s *soak) window() time.Duration {
	var all []time.Duration
	for i := range s.slices {
		all = append(all, s.slices[i].End-s.slices[i].Start)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2].Round(time.Millisecond)
}

// whole reports whether all that was planned was measured. On a busy host slices end late, so that the first may belong
// to the warm-up in part, and the last one ends when it can: up to two slices, and a tenth, may lack.
func (s *soak) whole() bool {
	const enough, least = 0.99, 0.9
	var longest time.Duration
	for i := range s.slices {
		longest = max(longest, s.slices[i].End-s.slices[i].Start)
	}
	return s.trial.Complete() && s.seconds() >= max(least*s.planned, min(enough*s.planned, s.planned-2*longest.Seconds()))
}

// soakRemarks says what a reader must know before the numbers.
func (a *analysis) soakRemarks(s *soak) {
	id := s.trial.Treatment
	if len(s.measured()) == 0 {
		a.flaws.open = append(a.flaws.open, of(id)+"nothing was measured")
		a.warn(id, "the run ended before its warm-up did: nothing was measured")
		return
	}
	if !s.whole() {
		a.warn(id, "%s of the %s that were planned were measured", span(s.seconds()), span(a.rec.Plan.Load.Duration))
	}
	a.neighbourhood(s)
	whole := &a.rep.Soak[slices.IndexFunc(
		a.rep.Soak, func(x report.Soak) bool { return x.Treatment == id && x.Operation == "" },
	)]
	if n := len(whole.Outages); n > 0 {
		lost := 0.0
		for _, o := range whole.Outages {
			lost += o.End - o.Start
		}
		a.warn(id, "no call was answered well for at least %s in all, in %s; the first began after %s", span(lost),
			unit.Count(n, "outage"), span(whole.Outages[0].Start))
	}
	if n := len(whole.Restarts); n > 0 {
		a.warn(id, "the target was started anew %s, first after %s: what a process used between its last reading and its "+
			"end is not counted",
			times(n), span(whole.Restarts[0]))
	}
	if d, ok := whole.Drift[probe.RSS.Name]; ok && d.Verdict == report.Regressed && d.Lo != nil && d.Hi != nil {
		a.warn(id, "resident memory grows by %s an hour (%s to %s), %.0f %% over what was measured: this looks like a leak",
			unit.Bytes(d.PerHour), unit.Bytes(*d.Lo), unit.Bytes(*d.Hi), 100*d.Total/d.Start)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// span writes a time in seconds as people do.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	out := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(out, zero) {
			out = out[:len(out)-2]
		}
	}
	return out
}

// quantityOf finds what a probe reads by its name.
func quantityOf(name string) (probe.Quantity, bool) {
	all := probe.Quantities()
	i := slices.IndexFunc(all, func(q probe.Quantity) bool { return q.Name == name })
	if i < 0 {
		return probe.Quantity{Metric: metric.Metric{}}, false
	}
	return all[i], true
}
