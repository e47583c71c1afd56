package report

import (
	"math"
	"strings"

	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/signature"
)

// controlPlanes are the samples of reports on control planes.
func controlPlanes() map[string]*Report {
	return map[string]*Report{"psp": psp(), "psp-hostile": pspHostile(), "gatehouse-capacity": gatehouseCapacity()}
}

// psp is the published experiment on a control plane with simulated nodes: one treatment whose admission is slow, and
// one with webhooks.
func psp() *Report {
	c := comparison{
		name: "psp-2017", metric: "cpu", blocks: 20, margin: 0.02, noise: 0.01, operations: []string{"pod-startup"},
		base: map[string]float64{"pod-startup": 9.4e-3},
		arms: []trialled{
			{levels: map[string]string{"mechanism": "none"}, cost: map[string]float64{"pod-startup": 0}},
			{
				levels: map[string]string{"mechanism": "psp", "policies": "105", "bound": "10"},
				cost:   map[string]float64{"pod-startup": 0.09},
			},
			{
				levels: map[string]string{"mechanism": "psp", "policies": "5005", "bound": "1"},
				cost:   map[string]float64{"pod-startup": 41},
			},
			{levels: map[string]string{"mechanism": "webhook", "policies": "10"}, cost: map[string]float64{"pod-startup": 0.4}},
		},
	}
	r := c.report()
	r.Area = "gatehouse"
	r.Notes = []string{"control plane only: the nodes are simulated, no container is started"}
	for i := range r.Treatments {
		t := &r.Treatments[i]
		slow := t.Levels["policies"] == "5005"
		post, server, store := 7.2e-3, 6.1e-3, 1.4e-3
		a := Attribution{Treatment: t.ID, Operation: "pod-startup", N: 12_000, Admission: new(1.1e-3)}
		switch {
		case slow:
			post, server, a.Admission = 8.2, 8.19, nil
			a.Note = "admission is not known and is in other: the server counts it by action, and only 71.2% of all CREATE " +
				"requests were these"
		case t.Levels["mechanism"] == "webhook":
			a.Webhook, post, server = new(21e-3), 28.3e-3, 27.1e-3
			a.Note = "webhooks run side by side: their own times add up to 88 ms a request, which waits for the slowest"
		}
		rest := server - store
		for _, v := range []*float64{a.Webhook, a.Admission} {
			if v != nil {
				rest -= *v
			}
		}
		a.Total, a.Server, a.Client, a.Storage, a.Other = &post, &server, new(post-server), &store, &rest
		r.Attribution = append(r.Attribution, a)
		pspPhases(r, t.ID, post)
		pspServed(r, t.ID, server, slow)
		pspLevels(r, t.ID, post, slow)
	}
	r.Warnings = []string{"mechanism=psp policies=5005 bound=1: the service level verdicts on pod-startup DISAGREE: " +
		"official and clusterloader2 and kube-burner pass it, client fail it"}
	for _, x := range []struct {
		name string
		cpu  float64
	}{{"kube-apiserver", 81.2}, {"etcd", 31.4}, {"simulated-nodes", 6.6}} {
		t := Target{Treatment: r.Treatments[0].ID, Name: x.name, CPUSeconds: &x.cpu, RSS: &RSS{After: new(x.cpu * 8e6)}}
		if x.name != "simulated-nodes" {
			t.CPUPerOp = new(x.cpu / 12_000)
		}
		r.Target = append(r.Target, t)
	}
	return r
}

func pspPhases(r *Report, id string, post float64) {
	for _, p := range []struct {
		name string
		mean float64
	}{
		{"post", post},
		{"scheduled", 4.1e-3},
		{"running", 9.2e-3},
		{"startup", post + 13.3e-3},
		{"created-to-watch", 0.52},
		{"watch-to-watch", 12.9e-3},
		{"conditions", 0.4},
	} {
		r.Phases = append(r.Phases, Phase{
			Treatment: id, Operation: "pod-startup", Phase: p.name, N: 12_000, Mean: p.mean, P50: round4(p.mean * .93),
			P90: round4(p.mean * 1.3), P99: round4(p.mean * 1.871234), Max: round4(p.mean * 2.6),
		})
	}
}

