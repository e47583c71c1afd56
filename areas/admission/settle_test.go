package admission

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/clock"
)

// An oracle answers as an API server whose engine denies or admits, or does not answer in time.
type oracle struct {
	mu    sync.Mutex
	clock *clock.Fake
	says  []string // by turns; the last one for ever
}

// ServeHTTP implements http.Handler.
func (o *oracle) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	says := o.says[0]
	if len(o.says) > 1 {
		o.says = o.says[1:]
	}
	fails := func(code int, message string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"code":%d}`,
			message, code)
	}
	switch says {
	case "deny":
		fails(http.StatusForbidden, `admission webhook "validation.gatekeeper.sh" denied the request: [no-host-pid] no`)
	case "fail":
		fails(http.StatusInternalServerError, `Internal error occurred: failed calling webhook "x": context deadline exceeded`)
	case "stall":
		o.clock.Advance(3 * time.Second)
		fallthrough
	default:
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"kind":"Pod"}`)
	}
}

// askedOf is an arm whose API server says this, after it has been asked for one request.
func askedOf(t *testing.T, tg *target, bundle string, says ...string) *arm {
	t.Helper()
	now := clock.NewFake(time.Unix(0, 0))
	s := httptest.NewServer(&oracle{clock: now, says: says})
	t.Cleanup(s.Close)
	set, err := own.Read("testdata/gatekeeper", false)
	if err != nil {
		t.Fatal(err)
	}
	p := renderingArm(t)
	p.env, p.treatment, p.declared, p.ready = testEnv(t), treatment("bundle", bundle), &Spec{}, true
	p.spec = p.declared
	if p.policies.own, err = p.anywhere(set); err != nil {
		t.Fatal(err)
	}
	keeper := fakeKeeper(t, nil)
	p.policies.keeper, p.asker = keeper, &asker{client: s.Client(), server: s.URL, clock: now, cluster: keeper}
	f := &p.policies.finding
	*f = finding{
		requests: []own.Request{{Name: "pod with the host's processes", Kind: "Pod"}}, proof: map[string]int{},
		alone: map[string]bool{}, refused: map[int]bool{}, undecided: map[int]bool{}, changes: map[int]own.Changes{},
		failures: map[string]failure{}, met: map[string][]int{}, first: map[string]bool{},
	}
	if err := p.askEach(t.Context(), f, 0, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := tg.arms.Add(p.treatment, func(int) *arm { return p }); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOneStallDecidesNothing: what is admitted while an engine that may be ignored does not answer is asked for again,
// and so is what treatments decide differently. Neither side has what is answered differently.
func TestOneStallDecidesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		base, pr []string
		want     string // of both: refused, permitted or undecided
	}{
		"the same":                       {[]string{"deny"}, []string{"deny"}, "refused refused"},
		"a loosening":                    {[]string{"deny"}, []string{"admit"}, "refused permitted"},
		"a stall under the change":       {[]string{"deny"}, []string{"stall", "deny"}, "refused refused"},
		"a stall that hides a loosening": {[]string{"stall", "deny"}, []string{"admit"}, "refused permitted"},
		"a failure that hides one":       {[]string{"fail", "deny"}, []string{"admit"}, "refused permitted"},
		"an engine that is never there":  {[]string{"stall"}, []string{"admit"}, "undecided permitted"},
		"a server that always fails":     {[]string{"deny"}, []string{"fail"}, "refused undecided"},
		"once admitted, then refused":    {[]string{"deny"}, []string{"admit", "deny"}, "refused undecided"},
		"once refused, then admitted":    {[]string{"deny", "admit"}, []string{"admit"}, "undecided permitted"},
		"refused the last time": {
			[]string{"deny"}, []string{"admit", "admit", "deny"}, "refused undecided",
		},
		"a stall while it is confirmed": {
			[]string{"deny"}, []string{"admit", "stall", "admit"}, "refused permitted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tg := &target{}
			all := []*arm{askedOf(t, tg, "main", c.base...), askedOf(t, tg, "pr", c.pr...)}
			rulings, err := tg.Rulings(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range all {
				for _, r := range rulings[p.treatment.ID].Of {
					switch {
					case r.Undecided && !r.Refused:
						got = append(got, "undecided")
					case r.Refused:
						got = append(got, "refused")
					default:
						got = append(got, "permitted")
					}
				}
			}
			if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
				t.Errorf("decided (-want +got):\n%s", d)
			}
		})
	}
}

// TestWebhookThatIsAwayIsNoPolicy: what could not be asked has not objected to the measured pod, and another pod would
// not help.
func TestWebhookThatIsAwayIsNoPolicy(t *testing.T) {
	const want = "no policy has judged the pod that is measured, since a webhook could not be called: " +
		`Internal error occurred: failed calling webhook "x"`
	err := askedOf(t, &target{}, "pr", "fail").admits(t.Context())
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "name a pod") {
		t.Error(err)
	}
	if err := askedOf(t, &target{}, "pr", "admit").admits(t.Context()); err != nil {
		t.Error(err)
	}
	denies := answer{status: http.StatusForbidden, body: []byte(`{"kind":"Status","status":"Failure","code":403,` +
		`"message":"admission webhook \"a\" denied the request: failed calling webhook \"x\""}`)}
	if denies.webhookIsAway() {
		t.Error("a denial that quotes such a failure is taken for one")
	}
}

// TestNothingIsWaitedForThatCountsAtOnce: the API server has counted an objection before it answers, so that beside an
// engine without counts nothing is gained by waiting. The counts of an engine may still come.
func TestNothingIsWaitedForThatCountsAtOnce(t *testing.T) {
	for _, c := range []struct {
		kind *engine.Kind
		want int // readings of the API server's counts
	}{{engine.Gatekeeper, 2}, {engine.Kyverno, 4}} {
		now, read := clock.NewFake(time.Unix(0, 0)), 0
		s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") == "gzip" {
				t.Error("metrics are compressed on the way to the same host")
			}
			read++
			now.Advance(4 * time.Second)
		}))
		t.Cleanup(s.Close)
		counts := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(counts.Close)
		p := renderingArm(t)
		p.env.Clock, p.policies.own = now, &own.InForce{}
		p.engines = []*runningEngine{{engineProcess: engineProcess{kind: c.kind, ready: engine.Ready{Metrics: counts.URL}}}}
		var err error
		if p.admin, err = cluster.New(t.Context(), cluster.Options{
			Run: "r", Server: s.URL, Token: "x",
			CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		}); err != nil {
			t.Fatal(err)
		}
		p.policies.keeper = p.admin
		t.Cleanup(p.admin.Close)
		err = p.proveObjections(t.Context(), mechanism.Proof{Object: []string{"tare-x-0.lost"}},
			func(context.Context) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "1 policy no longer objects") || read != c.want {
			t.Errorf("%s: %v after %d readings, want %d", c.kind.Name, err, read, c.want)
		}
	}
}
