package identity

import (
	"context"
	"encoding/json"
	"net"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/fixture"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// prepareArms prepares all arms of a comparison, including the A/A arm, as a run does.
func prepareArms(t testing.TB, spec *Spec, treatments []design.Treatment,
) (*target, *areatest.Journal, []design.Treatment) {
	t.Helper()
	arms := design.Arms(treatments)
	tg, j := prepared(t, spec, arms[0])
	for _, a := range arms[1:] {
		if err := tg.Prepare(t.Context(), a, j); err != nil {
			t.Fatal(err)
		}
	}
	return tg, j, arms
}

// runTrial makes n calls one after another, as a trial does, and returns what the probes report about them.
func runTrial(t testing.TB, tg *target, tr design.Treatment, n int) []metric.Sample {
	t.Helper()
	for _, step := range []func(context.Context, design.Treatment) error{tg.Enter, tg.Verify} {
		if err := step(t.Context(), tr); err != nil {
			t.Fatalf("step of %s: %v", tr.ID, err)
		}
	}
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	read := func() (all []metric.Sample) {
		for _, p := range tg.Probes(tr) {
			s, err := p.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s...)
		}
		return all
	}
	p, before := tg.arm(tr.ID), read()
	for i := range uint64(n) {
		if outcome, err := p.call(t.Context(), ops[0].Wire, i, callTimeout); outcome != load.OK {
			t.Fatalf("%s: call %d: %v, %v", tr.ID, i, outcome, err)
		}
	}
	delta := probe.Delta(before, read())
	if err := tg.Leave(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	return delta
}

// TestProbesCountEachTrial: the probes report on that trial and that treatment only.
func TestProbesCountEachTrial(t *testing.T) {
	const n = 40
	treatments := levels(m{"cache": "true", "singleflight": "false"}, m{"cache": "false", "singleflight": "false"})
	tg, _, arms := prepareArms(t, embedded("healthy"), treatments)
	seen := map[int]bool{}
	for _, tr := range arms {
		seen[tg.arm(tr.ID).endpoint.PID] = true
	}
	if len(seen) != len(arms) {
		t.Errorf("%d endpoints for %d arms: the A/A arm needs one of its own, too", len(seen), len(arms))
	}
	for range 2 {
		for _, tr := range arms {
			d := runTrial(t, tg, tr, n)
			cached := tr.Levels["cache"] == "true"
			for _, x := range []struct {
				q            probe.Quantity
				warm, always float64
			}{{probe.Upstream, 0, n}, {probe.CacheHits, n, 0}, {probe.CacheMisses, 0, n}, {probe.Distinct, 1, n}} {
				want := map[bool]float64{true: x.warm, false: x.always}[cached]
				if got, ok := probe.Find(d, serverEndpoint, x.q); !ok || got != want {
					t.Errorf("%s: %s %v (%v), want %v", tr.ID, x.q.Name, got, ok, want)
				}
			}
			for _, subject := range []string{serverEndpoint, serverSTS} {
				cpu, ok := probe.Find(d, subject, probe.CPU)
				if busy := subject == serverEndpoint || !cached; !ok || cpu < 0 || (busy && cpu == 0) {
					t.Errorf("%s: CPU of %s %v (%v)", tr.ID, subject, cpu, ok)
				}
			}
		}
	}
}

// TestVerifyIsCheapTheSecondTime: Verify runs before every trial, so its cost must not grow with the limits that it has
// already proven.
func TestVerifyIsCheapTheSecondTime(t *testing.T) {
	tg, _ := prepared(t, embedded("sts-quota-reject"), standard)
	asked := func() (endpoint, sts int64) {
		t.Helper()
		p := tg.arm("default")
		e, err := p.endpoint.admin.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.sts.admin.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return e.Requests, s.Asked
	}
	verify := func() (endpoint, sts int64) {
		t.Helper()
		e, s := asked()
		if err := tg.Verify(t.Context(), standard); err != nil {
			t.Fatal(err)
		}
		e2, s2 := asked()
		return e2 - e, s2 - s
	}
	if _, sts := verify(); sts < 50 {
		t.Errorf("the quota of 50 was proven with %d exchanges", sts)
	}
	if e, sts := verify(); e > 1 || sts > 1 {
		t.Errorf("the second Verify made %d requests and %d exchanges", e, sts)
	}
	if err := tg.arm("default").restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, sts := verify(); sts < 50 {
		t.Errorf("after a restart, the quota was proven with %d exchanges", sts)
	}
}

// TestEnterWarmsARestartedCache: a restarted endpoint has lost its cache, which must be warm again for the next trial.
func TestEnterWarmsARestartedCache(t *testing.T) {
	spec := embedded("healthy")
	spec.Identities = 30
	tg, _ := prepared(t, spec, standard)
	p := tg.arm("default")
	if err := p.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if misses, ok := probe.Find(runTrial(t, tg, standard, 60), serverEndpoint, probe.CacheMisses); !ok || misses != 0 {
		t.Errorf("%v misses after a restart (%v)", misses, ok)
	}
	before, err := p.endpoint.admin.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	after, err := p.endpoint.admin.Counters(t.Context())
	if err != nil || after.Requests != before.Requests {
		t.Errorf("a second Enter made %d requests (%v)", after.Requests-before.Requests, err)
	}
}

// TestRenewedProcessesServeOn: both servers are other processes, the endpoint's at the same address, warm after Enter,
// and no restart is reported.
func TestRenewedProcessesServeOn(t *testing.T) {
	spec := embedded("healthy")
	spec.Identities = 30
	tg, j := prepared(t, spec, standard)
	p := tg.arm("default")
	sts, endpoint, addr := p.sts.PID, p.endpoint.PID, p.addr
	if did, err := tg.Can().Renew(t.Context(), standard); !did || err != nil {
		t.Fatal(did, err)
	}
	if p.sts.PID == sts || p.endpoint.PID == endpoint || p.endpoint.ready.Addr != addr.String() {
		t.Errorf("processes %d and %d after %d and %d, at %s after %s", p.sts.PID, p.endpoint.PID, sts, endpoint,
			p.endpoint.ready.Addr, addr)
	}
	if n := len(j.Pending()); n != 2 {
		t.Errorf("%d processes are journaled as living, want 2", n)
	}
	if misses, ok := probe.Find(runTrial(t, tg, standard, 60), serverEndpoint, probe.CacheMisses); !ok || misses != 0 {
		t.Errorf("%v misses after Enter (%v)", misses, ok)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Error(err)
	}
	if notes := strings.Join(tg.Notes(), "\n"); strings.Contains(notes, "restarted") {
		t.Errorf("notes %s", notes)
	}
}

// TestCachedAudiencesEndWithTheTrial: a trial does not find in the cache what the previous one left.
func TestCachedAudiencesEndWithTheTrial(t *testing.T) {
	spec := embedded("healthy")
	spec.Operation = opIdentity
	tg, _ := prepared(t, spec, standard)
	p := tg.arm("default")
	ops, err := tg.Operations(standard)
	if err != nil {
		t.Fatal(err)
	}
	misses := func() int64 {
		t.Helper()
		if outcome, err := p.call(t.Context(), ops[0].Wire, 0, callTimeout); outcome != load.OK {
			t.Fatal(outcome, err)
		}
		c, err := p.endpoint.admin.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c.Misses
	}
	first := misses()
	if again := misses(); again != first {
		t.Errorf("%d misses for an audience that was asked for before, want none", again-first)
	}
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if after := misses(); after != first+1 {
		t.Errorf("%d misses after Enter, want 1", after-first)
	}
}

// TestNegativeControls: tokens for new audiences are never cached, so the cache cannot affect them; the signature can.
func TestNegativeControls(t *testing.T) {
	treatments := levels(
		m{"cache": "true", "operation": "identity"}, m{"cache": "false", "operation": "identity"},
		m{"cache": "true", "operation": "identity", "signing": "ES256"}, m{"cache": "false", "operation": "token"},
	)
	treatments = append(treatments, design.Treatment{
		ID: "base of tokens", Baseline: true,
		Levels: m{"cache": "true", "operation": "token"},
	})
	tg, _, arms := prepareArms(t, embedded("healthy"), treatments)
	want := []bool{false, true, false, false, false, false}
	for i, tr := range arms {
		ops, err := tg.Operations(tr)
		if err != nil {
			t.Fatal(err)
		}
		if ops[0].Negative != want[i] {
			t.Errorf("%s %s: negative %v, want %v", tr.ID, tr.Control, ops[0].Negative, want[i])
		}
	}
}

// TestNotesOnCaches: notes say that caches are warm, unless workloads made them something else.
func TestNotesOnCaches(t *testing.T) {
	tg, _, arms := prepareArms(t, embedded("healthy"), levels(m{"cache": "true"}, m{"cache": "false"}))
	const warm = "caches are warm"
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, warm) {
		t.Errorf("notes %q say nothing of caches", notes)
	}
	if err := tg.Stage(t.Context(), arms[0], area.Cold); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(tg.Notes(), "\n"); strings.Contains(notes, warm) {
		t.Errorf("an emptied cache is called warm: %q", notes)
	}
}

