package analyze

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
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
		rep := measured(t, admission(
			c.operation, map[string]*plane{"policies=0": {total: 1e-3, sli: 1e-3}, "policies=10": &p},
		))
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
	rep := measured(t, x)
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
		rep := measured(t, x)
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
	rep := measured(t, x)
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

// policyGrowth is a scale over policies whose calls cost CPU time in two parts of the target, beside simulated nodes
// that cost ten times as much.
func policyGrowth(operations ...string) experiment {
	x := growing([]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, func(n float64) float64 { return 2e-3 + .33e-3*n })
	x.blocks, x.calls, x.operations, x.area = 10, 60, operations, "gatehouse"
	x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
		nodes := metric.Sample{Subject: "simulated-nodes", Metric: "cpu", Value: 3}
		before := []metric.Sample{nodes}
		nodes.Value = 5
		around(t, w, trial, before, []metric.Sample{nodes})
	}
	return x
}

func policiesOf(treatment string) float64 {
	n, err := strconv.ParseFloat(strings.TrimPrefix(treatment, "policies="), 64)
	if err != nil {
		return 1 // the A/A arm
	}
	return n
}

// TestPolicyGrowth: the law of CPU time per call is found, with the size at which a budget of the only operation
// breaks; what simulated nodes use is shown and is no part of it.
func TestPolicyGrowth(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create-pod", "create-pod-dry-run"} {
		x := policyGrowth(op)
		x.budget = []string{"create-pod.cpu <= 10ms"} // also of a dry run: so its file calls it
		rep := measured(t, x)
		i := slices.IndexFunc(rep.Growth, func(g report.Growth) bool { return g.Metric == "cpu" })
		if i < 0 {
			t.Fatalf("%s: no growth of CPU time in %+v", op, rep.Growth)
		}
		g := rep.Growth[i]
		if g.Law != "linear" || g.Operation != op || math.Abs(g.Coefficients.C1/.33e-3-1) > .1 || g.Budget != x.budget[0] {
			t.Errorf("%s: %+v", op, g)
		}
		if b := g.BreaksBudgetAt; b == nil || math.Abs(b.Value/24.2-1) > .2 || b.Lo == nil || *b.Lo > 24.3 || *b.Hi < 24.1 {
			t.Errorf("%s breaks at %+v", op, b)
		}
		verdicts := map[report.Verdict]int{}
		for _, b := range rep.Budgets {
			verdicts[b.Verdict]++
		}
		if verdicts[report.Pass] != 5 || verdicts[report.Fail] != 5 { // 20 policies cost 8.6 ms, 50 cost 18.5 ms
			t.Errorf("%s: %v", op, verdicts)
		}
		checkParts(t, rep)
	}
}

// TestMemoryGrows: without a budget that names it, too, the memory of the target is fitted like its CPU time, and so is
// that of each of its parts, if there are several.
func TestMemoryGrows(t *testing.T) {
	t.Parallel()
	growths := func(slopes map[string]float64) map[string]report.Growth {
		x := policyGrowth("create-pod")
		x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
			var samples []metric.Sample
			for part, slope := range slopes {
				rss := 100*mib + slope*mib*policiesOf(trial.Treatment)*(1+.01*float64(trial.Block%3))
				samples = append(samples, metric.Sample{Subject: part, Metric: probe.RSS.Name, Value: rss})
			}
			around(t, w, trial, samples, samples)
		}
		rep := measured(t, x)
		out := map[string]report.Growth{}
		for _, g := range rep.Growth {
			if g.Metric == probe.RSS.Name {
				out[g.Part] = g
			}
		}
		for _, m := range rep.Treatments[1].Metrics {
			if strings.Contains(m.Name, " of ") {
				t.Errorf("the metric %s of a treatment is of a part", m.Name)
			}
		}
		return out
	}
	check := func(g report.Growth, slope float64) {
		t.Helper()
		if g.Law != "linear" || math.Abs(g.Coefficients.C1/(slope*1.01*mib)-1) > .05 {
			t.Errorf("%+v, want %v MiB each", g, slope)
		}
	}
	one := growths(map[string]float64{"plane": .4})
	if len(one) != 1 {
		t.Errorf("a target of one part: %+v", one)
	}
	check(one[""], .4)
	two := growths(map[string]float64{"plane": .4, "etcd": .1, "host": 3})
	if len(two) != 3 {
		t.Errorf("a target of two parts, and the host: %+v", two)
	}
	check(two[""], .5)
	check(two["plane"], .4)
	check(two["etcd"], .1)
}

