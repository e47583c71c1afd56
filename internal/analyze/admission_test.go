package analyze

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/report"
)

// bounds are those of apiserver_request_sli_duration_seconds.
var bounds = []float64{.05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}

// observed is a server's histogram of n requests of which a share is slow.
func observed(n uint64, fast, slow, share float64) []area.ServedBucket {
	late := uint64(math.Round(float64(n) * share))
	var out []area.ServedBucket
	for _, le := range bounds {
		b := area.ServedBucket{LE: le}
		if fast <= le {
			b.Count += n - late
		}
		if slow <= le {
			b.Count += late
		}
		out = append(out, b)
	}
	return out
}

// A plane is what a control plane says of itself under one treatment: seconds of one request.
type plane struct {
	total, sli, plugins, store float64
	hooks                      []float64 // of webhooks that run side by side
	slow, share                float64   // so many requests take so long
	hidden                     float64   // of slow, what the indicator leaves out
	others                     uint64    // POSTs of other resources, for each of pods
	dry                        bool
}

// served is what it has counted of n requests.
func (p *plane) served(n uint64) area.Served {
	s := area.Served{Requests: []area.ServedRequests{{
		Verb: "POST", Resource: "pods", Scope: "resource", Count: n, Seconds: p.total * float64(n),
		Buckets: observed(n, p.total, p.slow, p.share),
	}}}
	r := &s.Requests[0]
	if p.dry {
		r.DryRuns = n
	} else {
		r.SLICount, r.SLISeconds, r.SLIBuckets = n, p.sli*float64(n), observed(n, p.sli, p.slow-p.hidden, p.share)
	}
	admitted := n + 1 // with the review
	if p.others > 0 {
		admitted += n * p.others
		s.Requests = append(s.Requests, area.ServedRequests{
			Verb: "POST", Resource: "events", Scope: "resource", Count: n * p.others, Seconds: .01, SLICount: n * p.others,
			SLISeconds: .01,
		})
	}
	s.Requests = append(s.Requests,
		area.ServedRequests{
			Verb: "LIST", Resource: "nodes", Scope: "cluster", Count: 7, Seconds: 28, SLICount: 7, SLISeconds: 28,
			Buckets: observed(7, 4, 4, 0), SLIBuckets: observed(7, 4, 4, 0),
		},
		area.ServedRequests{
			Verb: "POST", Resource: "tokenreviews", Scope: "resource", Count: 1, Seconds: 50, SLICount: 1, SLISeconds: 50,
			Buckets: observed(1, 50, 50, 0), SLIBuckets: observed(1, 50, 50, 0),
		})
	part := func(part, name, action string, n uint64, each float64) {
		s.Parts = append(s.Parts, area.ServedPart{
			Part: part, Name: name, Action: action, Count: n, Seconds: each * float64(n),
		})
	}
	part("admission", "ValidatingAdmissionPolicy", "validate CREATE", admitted, p.plugins*.75)
	part("admission", "ServiceAccount", "admit CREATE", admitted, p.plugins*.25)
	part("admission", "ServiceAccount", "admit UPDATE", 100, 5)
	part("admission", "ValidatingAdmissionWebhook", "validate CREATE", admitted, p.waited())
	for i, h := range p.hooks {
		part("webhook", "hook"+string(rune('a'+i)), "validating CREATE", n, h)
	}
	part("storage", "pods", "create", n, p.store)
	part("storage", "pods", "get", n, p.store/2)
	part("storage", "leases", "create", n, 9)
	return s
}

func (p *plane) waited() float64 { return slices.Max(append([]float64{0}, p.hooks...)) }

// admission is an experiment whose server measures itself.
func admission(operation string, planes map[string]*plane) experiment {
	x := experiment{
		blocks: 4, calls: 100, cost: millisecond, block: .01, seed: 9, operations: []string{operation}, area: "gatehouse",
	}
	x.cost = func(string, string, int) float64 { return 10e-3 }
	x.treatments = []design.Treatment{
		{ID: "policies=0", Baseline: true, Levels: map[string]string{"policies": "0"}},
		{ID: "policies=10", Levels: map[string]string{"policies": "10"}},
	}
	x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
		p := planes[trial.Treatment]
		if p == nil {
			p = planes["policies=0"]
		}
		must(t, w.Served(record.Served{Treatment: trial.Treatment, Block: trial.Block, Served: p.served(100)}))
	}
	return x
}