// TestEndpointsSideBySide compares two external endpoints.
func TestEndpointsSideBySide(t *testing.T) {
	one, two := startIMDSv2(t, fixture.Config{}, "node"), startIMDSv2(t, fixture.Config{}, "node")
	tg, j, arms := prepareArms(t, &Spec{Adapter: "imdsv2"}, levels(m{"url": one.URL}, m{"url": two.URL}))
	if len(j.Changes()) != 0 {
		t.Errorf("got changes %v, want none", j.Changes())
	}
	for i, tr := range arms {
		end, err := tg.Endpoint(tr)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{one.URL, two.URL, one.URL}[i]; "http://"+end.Addr.String() != want {
			t.Errorf("%s is at %v, want %s", tr.ID, end.Addr, want)
		}
		if d := runTrial(t, tg, tr, 10); len(d) == 0 {
			t.Errorf("%s: no samples", tr.ID)
		}
	}
	notes := strings.Join(tg.Notes(), "\n")
	if !strings.Contains(notes, "2 arms share the endpoint at "+strings.TrimPrefix(one.URL, "http://")) ||
		strings.Contains(notes, strings.TrimPrefix(two.URL, "http://")) {
		t.Errorf("got notes %q", notes)
	}
	two.Forget() // its sessions are gone: only its own treatment may notice
	if err := tg.Verify(t.Context(), arms[1]); err == nil {
		t.Error("Verify accepts a treatment whose endpoint refuses")
	}
	if err := tg.Verify(t.Context(), arms[0]); err != nil {
		t.Error(err)
	}
}