// checkParts compares CPU time per call with the sum over the parts of the target.
func checkParts(t *testing.T, rep *report.Report) {
	t.Helper()
	for _, arm := range rep.Treatments {
		i := slices.IndexFunc(arm.Metrics, func(m report.Metric) bool { return m.Name == "cpu" })
		sum := 0.0
		for _, x := range rep.Target {
			switch {
			case x.Treatment != arm.ID:
			case x.Name == "simulated-nodes":
				if x.CPUPerOp != nil || x.CPUSeconds == nil || math.Abs(*x.CPUSeconds-20) > 1e-6 {
					t.Errorf("%s: %+v", arm.ID, x)
				}
			case x.CPUPerOp != nil:
				sum += *x.CPUPerOp
			}
		}
		if m := arm.Metrics[i]; math.Abs(sum/m.Value-1) > .05 { // a mean over blocks against their median
			t.Errorf("%s: the parts use %v a call, together %v", arm.ID, sum, m.Value)
		}
	}
}

// TestOperationBudgets: CPU time is of the whole mix. A budget on one of several operations is not measured, and says
// why.
func TestOperationBudgets(t *testing.T) {
	t.Parallel()
	x := policyGrowth("create-pod", "get-pod")
	x.budget = []string{"create-pod.cpu <= 10ms", "cpu <= 10ms", "delete-pod.cpu <= 10ms"}
	rep := measured(t, x)
	for _, b := range rep.Budgets {
		var want string
		switch b.Text {
		case "cpu <= 10ms":
			if b.Verdict != report.Pass && b.Verdict != report.Fail {
				t.Errorf("%+v", b)
			}
			continue
		case "create-pod.cpu <= 10ms":
			want = "cannot be told apart by operation"
		case "delete-pod.cpu <= 10ms":
			want = "there is no operation"
		}
		if b.Verdict != report.NotMeasured || !strings.Contains(b.Reason, want) {
			t.Errorf("%s: %s (%s)", b.Text, b.Verdict, b.Reason)
		}
	}
	if i := slices.IndexFunc(
		rep.Growth, func(g report.Growth) bool { return g.Metric == "cpu" && g.Operation == "" && g.Law == "linear" },
	); i < 0 {
		t.Errorf("growth %s", fmt.Sprint(rep.Growth))
	}
}

func ladder(le ...float64) []area.ServedBucket {
	var out []area.ServedBucket
	for i := 0; i+1 < len(le); i += 2 {
		out = append(out, area.ServedBucket{LE: le[i], Count: uint64(le[i+1])})
	}
	return out
}

// TestBucketQuantiles: the values are what Prometheus' histogram_quantile gives for the same buckets, except beyond the
// last one.
func TestBucketQuantiles(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	same := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) < 1e-12 }
	for _, c := range []struct {
		in    []area.ServedBucket
		total uint64
		q     float64
		want  between
	}{
		{ladder(.1, 50, .2, 90, .4, 100), 100, .5, between{.1, 0, .1}},
		{ladder(.1, 50, .2, 90, .4, 100), 100, .25, between{.05, 0, .1}},
		{ladder(.1, 50, .2, 90, .4, 100), 100, .9, between{.2, .1, .2}},
		{ladder(.1, 50, .2, 90, .4, 100), 100, .99, between{.38, .2, .4}},
		{ladder(.1, 50, .2, 90), 100, .99, between{nan, .2, inf}},
		{ladder(.1, 50, .2, 90), 100, .9, between{.2, .1, .2}},
		{ladder(.1, 0, .2, 0, .4, 8), 8, .5, between{.3, .2, .4}}, // empty buckets below
		{ladder(.2, 8, .1, 4), 8, .25, between{.05, 0, .1}},       // out of order
		// twice, and falling: what was counted stays counted
		{ladder(.1, 4, .1, 6, .2, 5), 8, .5, between{.1 * 4 / 6, 0, .1}},
		{nil, 10, .5, between{nan, nan, nan}},
		{ladder(.1, 0), 0, .5, between{nan, nan, nan}},
	} {
		b := bucketsOf(c.in, c.total)
		if got := b.quantile(c.q); !same(got.value, c.want.value) || !same(got.lo, c.want.lo) || !same(got.hi, c.want.hi) {
			t.Errorf("%v of %d at %v: %+v, want %+v", c.in, c.total, c.q, got, c.want)
		}
	}
}