func attributionOf(t *testing.T, rep *report.Report, treatment string) *report.Attribution {
	t.Helper()
	i := slices.IndexFunc(rep.Attribution, func(x report.Attribution) bool { return x.Treatment == treatment })
	if i < 0 {
		t.Fatalf("no attribution of %s in %+v", treatment, rep.Attribution)
	}
	return &rep.Attribution[i]
}

// nearly reports whether a value that may be absent is want; NaN is absent.
func nearly(got *float64, want float64) bool {
	if got == nil || math.IsNaN(want) {
		return got == nil && math.IsNaN(want)
	}
	return math.Abs(*got-want) <= 1e-9+1e-6*math.Abs(want)
}

// TestAttribution: the parts are those that the server was made of, and add up to the client's mean.
func TestAttribution(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, c := range map[string]struct {
		operation                         string
		p                                 plane
		webhook, admission, storage, rest float64
		note                              string
	}{
		"webhooks": {"create-pod", plane{
			total: 6e-3, sli: 4e-3, plugins: 1e-3, store: 2e-3, hooks: []float64{2e-3},
		}, 2e-3, 1e-3, 2e-3, 1e-3, ""},
		"side by side": {"create-pod", plane{
			total: 6e-3, sli: 4e-3, plugins: 1e-3, store: 2e-3, hooks: []float64{2e-3, 2e-3},
		}, 2e-3, 1e-3, 2e-3, 1e-3, "side by side"},
		"none": {"create-pod", plane{
			total: 4e-3, sli: 4e-3, plugins: 1e-3, store: 2e-3,
		}, nan, 1e-3, 2e-3, 1e-3, ""},
		"queues": {"create-pod", plane{
			total: 6e-3, sli: 4e-3, plugins: 1e-3, store: 2e-3,
		}, nan, 1e-3, 2e-3, 3e-3, "queues"},
		"others create": {"create-pod", plane{
			total: 4e-3, sli: 4e-3, plugins: 1e-3, store: 2e-3, others: 1,
		}, nan, nan, 2e-3, 2e-3, "only 49.8% of all CREATE"},
		"dry run": {"create-pod-dry-run", plane{
			total: 6e-3, plugins: 1e-3, store: 2e-3, hooks: []float64{2e-3, 1e-3}, dry: true,
		}, 2e-3, 1e-3, 1e-3, 2e-3, "side by side"},
		"dry, others": {"create-pod-dry-run", plane{
			total: 6e-3, plugins: 1e-3, store: 2e-3, hooks: []float64{2e-3}, dry: true, others: 1,
		}, nan, nan, 1e-3, 5e-3, "not known"},
		"too much": {"create-pod", plane{
			total: 4e-3, sli: 4e-3, plugins: 3e-3, store: 2e-3,
		}, nan, 2e-3, 2e-3, 0, "more than the whole"},
		"another's": {"create-pod", plane{
			total: 4e-3, plugins: 1e-3, store: 2e-3, dry: true,
		}, nan, nan, nan, nan, "only 0% of the POST pods"},
		"server's clock": {"create-pod", plane{
			total: 90e-3, sli: 90e-3, plugins: 1e-3, store: 2e-3,
		}, nan, 1e-3, 2e-3, 87e-3, "more than the client"},
	} {
		p := c.p
		rep := analyzed(
			t,
			admission(
				c.operation, map[string]*plane{"policies=0": {total: 1e-3, sli: 1e-3}, "policies=10": &p},
			).write(t, t.TempDir()),
		)
		x := attributionOf(t, rep, "policies=10")
		if !nearly(x.Webhook, c.webhook) || !nearly(x.Admission, c.admission) || !nearly(x.Storage, c.storage) ||
			!nearly(x.Other, c.rest) {
			t.Errorf(
				"%s: webhook %s, admission %s, storage %s, other %s (%s)", name, shownOf(x.Webhook), shownOf(x.Admission),
				shownOf(x.Storage), shownOf(x.Other), x.Note,
			)
		}
		if (c.note == "") != (x.Note == "") || !strings.Contains(x.Note, c.note) {
			t.Errorf("%s: note %q, want %q", name, x.Note, c.note)
		}
		if x.Client == nil {
			continue
		}
		sum := *x.Client
		for _, v := range []*float64{x.Webhook, x.Admission, x.Storage, x.Other} {
			if v != nil {
				if *v < 0 {
					t.Errorf("%s: a part is negative: %v", name, *v)
				}
				sum += *v
			}
		}
		if want := max(*x.Total, *x.Server); math.Abs(sum/want-1) > 1e-9 || *x.Total < 10e-3 {
			t.Errorf("%s: the parts are %v of %v", name, sum, want)
		}
	}
}

