package analyze

import (
	"cmp"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// mostServed bounds the kinds of requests that are listed for a treatment.
const mostServed = 20

// A witness is what the target measured of its own work under one treatment, over all complete trials.
type witness struct {
	treatment string
	kinds     map[kind]*requests
	order     []kind
	parts     []*spent
}

// requests are those of one kind.
type requests struct {
	kind
	n            uint64
	dry          uint64 // of n, those that were to change nothing
	indicated    uint64 // of n, those that the service level indicator counts
	seconds, sli float64
	all, slis    buckets
	// windows are the quantiles of single trials, for formulas that go over windows of time.
	windows []window99
}

// window99 are the quantiles of one trial: of the service level indicator, and p99 of all the time that requests took.
type window99 struct{ p50, p90, p99, all between }

// spent is what went into one part of the target's work: "admission" "PodSecurity" "validate CREATE".
type spent struct {
	part, name, action string
	n                  uint64
	seconds            float64
}

// targetReadings reports what the target measured itself: its requests, the phases of calls, service levels, and where
// a request's time went.
func (a *analysis) targetReadings() {
	all := a.witnessesByTreatment()
	a.phases()
	names, actions := a.actions()
	for _, w := range all {
		a.rep.Served = append(a.rep.Served, w.rows(names, actions)...)
	}
	if a.question().Drive.Overloads {
		a.levelsAtRates(names, actions)
		return // its rates go beyond what the target can take: a mean over them means nothing
	}
	a.serviceLevels(all, names, actions)
	a.attributions(all, names, actions)
}

// witnessesByTreatment adds up what the complete trials of each treatment left behind, in the order of the treatments.
func (a *analysis) witnessesByTreatment() []*witness {
	var out []*witness
	restarted := 0
	for _, t := range a.trials() {
		if !t.Complete() {
			continue
		}
		for i := range t.Served {
			s := &t.Served[i]
			if s.Error != "" {
				a.warn(t.Treatment, "what the target measured itself could not be read: %s", s.Error)
				continue
			}
			if s.Restarted {
				restarted++
			}
			k := slices.IndexFunc(out, func(w *witness) bool { return w.treatment == t.Treatment })
			if k < 0 {
				k = len(out)
				out = append(out, &witness{treatment: t.Treatment, kinds: map[kind]*requests{}})
			}
			out[k].add(s)
		}
	}
	if restarted > 0 {
		a.warn("", "the target was started anew within %s: what it had measured itself before is lost", unit.Count(
			restarted, "trial",
		))
	}
	return out
}

// add takes in one trial.
func (w *witness) add(s *record.Served) {
	for i := range s.Requests {
		r := &s.Requests[i]
		if r.Count == 0 || !(r.Seconds >= 0) || !(r.SLISeconds >= 0) {
			continue // nothing was served, or the record is damaged
		}
		k := kind{r.Verb, r.Resource, r.Scope}
		x := w.kinds[k]
		if x == nil {
			x = &requests{kind: k}
			w.kinds[k] = x
			w.order = append(w.order, k)
		}
		x.add(r)
	}
	for _, p := range s.Parts {
		if p.Part == area.Undecided {
			continue // see analysis.undecided
		}
		i := slices.IndexFunc(
			w.parts, func(x *spent) bool { return x.part == p.Part && x.name == p.Name && x.action == p.Action },
		)
		if i < 0 {
			i = len(w.parts)
			w.parts = append(w.parts, &spent{part: p.Part, name: p.Name, action: p.Action})
		}
		w.parts[i].n += p.Count
		w.parts[i].seconds += max(0, p.Seconds)
	}
}

func (x *requests) add(r *area.ServedRequests) {
	all, slis := bucketsOf(r.Buckets, r.Count), buckets{}
	if len(r.SLIBuckets) > 0 {
		slis = bucketsOf(r.SLIBuckets, r.SLICount)
	}
	x.n, x.dry, x.indicated = x.n+r.Count, x.dry+min(r.DryRuns, r.Count), x.indicated+min(r.SLICount, r.Count)
	x.seconds, x.sli = x.seconds+r.Seconds, x.sli+r.SLISeconds
	x.all.merge(all)
	x.slis.merge(slis)
	x.windows = append(x.windows, window99{slis.quantile(.5), slis.quantile(.9), slis.quantile(.99), all.quantile(.99)})
}

// mean is the mean time of a request in seconds.
func (x *requests) mean() float64 { return x.seconds / float64(x.n) }

// rows are the kinds of requests that are listed: what is measured first, then the busiest.
func (w *witness) rows(names []string, actions map[string]action) []report.Served {
	list := w.sorted(names, actions)
	var out []report.Served
	for _, x := range list[:min(mostServed, len(list))] {
		at := func(q float64) *float64 { return finite(x.all.quantile(q).value) }
		out = append(out, report.Served{
			Treatment: w.treatment, Verb: x.verb, Resource: x.resource, Scope: x.scope, N: x.n, Mean: x.mean(),
			P50: at(.5), P90: at(.9), P99: at(.99), First: known(x.all.first()), Last: known(x.all.last()),
			Measured: w.measured(x, names, actions),
		})
	}
	return out
}

// sorted are all kinds of requests: what is measured first, in the order of the operations, then the busiest.
func (w *witness) sorted(names []string, actions map[string]action) []*requests {
	var out []*requests
	for _, k := range w.order {
		out = append(out, w.kinds[k])
	}
	slices.SortStableFunc(out, func(x, y *requests) int {
		return cmp.Or(
			cmp.Compare(w.rank(x, names, actions), w.rank(y, names, actions)), cmp.Compare(y.n, x.n),
			strings.Compare(x.String(), y.String()),
		)
	})
	return out
}

// of are the requests of a kind, or where the server calls their scope otherwise, the most frequent ones of its verb on
// its resource; nil if there are none.
func (w *witness) of(k kind) (out *requests) {
	if x := w.kinds[k]; x != nil {
		return x
	}
	for _, o := range w.order {
		if x := w.kinds[o]; o.verb == k.verb && o.resource == k.resource && (out == nil || x.n > out.n) {
			out = x
		}
	}
	return out
}

// measured reports whether some operation of the run consists of such requests.
func (w *witness) measured(x *requests, names []string, actions map[string]action) bool {
	return w.rank(x, names, actions) < len(names)
}

// rank is the place of the first operation that consists of such requests, or the number of operations.
func (w *witness) rank(x *requests, names []string, actions map[string]action) int {
	if i := slices.IndexFunc(names, func(name string) bool { return w.of(actions[name].kind) == x }); i >= 0 {
		return i
	}
	return len(names)
}