// TestBucketsBoundTheTruth: the quantile of any values lies within the bounds that their buckets give, and merging is
// counting together.
func TestBucketsBoundTheTruth(t *testing.T) {
	t.Parallel()
	bounds := []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}
	rng := rand.New(rand.NewPCG(1, 2))
	count := func(values []float64) buckets {
		var in []area.ServedBucket
		for _, le := range bounds {
			n := uint64(0)
			for _, v := range values {
				if v <= le {
					n++
				}
			}
			in = append(in, area.ServedBucket{LE: le, Count: n})
		}
		return bucketsOf(in, uint64(len(values)))
	}
	draw := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = math.Exp(rng.NormFloat64()*2 - 2)
		}
		return out
	}
	for range 200 {
		x, y := draw(1+rng.IntN(300)), draw(1+rng.IntN(300))
		sum := count(x)
		sum.merge(count(y))
		all := slices.Sorted(slices.Values(slices.Concat(x, y)))
		for _, q := range []float64{.5, .9, .99} {
			truth := all[int(math.Ceil(q*float64(len(all))-1e-9))-1]
			if b := sum.quantile(q); truth < b.lo || truth > b.hi || b.value < b.lo || b.value > b.hi {
				t.Fatalf("p%v is %v, the buckets say %+v", q*100, truth, b)
			}
		}
		if whole := count(all); !slices.Equal(whole.count, sum.count) || whole.total != sum.total {
			t.Fatalf("merged %v, counted %v", sum, whole)
		}
	}
}

// TestMergeOfOtherBounds: what one of two histograms did not count is given up, and the total stays.
func TestMergeOfOtherBounds(t *testing.T) {
	t.Parallel()
	var b buckets
	b.merge(bucketsOf(ladder(.1, 5, .2, 8, .4, 10), 10))
	b.merge(bucketsOf(ladder(.1, 1, .3, 8, .4, 9), 10))
	b.merge(buckets{})
	if !slices.Equal(b.le, []float64{.1, .4}) || !slices.Equal(b.count, []uint64{6, 19}) || b.total != 20 {
		t.Errorf("%+v", b)
	}
}

// A tried is one rate of a made search: how long its calls take, and how many of a hundred of them take so long
// instead.
type tried struct {
	role       capacity.Role
	rate       float64
	held       bool
	took, late time.Duration
	share      int
	bad        bool // those that are late fail as well
	open       bool // those that are late have not ended
	lasts      time.Duration
}

// made is the trace of a search that tried these, twenty seconds each where nothing else is said.
func made(all ...tried) capacity.Trace {
	tr := capacity.Trace{
		Timeout: 30 * time.Second, MaxRate: 2000, MaxConns: 4096, Stop: capacity.StopFound, Reason: "found and confirmed",
	}
	now := time.Duration(0)
	for _, x := range all {
		s := capacity.Step{Role: x.role, Rate: x.rate, Attempt: 1}
		if x.role == capacity.RoleConfirmHigh || x.role == capacity.RoleConfirmLow {
			s.Passed = &x.held
		}
		lasts := cmp.Or(x.lasts, 20*time.Second)
		n := int(x.rate * lasts.Seconds())
		for i := range n {
			c := load.Call{Conn: 1, Intended: now + time.Duration(float64(i)/x.rate*1e9), Outcome: load.OK, Status: 201}
			c.Ready, c.Sent = c.Intended+1, c.Intended+2
			took := x.took
			if i%100 < x.share {
				took = x.late
				if x.bad {
					c.Outcome, c.Status = load.Refused, 429
				}
			}
			c.FirstByte, c.Done = c.Intended+took, c.Intended+took
			if i%100 < x.share && x.open {
				c.FirstByte, c.Done = 0, 0
			}
			tr.Calls = append(load.CallsOf(tr.Calls), c)
		}
		s.Segment = load.Segment{Start: now, End: now + lasts, Offered: n, Sent: n}
		now += lasts
		tr.Steps = append(tr.Steps, s)
	}
	tr.Read = now + time.Minute
	return tr
}