func shownOf(v *float64) string {
	if v == nil {
		return "absent"
	}
	return time.Duration(*v * 1e9).String()
}

func levelOf(t *testing.T, rep *report.Report, treatment, title string, f report.Formula) *report.SLO {
	t.Helper()
	i := slices.IndexFunc(
		rep.SLO, func(s report.SLO) bool { return s.Treatment == treatment && s.Title() == title && s.Formula == f },
	)
	if i < 0 {
		t.Fatalf("no %s %s %s in %+v", treatment, title, f, rep.SLO)
	}
	return &rep.SLO[i]
}

// TestServiceLevels: what webhooks take is seen by kube-burner and the client only, and the report says loudly that
// they disagree.
func TestServiceLevels(t *testing.T) {
	t.Parallel()
	hidden := plane{total: 20e-3, sli: 10e-3, slow: 3, hidden: 2.99, share: .02, hooks: []float64{10e-3}}
	x := admission("create-pod", map[string]*plane{"policies=0": {total: 20e-3, sli: 20e-3}, "policies=10": &hidden})
	rep := analyzed(t, x.write(t, t.TempDir()))
	for _, c := range []struct {
		treatment, title string
		f                report.Formula
		want             report.Verdict
		value, limit     float64
		n                uint64
		note             string
	}{
		{"policies=0", "POST pods", report.Official, report.Pass, .0495, 1, 400, "one window"},
		{"policies=0", "POST pods", report.ClusterLoader2, report.Pass, .0495, 1, 400, "4 trials"},
		{"policies=0", "POST pods", report.KubeBurner, report.Pass, .0495, 1, 400, "with webhooks"},
		{"policies=10", "POST pods", report.Official, report.Pass, .0495, 1, 400, "one window"},
		{"policies=10", "POST pods", report.ClusterLoader2, report.Pass, .0495, 1, 400, ""},
		{"policies=10", "POST pods", report.KubeBurner, report.Fail, 2.5, 1, 400, ""},
		{
			"policies=10", "1 other kind", report.Official, report.Pass, 3.99, 30, 28,
			"the slowest is LIST nodes (cluster): of 28, p99 is the maximum",
		},
		{"policies=10", "1 other kind", report.KubeBurner, report.Pass, 3.99, 30, 28, ""},
	} {
		s := levelOf(t, rep, c.treatment, c.title, c.f)
		if s.Verdict != c.want || !nearly(s.Value, c.value) || s.Limit != c.limit || s.N != c.n ||
			!strings.Contains(s.Basis+s.Note, c.note) {
			t.Errorf("%s %s %s: %+v, value %s", c.treatment, c.title, c.f, s, shownOf(s.Value))
		}
	}
	client := levelOf(t, rep, "policies=10", "POST pods", report.ClientClock)
	if client.Verdict != report.Inconclusive || client.Operation != "create-pod" || client.Lo != nil ||
		!strings.Contains(client.Note, "without an interval") || *client.Value < 10e-3 || *client.Value > 40e-3 {
		t.Errorf("client %+v", client)
	}
	said := strings.Join(rep.Warnings, "\n")
	if n := strings.Count(said, "DISAGREE"); n != 1 ||
		!strings.Contains(
			said,
			"policies=10: the service level verdicts on POST pods DISAGREE: official and clusterloader2 pass it, "+
				"kube-burner fail it",
		) {
		t.Errorf("%d disagreements: %s", n, said)
	}
	if slices.ContainsFunc(rep.SLO, func(s report.SLO) bool { return strings.Contains(s.Subject, "tokenreviews") }) {
		t.Error("requests that nothing is stored of are judged")
	}
}

