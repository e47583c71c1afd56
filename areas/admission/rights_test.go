package admission

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/internal/clock"
	"tare/internal/load"
	"tare/internal/ratelimit"
	"tare/rigs/hosttest"
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
	wantNotes(t, notes, "client-side only", `cannot get path`, "from samples alone", "attribution")
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

// TestDoctorRBACSaysWhatIsMissing, and who else can read the kubeconfig.
func TestDoctorRBACSaysWhatIsMissing(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	path := fakeCluster(t, []string{"delete namespaces", "get /metrics"}, map[string]apiAnswer{
		"GET /apis/authentication.k8s.io/v1": {Body: map[string]any{
			"kind": "APIResourceList", "groupVersion": "authentication.k8s.io/v1",
			"resources": []any{map[string]any{"name": "selfsubjectreviews", "kind": "SelfSubjectReview"}},
		}},
		"POST /apis/authentication.k8s.io/v1/selfsubjectreviews": {Body: map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
			"status": map[string]any{"userInfo": map[string]any{"username": "jane"}},
		}},
	})
	run := func(args ...string) (int, string, string) {
		c := rbacMode()
		f := flag.NewFlagSet(c.Flag, flag.ContinueOnError)
		c.Flags(f)
		if err := f.Parse(append([]string{"--kubeconfig", path}, args...)); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		err := c.Run(t.Context(), &area.Shell{
			Print: func(format string, args ...any) { fmt.Fprintf(&out, format, args...) },
			Tell:  func(format string, args ...any) { fmt.Fprintf(&errs, format, args...) },
		})
		if err == nil {
			return 0, out.String(), errs.String()
		}
		exit, ok := errors.AsType[area.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		return exit.Code, out.String(), errs.String() + err.Error()
	}
	code, out, errs := run("--mechanism", "vap")
	if code != 0 || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"kind: ClusterRole\n", "  - validatingadmissionpolicybindings\n",
		"# jane lacks 2 of 15:\n#   delete namespaces\n#   get /metrics (optional)\n",
		"without it how many policies looked at a request is known from samples alone", "Kubernetes v1.36.3",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "mutating") || strings.Contains(out+errs, clusterToken) {
		t.Errorf("the output holds an unused right or the token:\n%s", out)
	}
	if code, out, errs := run("--metrics=false", "--mechanism", "vap"); code != 0 || errs != "" ||
		strings.Contains(out, "/metrics") || !strings.Contains(out, "lacks 1 of 14:") {
		t.Errorf("without metrics: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := run("--context", "y"); code != 2 || !strings.Contains(errs, `no context "y"; there are: x`) {
		t.Errorf("exit %d, %s", code, errs)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(); code != 0 ||
		!strings.Contains(errs, "warning: other users can read the file with secrets "+path) {
		t.Errorf("a kubeconfig that others can read: exit %d, %s", code, errs)
	}
}

// TestPreflightMissesControllers: a cluster without a controller-manager is refused before anything is created there,
// and one whose accounts the user may not read is not.
func TestPreflightMissesControllers(t *testing.T) {
	status := func(code int, reason string) apiAnswer {
		return apiAnswer{Status: code, Body: map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
		}}
	}
	for reason, code := range map[string]int{"NotFound": http.StatusNotFound, "Forbidden": http.StatusForbidden} {
		path := fakeCluster(t, nil, map[string]apiAnswer{"GET " + defaultAccount: status(code, reason)})
		found := Area{}.Preflight(t.Context(), &Spec{Kubeconfig: path}, testEnv(t))
		said := slices.ContainsFunc(found, func(f area.Finding) bool {
			return f.Severity == area.Error && strings.Contains(f.Message, "no controller-manager seems to run") &&
				strings.Contains(f.Hint, "tare plane up --nodes 1")
		})
		if said != (reason == "NotFound") {
			t.Errorf("%s: %+v", reason, found)
		}
	}
}