// TestLevelsAtRates: the objective is judged by the calls at the highest rate that held and at the lowest that failed;
// what the server measured is of no one rate, and the published formulas say nothing.
func TestLevelsAtRates(t *testing.T) {
	t.Parallel()
	over := tried{role: capacity.RoleOverload, rate: 90, took: 9 * time.Second}
	prime := tried{role: capacity.RolePrime, rate: 90, took: 9 * time.Second}
	low := func(share int, late time.Duration) tried {
		return tried{
			role: capacity.RoleConfirmLow, rate: 40, held: true, took: 200 * time.Millisecond, late: late, share: share,
		}
	}
	high := tried{role: capacity.RoleConfirmHigh, rate: 50, took: 2 * time.Second}
	bad, open := high, high
	bad.share, bad.late, bad.bad, bad.took = 25, 3*time.Second, true, 200*time.Millisecond
	open.share, open.open = 10, true
	refused := low(1, 2*time.Millisecond)
	refused.bad = true
	for name, c := range map[string]struct {
		trace     capacity.Trace
		held      report.Verdict
		p99       float64
		failed    report.Verdict
		says, not string // in the client's notes
	}{
		"kept and broken":  {made(over, high, low(0, 0)), report.Pass, .2, report.Fail, "", "queue"},
		"late beyond 99 %": {made(over, high, low(5, 4*time.Second)), report.Fail, 4, report.Fail, "", "queue"},
		"a queue stood before it": {made(
			over, high, prime, low(5, 4*time.Second),
		), report.Inconclusive, 4, report.Fail, "a queue was made to stand before", ""},
		"calls that failed": {made(
			over, bad, low(0, 0),
		), report.Pass, .2, report.Fail, "calls that failed are counted by how long they took: 25% of them at 50/s", ""},
		"calls that were refused at once": {
			made(over, high, refused), report.Inconclusive, .2, report.Fail, "1% of them at 40/s", "",
		},
		"calls that never ended": {made(over, open, low(0, 0)), report.Pass, .2, report.Fail, "10% of them at 50/s", ""},
	} {
		rep := measured(t, journal{
			operation: "create-pod-dry-run", trace: func(string) capacity.Trace { return c.trace },
		})
		if len(rep.SLO) != 8 {
			t.Errorf("%s: %d rows: %+v", name, len(rep.SLO), rep.SLO)
			continue
		}
		var notes []string
		for i := range rep.SLO {
			s := &rep.SLO[i]
			rate, held, verdict := 40.0, true, c.held
			if i >= 4 {
				rate, held, verdict = 50, false, c.failed
			}
			if s.Rate == nil || *s.Rate != rate || s.Held == nil || *s.Held != held || s.Name != "mutating" ||
				s.Subject != "POST pods" || s.Limit != 1 {
				t.Errorf("%s: row %d: %+v", name, i, s)
			}
			if s.Formula != report.ClientClock {
				if s.Verdict != report.NotMeasured || s.Value != nil || !strings.Contains(s.Note, "whole search") {
					t.Errorf("%s: %s: %+v", name, s.Formula, s)
				}
				continue
			}
			notes = append(notes, s.Note)
			if s.Verdict != verdict || s.N != uint64(rate*20) {
				t.Errorf("%s: at %v: %s of %d, want %s", name, rate, s.Verdict, s.N, verdict)
			}
			if held && (s.Value == nil || math.Abs(*s.Value-c.p99) > 1e-6) {
				t.Errorf("%s: p99 %v, want %v", name, s.Value, c.p99)
			}
		}
		all := strings.Join(notes, "\n")
		if !strings.Contains(all, c.says) || (c.not != "" && strings.Contains(all, c.not)) {
			t.Errorf("%s: notes %q, want %q and not %q", name, all, c.says, c.not)
		}
	}
}