// TestLevelOfCallsThatFailed: by tare's own clock an objective is kept only if it would be so, too, if the calls that
// failed were never answered.
func TestLevelOfCallsThatFailed(t *testing.T) {
	t.Parallel()
	for every, want := range map[int]report.Verdict{200: report.Pass, 30: report.Inconclusive} {
		x := admission("create-pod", map[string]*plane{"policies=0": {total: 20e-3, sli: 20e-3}})
		x.blocks, x.calls = 20, 600
		x.fail = func(treatment string, _, call int) bool { return treatment == "policies=10" && call%every == 0 }
		rep := analyzed(t, x.write(t, t.TempDir()))
		s := levelOf(t, rep, "policies=10", "POST pods", report.ClientClock)
		open := strings.Contains(s.Note, "not answered in any time")
		if s.Verdict != want || s.Lo == nil || open != (want == report.Inconclusive) {
			t.Errorf("one of %d calls fails: %+v", every, s)
		}
	}
}

// TestServiceLevelEdges: the limits of scopes, what lies beyond the last bucket, coarse buckets, and what was not
// measured.
func TestServiceLevelEdges(t *testing.T) {
	t.Parallel()
	w := &witness{treatment: "x", kinds: map[kind]*requests{}}
	add := func(verb, resource, scope string, trials ...[]area.ServedBucket) *requests {
		for _, b := range trials {
			n := b[len(b)-1].Count
			if b[0].LE < 0 {
				n, b = b[0].Count, b[1:]
			}
			w.add(&record.Served{Served: area.Served{Requests: []area.ServedRequests{{
				Verb: verb, Resource: resource, Scope: scope, Count: n, Seconds: 1, Buckets: b, SLICount: n, SLISeconds: 1,
				SLIBuckets: b,
			}}}})
		}
		return w.kinds[kind{verb, resource, scope}]
	}
	beyond := append([]area.ServedBucket{{LE: -1, Count: 100}}, ladder(1, 50, 60, 98)...)
	for _, c := range []struct {
		x                                 *requests
		official, cluster, burner         report.Verdict // "": no such row
		officialLimit, clusterL, burnerLm float64
		note                              string
	}{
		{
			add("POST", "slow", "resource", ladder(.5, 50, .8, 98, 1.25, 100)), report.Fail, report.Fail, report.Fail, 1, 1, 1,
			"either side of the limit",
		},
		{
			add("PUT", "edge", "resource", ladder(.5, 50, 1, 100)), report.Pass, report.Pass, report.Pass, 1, 1, 1, "one window",
		},
		{
			add("PATCH", "beyond", "resource", beyond), report.Fail, report.Fail, report.Fail, 1, 1, 1,
			"beyond the last bucket, of 60 s",
		},
		{
			add("LIST", "many", "namespace", ladder(5, 50, 20, 100)), report.Pass, report.Pass, report.Fail, 30, 30, 5,
			"one window",
		},
		{
			add("GET", "one", "resource", ladder(.5, 50, 1.5, 100)), report.Fail, report.Fail, report.Fail, 1, 1, 1,
			"one window",
		},
		{add("LIST", "all", "cluster", beyond), report.Fail, report.Fail, report.Fail, 30, 30, 30, "60 s"},
		{add("DELETECOLLECTION", "many", "namespace", ladder(5, 100)), "", report.Pass, "", 0, 30, 0, ""},
		{add("APPLY", "applied", "resource", ladder(.5, 100)), report.Pass, report.Pass, "", 1, 1, 0, ""},
		// The middle trial alone is slow: over time that is the worst, on average it is not, and all together it is lost.
		{
			add(
				"POST", "uneven", "resource", ladder(.4, 1000), append(ladder(.4, 0), ladder(2, 5)...), ladder(.4, 1000),
				ladder(.4, 1000),
			),
			report.Pass, report.Fail, report.Pass, 1, 1, 1, "",
		},
	} {
		rows := w.levels(c.x)
		for _, f := range []struct {
			f     report.Formula
			want  report.Verdict
			limit float64
		}{
			{report.Official, c.official, c.officialLimit},
			{report.ClusterLoader2, c.cluster, c.clusterL},
			{report.KubeBurner, c.burner, c.burnerLm},
		} {
			i := slices.IndexFunc(rows, func(s report.SLO) bool { return s.Formula == f.f })
			switch {
			case (i < 0) != (f.want == ""):
				t.Errorf("%s by %s: %+v", c.x, f.f, rows)
			case i >= 0 && (rows[i].Verdict != f.want || rows[i].Limit != f.limit):
				t.Errorf(
					"%s by %s: %s of %s, limit %v (%s); want %s of %v", c.x, f.f, rows[i].Verdict, shownOf(rows[i].Value),
					rows[i].Limit, rows[i].Note, f.want, f.limit,
				)
			case i >= 0 && f.f == report.Official && !strings.Contains(rows[i].Basis+rows[i].Note, c.note):
				t.Errorf("%s by %s: %q, want %q", c.x, f.f, rows[i].Note, c.note)
			}
		}
	}
	dry := &requests{kind: kind{"POST", "dry", "resource"}, n: 10}
	if row, _ := w.official(dry); row.Verdict != report.NotMeasured || row.Value != nil ||
		!strings.Contains(row.Note, "dry runs") {
		t.Errorf("without an indicator: %+v", row)
	}
}

