package analyze

import (
	"math"
	"slices"
	"strings"

	"tare/internal/report"
	"tare/internal/unit"
)

// The limits of Kubernetes' service level objectives, in seconds. Calls: 99 % of mutating ones of a single object, and
// of reads of one, within 1 s; of reads of a namespace or of all within 30 s. Pods: 99 % start within 5 s. Source:
// https://github.com/kubernetes/community/blob/master/sig-scalability/slos/slos.md.
const (
	singleLimit  = 1.0
	manyLimit    = 30.0
	startupLimit = 5.0
)

// The names of the objectives.
const (
	sloMutating = "mutating"
	sloRead     = "read"
	sloStartup  = "pod-startup"
)

// p99 is the quantile that all objectives speak of.
const p99 = .99

// serviceLevels judges the objectives for every treatment by every formula, and says where they disagree.
func (a *analysis) serviceLevels(all []*witness, names []string, actions map[string]action) {
	for i := range a.rep.Treatments {
		id := a.rep.Treatments[i].ID
		from := len(a.rep.SLO)
		k := slices.IndexFunc(all, func(w *witness) bool { return w.treatment == id })
		if k >= 0 {
			a.rep.SLO = append(a.rep.SLO, a.callLevels(all[k], names, actions)...)
		}
		a.rep.SLO = append(a.rep.SLO, a.startupLevels(id)...)
		a.disagreements(a.rep.SLO[from:])
	}
}

// callLevels judges API calls: those that are measured one by one, then those that break a limit, then all others
// together.
func (a *analysis) callLevels(w *witness, names []string, actions map[string]action) []report.SLO {
	var out []report.SLO
	var rest [][]report.SLO
	for _, x := range w.sorted(names, actions) {
		if !x.judged() {
			continue
		}
		rows := w.levels(x)
		for i := range rows {
			rows[i].Treatment = w.treatment
		}
		measured := w.measured(x, names, actions)
		for _, name := range names {
			if w.of(actions[name].kind) == x {
				if row, ok := a.clientLevel(w.treatment, name, actions[name], x); ok {
					rows = append(rows, row)
				}
			}
		}
		broken := slices.ContainsFunc(rows, func(r report.SLO) bool { return r.Verdict == report.Fail })
		if measured || (broken && len(out) < mostServed*len(rows)) {
			out = append(out, rows...)
			continue
		}
		rest = append(rest, rows)
	}
	for _, name := range []string{sloMutating, sloRead} {
		for _, f := range report.Formulas() {
			if row, ok := worstOfKinds(rest, name, f); ok {
				out = append(out, row)
			}
		}
	}
	return out
}

// judged reports whether the objectives speak of such requests: not of streams, nor of what is not stored. The same
// subresources are left out by all three.
func (k kind) judged() bool {
	resource, sub, _ := strings.Cut(k.resource, "/")
	switch {
	case !k.mutating() && k.verb != "GET" && k.verb != "LIST":
		return false
	case strings.HasSuffix(resource, "reviews"), resource == "":
		return false
	}
	return !slices.Contains([]string{"log", "exec", "portforward", "attach", "proxy"}, sub)
}

func (k kind) objective() string {
	if k.mutating() {
		return sloMutating
	}
	return sloRead
}

// levels are the verdicts of the published formulas on one kind of requests.
func (w *witness) levels(x *requests) []report.SLO {
	var out []report.SLO
	for _, f := range []func(*requests) (report.SLO, bool){w.official, w.clusterLoader, w.kubeBurner} {
		if row, ok := f(x); ok {
			row.Name, row.Subject = x.objective(), x.String()
			out = append(out, row)
		}
	}
	return out
}

// worstOfKinds sums up the rows of one formula and objective over kinds of requests: the one that is nearest its limit,
// or furthest beyond it, is told.
func worstOfKinds(rest [][]report.SLO, name string, f report.Formula) (worst report.SLO, ok bool) {
	kinds, n, most := 0, uint64(0), math.Inf(-1)
	for _, r := range slices.Concat(rest...) {
		if r.Name != name || r.Formula != f || r.Verdict == report.NotMeasured {
			continue
		}
		kinds, n = kinds+1, n+r.N
		if s := share(&r); s > most {
			worst, most = r, s
		}
	}
	worst.Note = "the slowest is " + worst.Subject + because(worst.Note)
	worst.Subject, worst.N = unit.Count(kinds, "other kind"), n
	return worst, kinds > 0
}

// share is a value as a part of its limit; of one beyond the last bucket, the least that it can be.
func share(r *report.SLO) float64 {
	switch {
	case r.Value != nil:
		return *r.Value / r.Limit
	case r.Lo != nil:
		return *r.Lo / r.Limit
	}
	return 0
}

// disagreements warns where formulas come to different verdicts on one objective, and says which clock saw what.
func (a *analysis) disagreements(rows []report.SLO) {
	var titles []string
	verdicts := map[string]map[report.Verdict][]string{}
	for i := range rows {
		r := &rows[i]
		title := r.Title()
		if addOnce(&titles, title); verdicts[title] == nil {
			verdicts[title] = map[report.Verdict][]string{}
		}
		list := verdicts[title][r.Verdict]
		addOnce(&list, string(r.Formula))
		verdicts[title][r.Verdict] = list
	}
	for _, title := range titles {
		pass, fail := verdicts[title][report.Pass], verdicts[title][report.Fail]
		if len(pass) > 0 && len(fail) > 0 {
			a.warn(rows[0].Treatment, "the service level verdicts on %s DISAGREE: %s pass it, %s fail it. "+
				"%s", title, strings.Join(pass, " and "),
				strings.Join(fail, " and "), clocks(title))
		}
	}
}

// clocks says what the formulas' clocks see and miss.
func clocks(title string) string {
	if title == sloStartup {
		return "creationTimestamp is set when mutating admission is over, in whole seconds, and the first watch event " +
			"comes after all of admission: " +
			"official, clusterloader2 and kube-burner all miss it, wholly or in part. Only the client's clock holds the whole " +
			"request"
	}
	return "official and clusterloader2 leave out the time of webhooks and of queues before the server, kube-burner " +
		"counts it; the client's clock also " +
		"holds what lies outside of the server, and does not depend on buckets"
}