// TestNoLevelsOfOtherAreas: what is no request of a control plane has no such objective.
func TestNoLevelsOfOtherAreas(t *testing.T) {
	t.Parallel()
	if rep := measured(t, journal{}); len(rep.SLO) != 0 {
		t.Errorf("%+v", rep.SLO)
	}
	rep := measured(t, journal{operation: "pod-startup"})
	if len(rep.SLO) != 8 || rep.SLO[0].Name != "pod-startup" || rep.SLO[0].Limit != 5 ||
		rep.SLO[3].Verdict != report.Pass {
		t.Errorf("pod-startup: %+v", rep.SLO)
	}
}

// startups writes the phases of n pods a trial: a tenth of them waits in admission for as long as slow.
func startups(n int, slow time.Duration) func(t *testing.T, w *record.Writer, trial design.Trial) {
	return func(t *testing.T, w *record.Writer, trial design.Trial) {
		phases := map[string]*hist.Histogram{}
		add := func(name string, d time.Duration) {
			if phases[name] == nil {
				phases[name] = &hist.Histogram{}
			}
			phases[name].Record(int64(d))
		}
		for i := range n {
			post, rest := 5*time.Millisecond, time.Duration(100+i%100)*time.Millisecond
			if i%10 == 0 && trial.Treatment == "policies=10" {
				post += slow
			}
			add("post", post)
			add("scheduled", rest/2)
			add("running", rest-rest/2)
			add("startup", post+rest)
			add("created-to-watch", rest.Truncate(time.Second)+time.Second)
			add("watch-to-watch", rest)
			add("conditions", time.Second)
		}
		var out []load.Phase
		for _, name := range []string{
			"startup", "conditions", "post", "scheduled", "running", "created-to-watch", "watch-to-watch",
		} {
			out = append(out, load.Phase{Name: name, Hist: phases[name]})
		}
		must(
			t,
			w.Cells(
				trial.Treatment, trial.Block,
				[]load.Cell{{Operation: 0, Outcome: load.OK, Response: phases["startup"], Phases: out}},
			),
		)
	}
}

// TestPodStartup: phases are of all trials, and time that is lost in admission is seen by the client's clock only.
func TestPodStartup(t *testing.T) {
	t.Parallel()
	x := admission("pod-startup", nil)
	x.blocks, x.calls = 20, 20
	x.beside = startups(500, 6*time.Second)
	x.fail = func(treatment string, block, call int) bool {
		return treatment == "policies=10" && block == 3 && call == 110
	}
	rep := measured(t, x)
	var names []string
	for _, p := range rep.Phases {
		if p.Treatment == "policies=10" {
			names = append(names, p.Phase)
			if p.N != 10_000 || p.Operation != "pod-startup" || p.P50 > p.P90 || p.P90 > p.P99 || p.P99 > p.Max || p.Mean <= 0 {
				t.Errorf("%+v", p)
			}
			if p.Phase == "post" && (math.Abs(p.P50-5e-3) > 1e-5 || math.Abs(p.P99/6.005-1) > .01 ||
				math.Abs(p.Mean/.605-1) > .01) {
				t.Errorf("post: %+v", p)
			}
		}
	}
	if want := []string{
		"post", "scheduled", "running", "startup", "created-to-watch", "watch-to-watch", "conditions",
	}; !slices.Equal(names, want) {
		t.Errorf("phases %q", names)
	}
	for _, c := range []struct {
		f     report.Formula
		want  report.Verdict
		value float64
	}{
		{report.Official, report.Pass, 1},
		{report.ClusterLoader2, report.Pass, .199},
		{report.KubeBurner, report.Pass, 1},
		{report.ClientClock, report.Fail, 6.19},
	} {
		s := levelOf(t, rep, "policies=10", "pod-startup", c.f)
		if s.Verdict != c.want || math.Abs(*s.Value/c.value-1) > .01 || s.Limit != 5 || s.N != 10_000 ||
			!strings.Contains(s.Note, "1 pod was never seen running") {
			t.Errorf("%s: %+v, value %v", c.f, s, *s.Value)
		}
		if base := levelOf(t, rep, "policies=0", "pod-startup", c.f); base.Verdict != report.Pass ||
			strings.Contains(base.Note, "never seen") {
			t.Errorf("baseline by %s: %+v", c.f, base)
		}
	}
	if s := levelOf(t, rep, "policies=10", "pod-startup", report.ClientClock); s.Lo == nil || *s.Lo > *s.Value ||
		*s.Hi < *s.Value || *s.Level != .95 {
		t.Errorf("without an interval: %+v", s)
	}
	if said := strings.Join(rep.Warnings, "\n"); !strings.Contains(
		said,
		"policies=10: the service level verdicts on pod-startup DISAGREE: official and clusterloader2 and kube-burner pass "+
			"it, client fail it. creationTimestamp",
	) {
		t.Errorf("warnings %q", said)
	}
}

