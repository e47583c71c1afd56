package admission

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/internal/clock"
	"tare/internal/load"
	"tare/internal/ratelimit"
)

// clusterLacking is a cluster whose user lacks some rights, such as "delete namespaces", and which refuses its metrics.
func clusterLacking(t *testing.T, lacks ...string) (kubeconfig string) {
	t.Helper()
	return fakeCluster(t, lacks, map[string]apiAnswer{
		"GET /metrics": {Status: http.StatusForbidden, Body: map[string]any{
			"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": http.StatusForbidden, "reason": "Forbidden",
			"message": `forbidden: User "jane" cannot get path "/metrics"`,
		}},
	})
}

// TestPreflightAsksForMetrics: without the right to read metrics a run is warned about what it loses; without another
// right it cannot start.
func TestPreflightAsksForMetrics(t *testing.T) {
	for _, c := range []struct {
		lacks      []string
		warns, bad []string // words of the warning and of the error
	}{
		{nil, nil, nil},
		{[]string{"get /metrics"}, []string{"the right to get /metrics", "from samples alone", "attribution"}, nil},
		{[]string{"delete namespaces"}, nil, []string{"lacks 1 right that the run needs: delete namespaces"}},
		{
			[]string{"get /metrics", "create pods"},
			[]string{"get /metrics"},
			[]string{"lacks 1 right that the run needs: create pods"},
		},
	} {
		got := map[area.Severity][]string{}
		for _, f := range (Area{}).Preflight(t.Context(), &Spec{Kubeconfig: clusterLacking(t, c.lacks...)}, testEnv(t)) {
			got[f.Severity] = append(got[f.Severity], f.Message)
			if f.Severity != area.Info && f.Hint == "" {
				t.Errorf("%v: no next step: %+v", c.lacks, f)
			}
		}
		for severity, want := range map[area.Severity][]string{area.Warning: c.warns, area.Error: c.bad} {
			said := got[severity]
			if len(said) > 1 || (len(said) == 0) != (len(want) == 0) {
				t.Errorf("lacking %v, %v: %q, want %q", c.lacks, severity, said, want)
			}
			for _, w := range want {
				if !strings.Contains(strings.Join(said, ""), w) {
					t.Errorf("lacking %v, %v: %q lacks %q", c.lacks, severity, said, w)
				}
			}
		}
	}
}

// TestNoteOfMetrics: the report says what it lacks because the server's metrics could not be read.
func TestNoteOfMetrics(t *testing.T) {
	c, err := cluster.New(t.Context(), cluster.Options{Run: "x", Kubeconfig: clusterLacking(t), Clock: testEnv(t).Clock})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := &arm{plan: plan{foreign: true}, admin: c, endpoint: &load.Endpoint{Host: c.Host()}}
	if notes := strings.Join(p.notes(), "\n"); strings.Contains(notes, "metrics") {
		t.Errorf("before it was tried: %s", notes)
	}
	if err := p.checkMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.notes(), "\n")
	for _, want := range []string{"client-side only", `cannot get path`, "from samples alone", "attribution"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
}

// TestWatchTakesTurns: the watch of pods shares max_rate, however often the server makes it begin anew.
func TestWatchTakesTurns(t *testing.T) {
	k := clock.NewFake(time.Unix(0, 0))
	c, err := cluster.New(t.Context(), cluster.Options{
		Run: "x", Limit: ratelimit.New(k, 1), Kubeconfig: fakeCluster(t, nil, map[string]apiAnswer{
			"GET /api/v1/namespaces/n/pods": {Body: map[string]any{"kind": "PodList", "apiVersion": "v1"}},
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := chosen([]string{startupName})
	if err != nil {
		t.Fatal(err)
	}
	p := &arm{env: testEnv(t), admin: c, caller: c, namespace: "n", operations: all}
	if err := p.watchPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer p.watch.Close()
	for end := time.Now().Add(20 * time.Second); k.Now().Before(time.Unix(3, 0)); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the watch has taken turns for %v", k.Now().Sub(time.Unix(0, 0)))
		}
	}
}