func pspServed(r *Report, id string, server float64, slow bool) {
	add := func(verb, resource, scope string, n uint64, mean float64, measured bool) {
		s := Served{
			Treatment: id, Verb: verb, Resource: resource, Scope: scope, N: n, Mean: mean, Last: new(60.0),
			Measured: measured,
		}
		at := func(v float64) *float64 {
			if v > 60 {
				return nil
			}
			return new(round4(v))
		}
		s.P50, s.P90, s.P99 = at(mean*.9), at(mean*1.5), at(mean*2)
		r.Served = append(r.Served, s)
	}
	add("POST", "pods", "resource", 12_000, server, true)
	add("POST", "pods/binding", "resource", 12_000, 5.2e-3, false)
	add("PATCH", "pods/status", "resource", 24_000, 6.1e-3, false)
	add("DELETE", "pods", "resource", 12_000, 4.4e-3, false)
	add("PUT", "leases", "resource", 800, 790e-6, false)
	add("GET", "namespaces", "resource", 300, 410e-6, false)
	if slow {
		add("LIST", "podsecuritypolicies", "cluster", 40, 33, false)
	}
	add("LIST", "nodes", "cluster", 12, 2.2e-3, false)
}

func pspLevels(r *Report, id string, post float64, slow bool) {
	add := func(name, subject, operation string, f Formula, v, limit float64, note string) {
		s := SLO{
			Treatment: id, Name: name, Subject: subject, Operation: operation, Formula: f, Verdict: Pass,
			Quantile: new(0.99), Value: &v, Limit: limit, N: 12_000, Basis: note,
		}
		s.Basis, s.Note, _ = strings.Cut(note, "; ")
		if v > limit {
			s.Verdict = Fail
		}
		if math.IsInf(v, 1) {
			s.Value, s.Lo = nil, new(60.0)
		}
		if f == ClientClock {
			s.Lo, s.Hi, s.Level = new(v*.95), new(v*1.06), new(.95)
		}
		r.SLO = append(r.SLO, s)
	}
	add("mutating", "POST pods", "", Official, round4(post*2), 1, "all of the run is one window")
	add("mutating", "POST pods", "", ClusterLoader2, round4(post*2.1), 1,
		"over 20 trials as windows, p50 and p90 hold wherever p99 does")
	add("mutating", "POST pods", "", KubeBurner, round4(post*2.05), 1, "the mean of p99 over 20 trials, webhooks included")
	add("mutating", "POST pods", "pod-startup", ClientClock, round4(post*1.871234), 1,
		"from when the request was sent until it was answered")
	if slow {
		for _, f := range []Formula{Official, ClusterLoader2, KubeBurner} {
			add("read", "LIST podsecuritypolicies (cluster)", "", f, math.Inf(1), 30,
				"all of the run is one window; beyond the last bucket, of 60 s; of 40, p99 is the maximum")
		}
	}
	for _, f := range []Formula{Official, ClusterLoader2, KubeBurner} {
		add("mutating", "4 other kinds", "", f, 12.2e-3, 1, "the slowest is PATCH pods/status: all of the run is one window")
		add("read", "2 other kinds", "", f, 4.4e-3, 30, "the slowest is LIST nodes (cluster): of 12, p99 is the maximum")
	}
	add("pod-startup", "", "pod-startup", Official, 1, 5, "from creationTimestamp, in whole seconds, until seen running")
	add("pod-startup", "", "pod-startup", ClusterLoader2, 24.1e-3, 5,
		"from its first watch event until seen running, p50 and p90 hold wherever p99 does")
	add("pod-startup", "", "pod-startup", KubeBurner, 1, 5,
		"from creationTimestamp until condition Ready, both in whole seconds, it sets no limit of its own")
	add("pod-startup", "", "pod-startup", ClientClock, round4(post*1.871234+13.3e-3), 5,
		"from when the request was sent until the pod was seen running")
}