// TestUnreachableEndpointIsNamed: the error names the treatment whose endpoint cannot be reached.
func TestUnreachableEndpointIsNamed(t *testing.T) {
	srv := httptest.NewServer(nil)
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	arms := design.Arms(levels(m{"url": srv.URL}, m{"url": dead}))
	f := Area{}.Preflight(t.Context(), &Spec{Adapter: "gce-metadata"}, area.Env{Treatments: arms})
	if len(f) != 1 || f[0].Severity != area.Error || !strings.Contains(f[0].Message, `treatment "url=`+dead+`": nothing listens at `) || f[0].Hint == "" {
		t.Errorf("got %+v, want one error that names the treatment of %s", f, dead)
	}
	arms = design.Arms(levels(m{"url": dead, "identities": "1"}, m{"url": dead, "identities": "2"}))
	f = Area{}.Preflight(t.Context(), &Spec{Adapter: "gce-metadata"}, area.Env{Treatments: arms})
	if len(f) != 1 || strings.Contains(f[0].Message, "treatment") { // about all treatments
		t.Errorf("got %+v, want one finding that names no treatment", f)
	}
}

// TestPreflightChecksEachTreatment: a level may need more than the host has.
func TestPreflightChecksEachTreatment(t *testing.T) {
	arms := design.Arms(levels(m{"backlog": "128"}, m{"backlog": "1000000"}))
	f := Area{}.Preflight(t.Context(), embedded("healthy"), area.Env{Treatments: arms})
	if len(f) != 1 || f[0].Severity != area.Warning || !strings.HasPrefix(f[0].Message, `treatment "backlog=1000000": net.core.somaxconn clips`) {
		t.Errorf("got %+v, want one warning about backlog=1000000", f)
	}
}

// growthTreatments returns the treatments of a growth experiment.
func growthTreatments(n ...int) []design.Treatment {
	var all []m
	for _, x := range n {
		all = append(all, m{"identities": strconv.Itoa(x)})
	}
	return levels(all...)
}

// TestFourteenWarmEndpoints keeps 14 endpoints of up to 1,000 identities each and checks that all are warm; the journal
// of a killed run undoes them all.
func TestFourteenWarmEndpoints(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	sizes := growthTreatments(1, 2, 5, 10, 20, 50, 100, 150, 200, 300, 500, 700, 1000)
	tg, j, arms := prepareArms(t, embedded("healthy"), sizes)
	if len(j.Changes()) != 28 {
		t.Errorf("%d changes are journaled, want 28 processes", len(j.Changes()))
	}
	var fds, rss float64
	for _, tr := range arms {
		c, err := tg.arm(tr.ID).endpoint.admin.Counters(t.Context())
		want, _ := strconv.Atoi(tr.Levels["identities"])
		if err != nil || c.Misses != int64(want) {
			t.Errorf("%s: %d tokens were fetched, want %d (%v)", tr.ID, c.Misses, want, err)
		}
		end, err := tg.Endpoint(tr)
		if err != nil || end.Keys != want {
			t.Errorf("%s: %d identities (%v)", tr.ID, end.Keys, err)
		}
		d := runTrial(t, tg, tr, 5)
		x, _ := probe.Find(d, serverEndpoint, probe.FDs)
		y, _ := probe.Find(d, serverEndpoint, probe.RSS)
		fds, rss = fds+x, rss+y
	}
	t.Logf("14 endpoints have %v descriptors and %.0f MB", fds, rss/1e6)
	data, err := json.Marshal(j.Changes())
	if err != nil {
		t.Fatal(err)
	}
	var changes []area.Change
	if err := json.Unmarshal(data, &changes); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(changes)
	if err := (Area{}).Undo(t.Context(), changes, area.Env{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, tr := range arms {
		for _, name := range []string{serverEndpoint, serverSTS} {
			if err := tg.arm(tr.ID).child(name).Wait(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("%s of %s was not killed: %v", name, tr.ID, err)
			}
		}
		if err := tg.Enter(t.Context(), tr); err == nil || !strings.Contains(err.Error(), "ended by itself") {
			t.Errorf("%s can be entered without its servers: %v", tr.ID, err)
		}
	}
}
