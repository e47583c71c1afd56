package mechanism_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/areas/admission/apimetrics"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/webhook"
	"tare/areas/plane"
	"tare/rigs/hosttest"
)

// tried is one population on a real API server.
type tried struct {
	kind  mechanism.Kind
	p     mechanism.Population
	large bool
}

func population(k mechanism.Kind, total int, change func(*mechanism.Population)) tried {
	p := mechanism.Default(k, total)
	if change != nil {
		change(&p)
	}
	return tried{kind: k, p: p, large: total > 100}
}

func irrelevantBy(why mechanism.Irrelevance) func(*mechanism.Population) {
	return func(p *mechanism.Population) { p.Useable, p.Irrelevant = 1, why }
}

func TestMechanismsAreInForceOn136(t *testing.T) {
	a := startPlane(t, plane.V136)
	hooks := serveWebhook(t)
	all := []tried{
		{kind: mechanism.None},
		{kind: mechanism.PSA, p: mechanism.Population{Level: mechanism.Privileged}},
		{kind: mechanism.PSA, p: mechanism.Population{Level: mechanism.Baseline}},
		{kind: mechanism.PSA, p: mechanism.Population{Level: mechanism.Restricted}},
	}
	for _, k := range []mechanism.Kind{mechanism.VAP, mechanism.MAP, mechanism.Webhook, mechanism.MutatingWebhook} {
		for _, total := range []int{1, 10, 100} {
			all = append(all, population(k, total, nil))
		}
		for _, why := range []mechanism.Irrelevance{
			mechanism.NamespaceSelector, mechanism.MatchConditions,
			mechanism.ResourceRule,
		} {
			all = append(all, population(k, 20, irrelevantBy(why)))
		}
		all = append(all,
			population(k, 20, func(p *mechanism.Population) { p.Bound, p.Useable = 5, 2 }),
			population(k, 20, func(p *mechanism.Population) { p.Bound, p.Useable = 0, 0 }))
	}
	all = append(all, population(mechanism.VAP, 1000, nil), population(mechanism.MAP, 1000, nil))
	costs := map[tried]float64{}
	for i, c := range all {
		name := fmt.Sprintf("%s-%s%d-%d-%d-%s", c.kind, c.p.Level, c.p.Total, c.p.Bound, c.p.Useable, c.p.Irrelevant)
		t.Run(name, func(t *testing.T) { costs[tried{kind: c.kind, p: c.p}] = a.at(t).try(i, c, hooks) })
	}
	growth(t, costs)
}

// growth: a hundred that are evaluated cost at least three times what one does, by far less than they do and more than
// noise makes of one.
func growth(t *testing.T, costs map[tried]float64) {
	t.Helper()
	for _, k := range []mechanism.Kind{mechanism.VAP, mechanism.MAP, mechanism.Webhook, mechanism.MutatingWebhook} {
		one, hundred := costs[population(k, 1, nil)], costs[population(k, 100, nil)]
		if one > 0 && hundred > 0 && hundred < 3*one {
			t.Errorf("%s: %.2f ms CPU with 1 policy, %.2f ms with 100: they are not evaluated", k, one, hundred)
		}
	}
}

func TestPodSecurityPoliciesAreInForceOn124(t *testing.T) {
	a := startPlane(t, plane.V124)
	all := []tried{
		population(mechanism.PSP, 1, nil), population(mechanism.PSP, 10, nil),
		population(mechanism.PSP, 100, nil), population(mechanism.PSP, 1000, nil),
	}
	for _, bindings := range []mechanism.Bindings{mechanism.One, mechanism.Each} {
		for _, position := range []mechanism.Position{mechanism.First, mechanism.Last} {
			all = append(all, population(mechanism.PSP, 20, func(p *mechanism.Population) {
				p.Bound, p.Useable, p.Bindings,
					p.Position = 8, 2, bindings, position
			}))
		}
	}
	all = append(all, population(mechanism.PSP, 20, func(p *mechanism.Population) {
		p.Bound, p.Irrelevant = 1,
			mechanism.Unauthorized
	}))
	for i, c := range all {
		name := fmt.Sprintf("%d-%d-%d-%s-%s-%s", c.p.Total, c.p.Bound, c.p.Useable, c.p.Irrelevant,
			c.p.Position, c.p.Bindings)
		t.Run(name, func(t *testing.T) { a.at(t).try(i, c, webhook.Ready{}) })
	}
}

