package identity

import (
	"testing"
	"time"

	"tare/areas/identity/fixture"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

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
	calls := offerBurst(t, tg, rate, time.Duration(n)*time.Second/rate, 20*time.Second, 64)
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
