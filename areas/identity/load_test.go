package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/areas/identity/fixture"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// offer offers rate for d on up to conns new connections, and waits until no more than open calls have not ended.
func offer(t *testing.T, tg *target, rate float64, d, timeout time.Duration, conns, open int) []load.Call {
	t.Helper()
	s, err := load.Open(t.Context(), load.Config{
		Endpoint: *endpointOf(t, tg, standard), Operations: []load.Operation{onlyOp(t, tg, standard)}, Timeout: timeout,
		MaxConns: conns, KeepCalls: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Offer(t.Context(), load.Constant{Rate: rate, Duration: d}, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), timeout+5*time.Second, 50*time.Millisecond,
		func() bool { return s.Progress().Open() <= open }); err != nil {
		t.Fatal(err)
	}
	if n := s.Progress().Open(); n > open {
		t.Fatalf("%d calls are still open", n)
	}
	return s.Calls(0)
}

// countShape counts the calls that succeeded, those that were sent and never answered, and all others.
func countShape(calls []load.Call) (good, stuck, other int) {
	for _, c := range calls {
		switch {
		case c.Sent > 0 && (c.Done == 0 || c.Outcome == load.Timeout):
			stuck++
		case c.Done > 0 && c.Outcome.Good():
			good++
		default:
			other++
		}
	}
	return good, stuck, other
}

// TestPublishedShape repeats four of the published rates: the two highest, and two that the server can serve.
func TestPublishedShape(t *testing.T) {
	hosttest.SkipUnlessLong(t)
	tg, _ := prepared(t, embedded("blog-2020"), standard)
	for _, want := range []struct {
		rate, share, tolerance float64
	}{{100, 1, 0}, {150, 1, 0}, {500, 0.59, 0.03}, {1000, 0.795, 0.05}} {
		start := time.Now()
		calls := offer(t, tg, want.rate, 5*time.Second, 30*time.Second, 4096, 0)
		good, stuck, other := countShape(calls)
		inWindow := 0
		for _, c := range calls {
			if c.Outcome.Good() && c.Done < 5*time.Second {
				inWindow++
			}
		}
		share := float64(good) / float64(len(calls))
		t.Logf("%v/s: %d of %d good = %.2f%%, %d stuck, %d other, in window %.1f/s, queue %v, took %v",
			want.rate, good, len(calls), 100*share, stuck, other,
			float64(inWindow)/5, *tg.Observe(t.Context(), standard).ListenQueue, time.Since(start))
		if want.share < 1 && stuck != 1025 {
			t.Errorf("%v/s: %d calls got stuck, not backlog + 1 = 1025", want.rate, stuck)
		}
		if share < want.share-want.tolerance || share > want.share+want.tolerance {
			t.Errorf("%v/s: success %.3f, want %.3f ± %.3f", want.rate, share, want.share, want.tolerance)
		}
		start = time.Now()
		settle(t, tg.arm("default"))
		t.Logf("recovered in %v, restarts %d", time.Since(start), tg.arm("default").restarts)
	}
}

// TestBacklogPlusOneCallsGetStuck: whatever the rate, exactly backlog + 1 calls get stuck, since the kernel queues one
// connection more than listen(2) asked for. They are the ones that are open when all others have been answered, however
// long the host lets that take.
func TestBacklogPlusOneCallsGetStuck(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	const backlog = 16
	spec := embedded("blog-2020")
	spec.Embedded.MaxConns, spec.Embedded.Backlog = new(8), new(backlog)
	tg, _ := prepared(t, spec, standard)
	shares := map[float64]float64{}
	for _, rate := range []float64{300, 600} {
		calls := offer(t, tg, rate, time.Second, 2*time.Minute, 4096, backlog+1)
		good, stuck, other := countShape(calls)
		t.Logf("%v/s: %d good, %d stuck, %d other", rate, good, stuck, other)
		if stuck != backlog+1 || other != 0 {
			t.Errorf("%v/s: %d calls got stuck and %d failed otherwise, want %d and 0", rate, stuck, other, backlog+1)
		}
		shares[rate] = float64(good) / float64(len(calls))
		if q := tg.Observe(t.Context(), standard).ListenQueue; q == nil || *q > backlog+1 {
			t.Errorf("%v/s: listen queue %v", rate, q)
		}
		settle(t, tg.arm("default"))
	}
	if shares[600] <= shares[300] {
		t.Errorf("success does not rise with the rate: %v", shares)
	}
}

// settle waits until the endpoint answers on a new connection and none waits to be accepted.
func settle(t *testing.T, p *arm) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	w := p.adapter.wire(p.session("settle"))
	for i := uint64(0); ; i++ {
		_, err := p.call(ctx, w, i*uint64(p.identities), time.Second)
		if depth := kit.QueueDepth(ctx, p.listenQueue()); err == nil && (depth == nil || *depth == 0) {
			return
		}
		if p.env.Clock.Sleep(ctx, warmPause) != nil {
			t.Fatalf("no answer, or connections wait in the listen queue: %v", err)
		}
	}
}