// TestUndecidedRequestsAreNotTheControls: calls that the target let pass since the control did not answer are told; if
// they are more than a hundredth, the treatment was not in force. Of two controls that are asked about one request the
// request counts once.
func TestUndecidedRequestsAreNotTheControls(t *testing.T) {
	t.Parallel()
	// Each treatment has some more than 400 calls in four blocks.
	for name, c := range map[string]struct {
		each    uint64 // requests that were let pass, in each block
		inForce bool
		says    string
	}{
		"none": {0, true, ""},
		"few":  {1, true, "policies=10: the target let 4 requests pass that gate and other should have decided"},
		"many": {3, false, "policies=10 was not in force: the target let 12 requests pass that gate and other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := admission("create-pod", map[string]*plane{"policies=0": {total: 20e-3, sli: 20e-3}})
			beside := x.beside
			x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
				beside(t, w, trial)
				if trial.Treatment != "policies=10" {
					return
				}
				must(t, w.Served(record.Served{Treatment: trial.Treatment, Block: trial.Block, Served: area.Served{
					Parts: []area.ServedPart{
						{Part: area.Undecided, Name: "gate", Action: "validating", Count: c.each},
						{Part: area.Undecided, Name: "other", Action: "validating", Count: c.each},
					},
				}}))
			}
			rep := measured(t, x)
			inForce, code := rep.Treatments[1].NotInForce == "", ExitCode(rep)
			if inForce != c.inForce || (code == ExitNotInForce) == inForce {
				t.Errorf("in force: %v, want %v; exit %d", inForce, c.inForce, code)
			}
			if said := strings.Join(append(rep.Warnings, rep.Reason), "\n"); !strings.Contains(said, c.says) ||
				c.says == "" && strings.Contains(said, "pass that") {
				t.Errorf("it says:\n%s\nwant %q", said, c.says)
			}
		})
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operation, request, admission, storage string
		dryRun, startup                        bool
	}{
		{"create-pod", "POST pods", "CREATE", "create", false, false},
		{"create-pod-dry-run", "POST pods", "CREATE", "get", true, false},
		{"pod-startup", "POST pods", "CREATE", "create", false, true},
		{"update-deployment", "PUT deployments", "UPDATE", "update", false, false},
		{"patch-configmap-dry-run", "PATCH configmaps", "UPDATE", "get", true, false},
		{"delete-pod", "DELETE pods", "DELETE", "delete", false, false},
		{"get-configmap", "GET configmaps", "", "get", false, false},
		{"list-pod", "LIST pods (namespace)", "", "list", false, false},
	} {
		a, ok := actionOf(c.operation)
		if !ok || a.String() != c.request || a.admission != c.admission || a.storage != c.storage || a.dryRun != c.dryRun ||
			a.startup != c.startup {
			t.Errorf("%s: %+v %v", c.operation, a, ok)
		}
		if a.mutating() != (c.admission != "") || admits(a.verb) != c.admission || !a.judged() {
			t.Errorf("%s: mutating %v, admits %q", c.operation, a.mutating(), admits(a.verb))
		}
	}
	for _, name := range []string{"", "token", "create", "create-node", "watch-pod", "-dry-run", "pod-startup-dry-run"} {
		if a, ok := actionOf(name); ok {
			t.Errorf("%q: %+v", name, a)
		}
	}
	for _, k := range []kind{
		{"WATCH", "pods", "namespace"},
		{"GET", "pods/log", "resource"},
		{"POST", "subjectaccessreviews", "resource"},
		{"CONNECT", "pods/exec", "resource"},
	} {
		if k.judged() {
			t.Errorf("%s is judged", k)
		}
	}
}