// TestOverTime: Prometheus' quantile of a few values lies between the largest two.
func TestOverTime(t *testing.T) {
	t.Parallel()
	if v := overTime([]float64{3, 1, 2}); math.Abs(v-2.98) > 1e-12 {
		t.Error(v)
	}
	if v := overTime([]float64{7}); v != 7 {
		t.Error(v)
	}
	if v := overTime([]float64{1, math.Inf(1)}); !math.IsInf(v, 1) {
		t.Error(v)
	}
	if v := overTime(nil); !math.IsNaN(v) {
		t.Error(v)
	}
}

// TestServedRows: what is measured comes first, then the busiest, at most 20; trials that were dropped do not count.
func TestServedRows(t *testing.T) {
	t.Parallel()
	x := admission("create-pod", nil)
	x.drop = func(_ string, block int) bool { return block == 2 }
	x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
		s := (&plane{total: 20e-3, sli: 20e-3}).served(10)
		for i := range 30 {
			s.Requests = append(s.Requests, area.ServedRequests{
				Verb: "GET", Resource: "r" + string(rune('a'+i)), Scope: "resource", Count: uint64(1000 + i), Seconds: 1,
			})
		}
		must(
			t,
			w.Served(
				record.Served{
					Treatment: trial.Treatment, Block: trial.Block, Served: s,
					Restarted: trial.Block == 1 && trial.Treatment == "policies=10",
				},
			),
		)
		must(t, w.Served(record.Served{Treatment: trial.Treatment, Block: trial.Block, Error: "unreachable"}))
	}
	rep := analyzed(t, x.write(t, t.TempDir()))
	var rows []report.Served
	for _, s := range rep.Served {
		if s.Treatment == "policies=10" {
			rows = append(rows, s)
		}
	}
	if len(rows) != mostServed {
		t.Fatalf("%d rows", len(rows))
	}
	first := rows[0]
	if first.Verb != "POST" || first.Resource != "pods" || !first.Measured || first.N != 30 ||
		!nearly(&first.Mean, 20e-3) || !nearly(first.P50, .025) || !nearly(first.Last, 60) {
		t.Errorf("%+v", first)
	}
	for i, s := range rows[1:] {
		if s.Measured || s.N != uint64(3*(1029-i)) || s.P50 != nil || s.Last != nil {
			t.Errorf("row %d: %+v", i+1, s)
		}
	}
	said := strings.Join(rep.Warnings, "\n")
	if !strings.Contains(said, "could not be read: unreachable") ||
		!strings.Contains(said, "started anew within 1 trial") {
		t.Errorf("warnings %q", said)
	}
}