// An ending is how a call ends: outcome, status and cause.
type ending struct {
	outcome load.Outcome
	status  uint16
	cause   verdict
}

// countEndings counts the calls of a short load by how they ended; they must be n.
func countEndings(t *testing.T, tg *target, n int) map[ending]int {
	t.Helper()
	const rate = 200
	calls := offer(t, tg, rate, time.Duration(n)*time.Second/rate, 20*time.Second, 64, 0)
	if len(calls) != n {
		t.Fatalf("%d calls, want %d", len(calls), n)
	}
	count := map[ending]int{}
	for _, c := range calls {
		e := ending{c.Outcome, c.Status, noCause}
		if c.Cause >= load.OwnCauses {
			e.cause = verdict(c.Cause - load.OwnCauses)
		} else if c.Cause != 0 {
			t.Errorf("a cause of the engine's: %s", c.Cause.Text(causes()))
		}
		count[e]++
	}
	return count
}

// TestCausesUnderLoad: both engines count calls by outcome, status and cause, whatever the server does.
func TestCausesUnderLoad(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const n = 60
	expect := func(t *testing.T, tg *target, want map[ending]int) {
		t.Helper()
		got := countEndings(t, tg, n)
		for e, k := range want {
			if got[e] != k {
				t.Errorf("%d calls ended as %+v, want %d; all: %+v", got[e], e, k, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("calls ended as %+v, want %+v", got, want)
		}
	}
	t.Run("imdsv2", func(t *testing.T) {
		m := startIMDSv2(t, fixture.Config{}, "node")
		tg, _ := prepared(t, &Spec{Adapter: "imdsv2", URL: m.URL}, standard)
		expect(t, tg, map[ending]int{{load.OK, 200, noCause}: n})
		m.Turn(fixture.Faults{Quota: 40})
		expect(t, tg, map[ending]int{{load.OK, 200, noCause}: 40, {load.Refused, 503, temporarilyUnavailable}: 20})
		m.Turn(fixture.Faults{})
		m.Forget()
		expect(t, tg, map[ending]int{{load.Wrong, 401, leaseRefused}: n})
	})
	t.Run("azure-imds", func(t *testing.T) {
		a := startAzure(t)
		tg, _ := prepared(t, &Spec{Adapter: "azure-imds", URL: a.URL}, standard)
		a.Turn(fixture.Faults{Every: 3, Status: 410, Latency: 5 * time.Millisecond})
		expect(t, tg, map[ending]int{{load.OK, 200, noCause}: 40, {load.Failed, 410, temporarilyUnavailable}: 20})
	})
	t.Run("k8s-tokenrequest", func(t *testing.T) {
		k, trust, secret := startKubernetes(t, fixture.Config{})
		spec := &Spec{
			Adapter: "k8s-tokenrequest", URL: k.URL, TLS: trust,
			K8s: &K8s{Namespace: "team", ServiceAccount: "robot", Audiences: []string{"a-{n}"}, Token: secret("requester")},
		}
		tg, _ := prepared(t, spec, standard)
		k.Turn(fixture.Faults{Quota: 50})
		expect(t, tg, map[ending]int{{load.OK, 201, noCause}: 50, {load.Refused, 429, slowDown}: 10})
	})
	t.Run("k8s-tokenreview", func(t *testing.T) {
		k, trust, secret := startKubernetes(t, fixture.Config{})
		spec := &Spec{
			Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust,
			K8s: &K8s{Namespace: "team", ServiceAccount: "robot", Token: secret("admin")},
		}
		tg, _ := prepared(t, spec, standard)
		k.Turn(fixture.Faults{Every: 4, Status: 500})
		expect(t, tg, map[ending]int{{load.OK, 201, noCause}: 45, {load.Failed, 500, noCause}: 15})
	})
}

// TestEndpointLimitsItselfWithoutControlGroups: it says so in every report, and still serves about 163/s.
func TestEndpointLimitsItselfWithoutControlGroups(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	tg, j := prepared(t, embedded("cpu-only"), standard, func(tg *target) {
		tg.planGroup = func(string) (string, error) { return "", fmt.Errorf("test: %w", proc.ErrNoCgroup) }
	})
	if err := errors.Join(tg.Enter(t.Context(), standard), tg.Verify(t.Context(), standard)); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, noteThrottle) {
		t.Errorf("notes %q", notes)
	}
	for _, c := range j.Changes() {
		if c.Kind == changeCgroup {
			t.Errorf("a group is journaled that was never made: %v", c)
		}
	}
	wantThrottledNear163(t, tg)
}

func TestGroupLimits(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	tg, _ := prepared(t, embedded("cpu-only"), standard)
	if tg.arm("default").group == nil {
		hosttest.Missing(t, "this host gives no control group", hosttest.Root)
	}
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	wantThrottledNear163(t, tg)
}

// wantThrottledNear163 overloads the endpoint for 2 s. It must never serve more than its price allows. It serves about
// as much, held back by its limit, only if this host gives it that much processor time, so a try during which others
// used the processors is repeated.
func wantThrottledNear163(t *testing.T, tg *target) {
	t.Helper()
	const tries = 8
	wrong := ""
	for range 2 { // quiet tries
		for try := 0; ; try++ {
			if try == tries {
				hosttest.Missing(t, fmt.Sprintf("others had the processors in each of %d tries; the last: %s", tries, wrong),
					hosttest.Quiet)
			}
			free := cpuShare(t)
			if err := tg.Enter(t.Context(), standard); err != nil { // periods count from here
				t.Fatal(err)
			}
			rate := overload(t, tg)
			free = min(free, cpuShare(t))
			throttled := tg.Observe(t.Context(), standard).Throttled
			if throttled == nil {
				t.Fatal("the share of throttled periods is not known")
			}
			t.Logf("%.1f/s, throttled in %.2f of the periods, %.2f of a processor to be had", rate, *throttled, free)
			if rate > 190 {
				t.Fatalf("%.1f/s, want about 163 and never more", rate)
			}
			if rate >= 80 && *throttled >= 0.5 {
				return
			}
			wrong = fmt.Sprintf("%.1f/s, want about 163; throttled in %.2f of the periods, want most", rate, *throttled)
			if free > 0.9 {
				break
			}
		}
	}
	t.Error("on a quiet host, twice: " + wrong)
}

// overload returns how many calls a second the endpoint serves of 300/s.
func overload(t *testing.T, tg *target) float64 {
	t.Helper()
	const seconds = 2
	in := 0
	for _, c := range offer(t, tg, 300, seconds*time.Second, time.Minute, 64, 0) {
		if c.Outcome != load.OK {
			t.Fatalf("a call ended as %v", c.Outcome)
		}
		if c.Done < seconds*time.Second {
			in++
		}
	}
	return float64(in) / seconds
}

// cpuShare returns the smallest share of a processor that this host gives to threads that want all of it.
func cpuShare(t *testing.T) float64 {
	t.Helper()
	const long = 200 * time.Millisecond
	before, begin := load.ProcessCPU(), time.Now()
	var all sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for range n {
		all.Go(func() {
			for time.Since(begin) < long {
			}
		})
	}
	all.Wait()
	return (load.ProcessCPU() - before) / time.Since(begin).Seconds() / float64(n)
}

// TestControlGroupsOfKilledTestsAreRemoved kills tests that have a control group, none of which may stay on this host.
func TestControlGroupsOfKilledTestsAreRemoved(t *testing.T) {
	if os.Getenv("TARE_TEST_DIE") != "" {
		tg, _ := prepared(t, embedded("cpu-only"), standard)
		fmt.Printf("group %s\n", tg.arm(standard.ID).group.Path())
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if _, err := proc.PlanCgroup(proc.CgroupName("x", serverEndpoint)); err != nil {
		hosttest.Missing(t, "this host gives no control group", hosttest.Root)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestControlGroupsOfKilledTestsAreRemoved$")
	c.Env = append(os.Environ(), "TARE_TEST_DIE=1", "TMPDIR="+t.TempDir()) // it cannot clean up
	c.WaitDelay = 10 * time.Second
	out, err := c.Output()
	_, path, ok := strings.Cut(string(out), "group ")
	path = strings.TrimSpace(path)
	if err == nil || !ok {
		t.Fatalf("the tests did not die with a group: %v\n%s", err, out)
	}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	t.Errorf("%s is left", path)
}
