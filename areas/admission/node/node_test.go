package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/internal/clock"
)

func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func TestConfigsThatAreRefused(t *testing.T) {
	good := Config{Server: "https://127.0.0.1:1", Nodes: 1}
	for want, change := range map[string]func(*Config){
		"0 is not within 1 to 5000":    func(c *Config) { c.Nodes = 0 },
		"5001 is not within 1 to 5000": func(c *Config) { c.Nodes = 5001 },
		"latency":                      func(c *Config) { c.Latency = -1 },
		"most_pods":                    func(c *Config) { c.MostPods = -1 },
		"either a kubeconfig or":       func(c *Config) { c.Kubeconfig = "/x" },
		"either a kubeconfig":          func(c *Config) { c.Server = "" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !contains(err.Error(), want) {
			t.Errorf("%+v: %v, want it to say %q", c, err, want)
		}
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

// TestOnlyLoopback: simulated nodes on a real cluster would attract real pods, so only numeric loopback addresses are
// accepted.
func TestOnlyLoopback(t *testing.T) {
	for server, ok := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://127.8.9.10:1": true, "https://[::1]:6443": true,
		"https://[::ffff:127.0.0.1]:6443": true,
		"https://10.0.0.1:6443":           false, "https://192.168.1.1": false, "https://localhost:6443": false,
		"https://kubernetes.default":    false,
		"https://127.0.0.1.example.org": false, "https://0.0.0.0:6443": false, "": false, "https://[::]:1": false,
		"127.0.0.1:6443":                false,
		"https://127.0.0.1@example.org": false, "https://example.org#127.0.0.1": false, "https://[fe80::1%25lo]:1": false,
		"https://2130706433": false,
	} {
		if err := checkLoopback(server); (err == nil) != ok {
			t.Errorf("checkLoopback(%q) returned %v, want the opposite", server, err)
		}
	}
	err := Run(t.Context(), Config{Server: "https://198.51.100.1:6443", Nodes: 1}, func(Ready) error { return nil })
	if err == nil || !contains(err.Error(), "198.51.100.1", "not a loopback address") {
		t.Error(err)
	}
}

// FuzzLoopback: an accepted address is a loopback address when it is dialled.
func FuzzLoopback(f *testing.F) {
	for _, s := range []string{
		"https://127.0.0.1:6443", "https://[::1]", "https://10.1.1.1",
		"https://127.0.0.1@10.1.1.1/", "//127.0.0.1", "https://[::ffff:10.0.0.1]", "http://127.1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, server string) {
		if checkLoopback(server) != nil {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server, http.NoBody)
		if err != nil {
			return // nothing can be asked of it
		}
		host, _, _ := strings.Cut(r.URL.Hostname(), "%") // a zone
		if ip := net.ParseIP(host); !ip.IsLoopback() {
			t.Errorf("%q leads to %s", server, host)
		}
	})
}

func TestKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://203.0.113.9:6443", proxy-url: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Config{Kubeconfig: file, Nodes: 1}, func(Ready) error { return nil })
	if err == nil || !contains(err.Error(), "203.0.113.9", "not a loopback address") {
		t.Error(err)
	}
	err = Run(t.Context(), Config{Kubeconfig: file + "-none", Nodes: 1}, func(Ready) error { return nil })
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestRegistration(t *testing.T) {
	a := newAPI(t)
	f := a.fleet(30, clock.System{})
	f.cfg.Labels = map[string]string{"tare.dev/run": "r1"}
	if err := f.registerAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(a.nodes) != 30 || len(a.leases) != 30 {
		t.Fatalf("%d nodes, %d leases", len(a.nodes), len(a.leases))
	}
	for name, n := range a.nodes {
		switch {
		case len(n.Spec.Taints) > 0:
			t.Errorf("%s is tainted", name)
		case n.Labels[Label] != "true" || n.Labels["tare.dev/run"] != "r1" || n.Labels[corev1.LabelHostname] != name:
			t.Errorf("%s has labels %v", name, n.Labels)
		case n.Status.Conditions[0].Type != corev1.NodeReady || n.Status.Conditions[0].Status != corev1.ConditionTrue:
			t.Errorf("%s has conditions %v", name, n.Status.Conditions)
		case n.Status.Allocatable.Pods().Value() != defaultMostPods:
			t.Errorf("%s has room for %v pods", name, n.Status.Allocatable.Pods())
		}
		if l := a.leases[name]; l == nil || *l.Spec.HolderIdentity != name || *l.Spec.LeaseDurationSeconds != 40 ||
			l.Spec.RenewTime.IsZero() {
			t.Errorf("lease of %s: %+v", name, l)
		}
	}
	if n := len(a.newRequests()); n != 3*30 {
		t.Errorf("%d requests for 30 new nodes", n)
	}
	// Another simulator takes over what is there.
	a.nodes["tare-node-00003"].Spec.Taints = []corev1.Taint{{Key: "x"}}
	g := a.fleet(30, clock.System{})
	if err := g.registerAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(a.nodes["tare-node-00003"].Spec.Taints) != 0 || a.count(http.MethodPatch, "/status") != 30 ||
		a.count(http.MethodPut, "") != 30 {
		t.Errorf("%d status posts, %d renewals", a.count(http.MethodPatch, "/status"), a.count(http.MethodPut, ""))
	}
}

func TestRegistrationFailsAndIsRepeated(t *testing.T) {
	a := newAPI(t)
	a.refuseWhere(func(method, _ string) int {
		if method == http.MethodPost {
			return http.StatusForbidden
		}
		return 0
	})
	if err := a.fleet(50, clock.System{}).registerAll(t.Context()); err == nil ||
		!contains(err.Error(), "register node tare-node-", "create") {
		t.Error(err)
	}
	if n := a.count(http.MethodPost, ""); n > 2*registrars {
		t.Errorf("%d requests though all are forbidden", n)
	}
	failures := 3
	a.refuseWhere(func(method, path string) int { // the leases' namespace comes a little later
		if method == http.MethodPost && strings.HasSuffix(path, "/leases") && failures > 0 {
			failures--
			return http.StatusNotFound
		}
		return 0
	})
	if err := a.fleet(2, clock.System{}).registerAll(t.Context()); err != nil || len(a.leases) != 2 {
		t.Errorf("%d leases: %v", len(a.leases), err)
	}
	// A server that never answers is given up.
	a.refuseWhere(func(string, string) int { return http.StatusInternalServerError })
	k := clock.NewFake(time.Unix(1e9, 0))
	if err := a.fleet(1, k).registerAll(t.Context()); err == nil || k.Now().Sub(time.Unix(1e9, 0)) < patience {
		t.Errorf("after %v: %v", k.Now().Sub(time.Unix(1e9, 0)), err)
	}
}

func TestOtherNodesAreRefused(t *testing.T) {
	a := newAPI(t)
	f := a.fleet(1, clock.System{})
	if err := f.checkOthers(t.Context()); err != nil {
		t.Error(err)
	}
	if err := f.registerAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.checkOthers(t.Context()); err != nil {
		t.Errorf("beside its own: %v", err)
	}
	a.nodes["kind-worker"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kind-worker"}}
	if err := f.checkOthers(t.Context()); err == nil || !contains(err.Error(), "kind-worker", "not simulated") {
		t.Error(err)
	}
}

// TestHeartbeatsAreSpread: all nodes have their turn once in each round, evenly spread; turns missed in a long pause
// are dropped.
func TestHeartbeatsAreSpread(t *testing.T) {
	for _, n := range []int{1, 3, 1000, MostNodes} {
		k := clock.NewFake(time.Unix(1e9, 0))
		f := &fleet{clock: k, nodes: make([]*node, n)}
		for i := range f.nodes {
			f.nodes[i] = &node{}
		}
		var at []time.Time
		f.pace(t.Context(), func(*node) bool {
			at = append(at, k.Now())
			if len(at) == n+1 {
				k.Advance(10 * leaseEvery) // the machine slept
			}
			return len(at) < 3*n+1
		})
		step := leaseEvery / time.Duration(n)
		for i := 1; i <= n; i++ {
			if d := at[i].Sub(at[i-1]); d != step {
				t.Fatalf("%d nodes: turn %d came %v after the one before, want %v", n, i, d, step)
			}
		}
		if d := at[3*n].Sub(at[n+1]); d > time.Duration(2*n)*step || (n > 1 && d < time.Duration(n)*step) {
			t.Errorf("%d nodes: two rounds after a pause took %v", n, d)
		}
	}
}

func TestRenewal(t *testing.T) {
	a := newAPI(t)
	k := clock.NewFake(time.Unix(1e9, 0))
	f := a.fleet(1, k)
	n := f.nodes[0]
	f.renew(t.Context(), n)
	if got := a.newRequests(); len(got) != 0 {
		t.Errorf("before it is registered: %v", got)
	}
	if err := f.registerAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.newRequests()
	const (
		lease  = "PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/tare-node-00000"
		read   = "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/tare-node-00000"
		lend   = "POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
		status = "PATCH /api/v1/nodes/tare-node-00000/status"
		create = "POST /api/v1/nodes"
		clean  = "PATCH /api/v1/nodes/tare-node-00000"
	)
	for _, c := range []struct {
		name    string
		pass    time.Duration
		prepare func()
		want    []string
	}{
		{"one request", leaseEvery, nil, []string{lease}},
		{"again", leaseEvery, nil, []string{lease}},
		{"somebody changed it", leaseEvery, func() { a.leases[n.name].ResourceVersion = "x" }, []string{lease}},
		{"it is read again", leaseEvery, nil, []string{read, lease}},
		{"somebody deleted it", leaseEvery, func() { delete(a.leases, n.name) }, []string{lease}},
		{"it is made again", leaseEvery, nil, []string{read, lend}},
		{"a time without a lease", 3 * leaseEvery, nil, []string{status, lease}},
		{"the status is due", statusEvery, func() { n.renewed = k.Now().Add(statusEvery) }, []string{lease}},
		{"now", leaseEvery, nil, []string{status, lease}},
		{
			"somebody deleted the node", 3 * leaseEvery, func() { delete(a.nodes, n.name) },
			[]string{status, clean, lend, create, lease, lease},
		},
	} {
		if c.prepare != nil {
			c.prepare()
		}
		k.Advance(c.pass)
		f.renew(t.Context(), n)
		got := a.newRequests()
		if d := cmp.Diff(sorted(c.want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	if l := a.leases[n.name]; !l.Spec.RenewTime.Time.Equal(k.Now()) {
		t.Errorf("renewed at %v, it is %v", l.Spec.RenewTime, k.Now())
	}
}

// TestRunEnds: a simulator ends when its context does, and leaves no goroutine.
func TestRunEnds(t *testing.T) {
	a := newAPI(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the parent is gone")
	err := Run(ctx, a.config(3), func(r Ready) error {
		if r.Nodes != 3 || !contains(r.Note, "control plane only", "3 nodes are simulated") {
			t.Errorf("got %+v, want 3 nodes and a note about the simulation", r)
		}
		cancel(gone)
		return nil
	})
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	if err := Run(t.Context(), a.config(3), func(Ready) error { return gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func TestNote(t *testing.T) {
	if got := (Config{Nodes: 7, Latency: 0.25}).Note(); !contains(got, "control plane only", "7 nodes", "fixed 250ms") {
		t.Error(got)
	}
}