// at is a, for a subtest.
func (a *api) at(t *testing.T) *api { return &api{t: t, plane: a.plane, client: a.client} }

// try puts a population in place, proves it, counts what is evaluated, removes it, and returns what it costs: ms of the
// API server's CPU for a pod.
func (a *api) try(index int, c tried, hooks webhook.Ready) (cpu float64) {
	if c.large {
		hosttest.SkipUnlessLong(a.t)
	}
	s := mechanism.Scope{
		Run: fmt.Sprintf("r%d", index), Namespace: fmt.Sprintf("tare-try-%d", index), Caller: plane.CallerUser,
		WebhookURL: hooks.URL, CABundle: hooks.CA,
	}
	r, err := mechanism.Render(c.kind, c.p, s)
	if err != nil {
		a.t.Fatal(err)
	}
	a.namespace(s.Namespace, r.NamespaceLabels)
	a.apply(r)
	proof := mechanism.Prove(c.kind, c.p, s)
	waited := a.inForce(s.Namespace, proof)
	if proof.Count != nil {
		a.count(s.Namespace, *proof.Count, hooks)
	}
	n := 30
	if c.p.Total >= 100 {
		n = 10
	}
	a.cost(s.Namespace, proof.Good, 3)
	var p50 float64
	p50, cpu = a.cost(s.Namespace, proof.Good, n)
	a.t.Logf("p50 %.2f ms, %.2f ms CPU of the API server, in force after %.1f s", p50, cpu, waited.Seconds())
	a.remove(r, s.Run, s.Namespace)
	if c.kind == mechanism.VAP || c.kind == mechanism.Webhook { // what was denied is admitted again
		absence := mechanism.Prove(mechanism.None, mechanism.Population{}, s)
		absence.Bad[0].Pod = proof.Bad[0].Pod
		a.inForce(s.Namespace, absence)
	}
	return cpu
}

// count sends the probe and compares what the counters say before and after it.
func (a *api) count(namespace string, c mechanism.Count, hooks webhook.Ready) {
	a.t.Helper()
	read, want := a.checks, c.Policies
	if len(c.Policies) == 0 {
		read, want = func() map[string]uint64 { return a.reviews(hooks) }, c.Paths
	}
	before := read()
	if err := a.judge(namespace, c.Probe); err != nil {
		a.t.Fatal(err)
	}
	got, wanted := map[string]uint64{}, map[string]uint64{}
	for name, n := range read() {
		if n != before[name] && strings.HasPrefix(name, c.Prefix) {
			got[name] = n - before[name]
		}
	}
	for _, name := range want {
		wanted[name] = 1
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		a.t.Errorf("evaluated by one request (-want +got):\n%s", diff)
	}
}

// checks are the API server's counts of denials, by policy.
func (a *api) checks() map[string]uint64 {
	a.t.Helper()
	status, text := a.send(a.plane.AdminToken, http.MethodGet, "/metrics", nil)
	if status != http.StatusOK {
		a.t.Fatalf("read /metrics: status %d", status)
	}
	counts, err := apimetrics.PolicyChecks(text)
	if err != nil {
		a.t.Fatal(err)
	}
	return counts
}

// reviews are the reference webhook's counts, by path.
func (a *api) reviews(r webhook.Ready) map[string]uint64 {
	a.t.Helper()
	client := trusting(a.t, r.CA)
	resp, err := client.Get(r.URL + webhook.CountsPath)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var counts webhook.Counts
	if err := json.NewDecoder(resp.Body).Decode(&counts); err != nil {
		a.t.Fatal(err)
	}
	out := map[string]uint64{}
	for path, n := range counts.Paths {
		out[path] = uint64(n)
	}
	return out
}

// serveWebhook runs the reference webhook until the test ends.
func serveWebhook(t *testing.T) webhook.Ready {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan webhook.Ready, 1), make(chan error, 1)
	go func() {
		done <- webhook.Run(ctx, webhook.Config{}, func(r webhook.Ready) error { ready <- r; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the webhook ended with %v", err)
		}
	})
	select {
	case r := <-ready:
		return r
	case err := <-done:
		done <- err
		t.Fatal(err)
		return webhook.Ready{}
	}
}
