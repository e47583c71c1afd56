package identity

import (
	"context"
	"net"
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
	op := onlyOp(t, tg, tr)
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
		if outcome, err := p.call(t.Context(), op.Wire, i, callTimeout); outcome != load.OK {
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
	spec := specOf(t, gceFields+"embedded: {preset: healthy, singleflight: false}")
	tg, _, arms := prepareArms(t, spec, levels("cache=true | cache=false"))
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
		s, err := p.sts.admin.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return countersOf(t, p).Requests, s.Asked
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
	tg, _ := prepared(t, specOf(t, healthyOnes+", identities: 30"), standard)
	p := tg.arm("default")
	if err := p.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if misses, ok := probe.Find(runTrial(t, tg, standard, 60), serverEndpoint, probe.CacheMisses); !ok || misses != 0 {
		t.Errorf("%v misses after a restart (%v)", misses, ok)
	}
	before := countersOf(t, p).Requests
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if n := countersOf(t, p).Requests - before; n != 0 {
		t.Errorf("a second Enter made %d requests", n)
	}
}

// TestRenewedProcessesServeOn: both servers are other processes, the endpoint's at the same address, warm after Enter,
// and no restart is reported.
func TestRenewedProcessesServeOn(t *testing.T) {
	tg, j := prepared(t, specOf(t, healthyOnes+", identities: 30"), standard)
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
	tg, _ := prepared(t, specOf(t, healthyOnes+", operation: identity"), standard)
	p, op := tg.arm("default"), onlyOp(t, tg, standard)
	misses := func() int64 {
		t.Helper()
		if outcome, err := p.call(t.Context(), op.Wire, 0, callTimeout); outcome != load.OK {
			t.Fatal(outcome, err)
		}
		return countersOf(t, p).Misses
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
	treatments := levels("cache=true operation=identity | cache=false operation=identity | " +
		"cache=true operation=identity signing=ES256 | cache=false operation=token | cache=true operation=token")
	treatments[4].ID, treatments[4].Baseline = "base of tokens", true
	tg, _, arms := prepareArms(t, embedded("healthy"), treatments)
	want := []bool{false, true, false, false, false, false}
	for i, tr := range arms {
		if got := onlyOp(t, tg, tr).Negative; got != want[i] {
			t.Errorf("%s %s: negative %v, want %v", tr.ID, tr.Control, got, want[i])
		}
	}
}

// TestNotesOnCaches: notes say that caches are warm, unless workloads made them something else.
func TestNotesOnCaches(t *testing.T) {
	tg, _, arms := prepareArms(t, embedded("healthy"), levels("cache=true | cache=false"))
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
	tg, j, arms := prepareArms(t, &Spec{Adapter: "imdsv2"}, levels("url="+one.URL+" | url="+two.URL))
	if len(j.Changes()) != 0 {
		t.Errorf("got changes %v, want none", j.Changes())
	}
	for i, tr := range arms {
		at, want := endpointOf(t, tg, tr).Addr, []string{one.URL, two.URL, one.URL}[i]
		if "http://"+at.String() != want {
			t.Errorf("%s is at %v, want %s", tr.ID, at, want)
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	arms := design.Arms(levels("url=" + serve(t, nil) + " | url=" + dead))
	f := Area{}.Preflight(t.Context(), &Spec{Adapter: "gce-metadata"}, area.Env{Treatments: arms})
	if len(f) != 1 || f[0].Severity != area.Error || !strings.Contains(f[0].Message, `treatment "url=`+dead+`": nothing listens at `) || f[0].Hint == "" {
		t.Errorf("got %+v, want one error that names the treatment of %s", f, dead)
	}
	arms = design.Arms(levels("url=" + dead + " identities=1 | url=" + dead + " identities=2"))
	f = Area{}.Preflight(t.Context(), &Spec{Adapter: "gce-metadata"}, area.Env{Treatments: arms})
	if len(f) != 1 || strings.Contains(f[0].Message, "treatment") { // about all treatments
		t.Errorf("got %+v, want one finding that names no treatment", f)
	}
}

// TestPreflightChecksEachTreatment: a level may need more than the host has.
func TestPreflightChecksEachTreatment(t *testing.T) {
	arms := design.Arms(levels("backlog=128 | backlog=1000000"))
	f := Area{}.Preflight(t.Context(), embedded("healthy"), area.Env{Treatments: arms})
	if len(f) != 1 || f[0].Severity != area.Warning || !strings.HasPrefix(f[0].Message, `treatment "backlog=1000000": net.core.somaxconn clips`) {
		t.Errorf("got %+v, want one warning about backlog=1000000", f)
	}
}

// TestFourteenWarmEndpoints keeps 14 endpoints of up to 1,000 identities each and checks that all are warm; the journal
// of a killed run undoes them all.
func TestFourteenWarmEndpoints(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	const sizes = "1 | 2 | 5 | 10 | 20 | 50 | 100 | 150 | 200 | 300 | 500 | 700 | 1000"
	treatments := levels("identities=" + strings.ReplaceAll(sizes, "| ", "| identities="))
	tg, j, arms := prepareArms(t, embedded("healthy"), treatments)
	if len(j.Changes()) != 28 {
		t.Errorf("%d changes are journaled, want 28 processes", len(j.Changes()))
	}
	var fds, rss float64
	for _, tr := range arms {
		want, _ := strconv.Atoi(tr.Levels["identities"])
		if got, keys := countersOf(t, tg.arm(tr.ID)).Misses, endpointOf(t, tg, tr).Keys; got != int64(want) || keys != want {
			t.Errorf("%s: %d tokens were fetched for %d identities", tr.ID, got, keys)
		}
		d := runTrial(t, tg, tr, 5)
		x, _ := probe.Find(d, serverEndpoint, probe.FDs)
		y, _ := probe.Find(d, serverEndpoint, probe.RSS)
		fds, rss = fds+x, rss+y
	}
	t.Logf("14 endpoints have %v descriptors and %.0f MB", fds, rss/1e6)
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{})
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