// pspHostile has names that would do harm where they are not escaped, and only parts of everything.
func pspHostile() *Report {
	r := base("hostile")
	r.Area, r.Question = "gatehouse", design.Soak
	bad := "<b>\x1b[31m|*x*\u202E" + longWord
	r.Served = []Served{
		{Treatment: "default", Verb: bad, Resource: bad, Scope: bad, N: 1, Mean: 1},
		{Treatment: "elsewhere", Verb: "GET", N: math.MaxUint64},
	}
	r.SLO = []SLO{
		{
			Treatment: "default", Name: bad, Subject: bad, Formula: Formula("official"), Verdict: NotMeasured, Limit: 1,
			Note: bad,
		},
		{Name: "read", Formula: KubeBurner, Verdict: Inconclusive, Lo: new(60.0), Limit: 30},
	}
	r.Attribution = []Attribution{{Operation: bad, Note: bad}, {
		Treatment: "elsewhere", Operation: "list-pod",
		Total: new(1.0), Note: strings.Repeat("x ", 80),
	}}
	r.Phases = []Phase{
		{Treatment: "default", Operation: bad, Phase: bad, N: 1},
		{Treatment: "elsewhere", Operation: "pod-startup", Phase: "startup", N: 3, Max: 1e9},
	}
	return r
}

// gatehouseCapacity is a search on a control plane: service levels at the highest rate that held and at the lowest that
// failed, by the client's clock.
func gatehouseCapacity() *Report {
	r := severalTreatments()
	r.Area, r.Experiment.Name = "gatehouse", "gatehouse-capacity"
	r.Budgets, r.Verdict, r.Reason = nil, None, "no budget was given"
	r.Treatments = []Treatment{
		{ID: "mechanism=none", Baseline: true, Levels: map[string]string{"mechanism": "none"}, Verified: true},
		{ID: "mechanism=vap policies=100", Levels: map[string]string{"mechanism": "vap", "policies": "100"}, Verified: true},
	}
	r.Operations = nil
	for i, x := range []struct{ low, high, held, failed float64 }{{160.1, 166.4, 0.31, 3.9}, {27.2, 28.3, 1.4, 4.2}} {
		id := r.Treatments[i].ID
		c := &r.Capacity[i]
		c.Treatment, c.VerifiedLow, c.VerifiedHigh, c.Burst = id, &x.low, &x.high, nil
		c.Limit, c.Failure = likely(limit.Unknown, "", signature.Queue)
		c.Rate, c.Lo, c.Hi = new((x.low+x.high)/2), new(x.low*1.01), new(x.high*0.99)
		r.Operations = append(r.Operations, Operation{
			Treatment: id, Operation: "create-pod-dry-run",
			Outcomes: Outcomes{OK: 9000},
		})
		for _, at := range []struct {
			rate, p99 float64
			held      bool
		}{{x.low, x.held, true}, {x.high, x.failed, false}} {
			for _, f := range Formulas() {
				s := SLO{
					Treatment: id, Name: "mutating", Subject: "POST pods", Operation: "create-pod-dry-run", Formula: f, Limit: 1,
					Rate: new(at.rate), Held: new(at.held),
					Verdict: NotMeasured, Note: "the server's histograms are of the whole search, over all its rates, and not of one",
				}
				if f == ClientClock {
					s.Verdict, s.Note, s.N, s.Quantile, s.Level = Pass, "", 800, new(0.99), new(0.95)
					s.Value, s.Lo, s.Hi = new(at.p99), new(at.p99*0.9), new(at.p99*1.1)
					switch {
					case at.p99 > 1 && at.held:
						s.Verdict, s.Note = Inconclusive, "a queue was made to stand before this rate was tried: the times of its end "+
							"are among these"
					case at.p99 > 1:
						s.Verdict = Fail
					}
				}
				r.SLO = append(r.SLO, s)
			}
		}
	}
	return r
}
