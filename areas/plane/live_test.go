package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/rigs/hosttest"
)

// realBinary is one that is there already: tests do not build for minutes.
func realBinary(t *testing.T, v Version) Binary {
	t.Helper()
	hosttest.SkipIfShort(t)
	b, ok := Cached(t.Context(), v, Host{Getenv: os.LookupEnv})
	if !ok {
		hosttest.Missing(t, fmt.Sprintf("no control plane of Kubernetes %s is built", v), hosttest.Plane)
	}
	hosttest.Place(t)
	return b
}

// request asks the server as one of its users, or as nobody, and gives the status and the answer.
func request(t *testing.T, p *Plane, token, method, path string, body any) (int, string) {
	t.Helper()
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, p.Server()+path, &text)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	said, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(said)
}

func want(t *testing.T, p *Plane, status int, token, method, path string, body any) string {
	t.Helper()
	got, said := request(t, p, token, method, path, body)
	if got != status {
		t.Errorf("%s %s: %d, want %d: %.300s", method, path, got, status, said)
	}
	return said
}

// unlinked is what Kubernetes calls itself where the linker was not told its version.
const unlinked = "v0.0.0-master"

type object map[string]any

func named(name string) object { return object{"metadata": object{"name": name}} }

func pod(name string) object {
	o := named(name)
	o["spec"] = object{"containers": []object{{"name": "c", "image": "registry.k8s.io/pause:3.10"}}}
	return o
}

func TestRealPlane(t *testing.T) {
	for _, v := range Versions() {
		t.Run(string(v), func(t *testing.T) {
			d := &diary{}
			c := d.config(t, realBinary(t, v))
			c.Nodes = true
			c.Flags = []string{"--max-requests-inflight=123"}
			p := begin(t, c)
			t.Logf("ready after %.1f s", p.ReadySeconds)
			checkProbes(t, p, []string{Etcd, APIServer, Scheduler, ControllerManager})
			checkSecrets(t, p)
			checkUsers(t, p)
			if said := want(t, p, 200, p.AdminToken, "GET", "/version", nil); !strings.Contains(said, c.Binary.Kubernetes) &&
				!strings.Contains(said, unlinked) {
				t.Errorf("it says %s, and is %s", said, c.Binary.Kubernetes)
			}
			checkScheduler(t, p)
			checkEgress(t, p)
			checkRestart(t, p)
			processes := p.Processes()
			end(t, p)
			d.nothingLeft(t)
			for _, c := range processes {
				if c.Alive() {
					t.Errorf("%s still runs", c.Name)
				}
			}
		})
	}
}

// checkUsers looks at who may do what.
func checkUsers(t *testing.T, p *Plane) {
	t.Helper()
	want(t, p, 401, "", "GET", "/api/v1/namespaces", nil)
	want(t, p, 401, "", "GET", "/readyz", nil)
	want(t, p, 401, "wrong", "GET", "/api/v1/namespaces", nil)
	if said := want(t, p, 403, p.CallerToken, "GET", "/api/v1/namespaces", nil); !strings.Contains(said, CallerUser) {
		t.Errorf("it does not know the caller: %s", said)
	}
	want(t, p, 200, p.AdminToken, "GET", "/api/v1/namespaces", nil)
	want(t, p, 200, p.NodesToken, "GET", "/api/v1/nodes", nil)
	want(t, p, 201, p.AdminToken, "POST", "/api/v1/namespaces/default/pods", pod("nowhere"))
	other := object{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
		"spec": object{"namespace": "default"},
	}
	said := want(t, p, 201, p.CallerToken, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", other)
	for _, right := range []string{`"pods"`, `"secrets"`, `"configmaps"`} {
		if strings.Contains(said, right) {
			t.Errorf("the caller has a right on %s: %s", right, said)
		}
	}
}

// checkScheduler waits until the scheduler has said that there is no node for the pod: it works, and may write.
func checkScheduler(t *testing.T, p *Plane) {
	t.Helper()
	wait(t, "the scheduler to look at a pod", func() bool {
		_, said := request(t, p, p.AdminToken, "GET", "/api/v1/namespaces/default/pods/nowhere", nil)
		return strings.Contains(said, `"PodScheduled"`)
	})
}

// checkEgress has the server asked for a node at an address of somebody's choice, on its port for kubelets and on
// another one, and for this host's logs.
func checkEgress(t *testing.T, p *Plane) {
	t.Helper()
	out := named("out")
	out["status"] = object{"addresses": []object{{"type": "InternalIP", "address": "203.0.113.5"}}}
	want(t, p, 201, p.AdminToken, "POST", "/api/v1/nodes", out)
	for _, path := range []string{"http:out:8080/proxy/x", "out/proxy/x"} {
		status, said := request(t, p, p.AdminToken, "GET", "/api/v1/nodes/"+path, nil)
		if status < 500 || !strings.Contains(said, "dial unix no-nodes-pods-or-services") {
			t.Errorf("%s: the server calls a node: %d, %s", path, status, said)
		}
	}
	want(t, p, 200, p.AdminToken, "DELETE", "/api/v1/nodes/out", nil)
	want(t, p, 404, p.AdminToken, "GET", "/logs/", nil)
}

// checkRestart kills what everything depends on.
func checkRestart(t *testing.T, p *Plane) {
	t.Helper()
	want(t, p, 201, p.AdminToken, "POST", "/api/v1/namespaces", named("kept"))
	// etcd before 3.5.5 acknowledges a write of a single member before it is in its log (etcd-io/etcd#14370). It logs
	// one write after the other, so the first is in the log when the second is acknowledged.
	want(t, p, 201, p.AdminToken, "POST", "/api/v1/namespaces", named("after-it"))
	server := p.Server()
	if err := p.children[Etcd].Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.children[Etcd].Exited()
	if err := p.Failed(); err == nil || !strings.Contains(err.Error(), Etcd+": ") ||
		!strings.Contains(err.Error(), "killed") {
		t.Errorf("failed: %v, want that etcd was killed", err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, p, 200, p.AdminToken, "GET", "/api/v1/namespaces/kept", nil)
	if p.Server() != server || p.Failed() != nil {
		t.Errorf("it is at %s now, was at %s; failed: %v", p.Server(), server, p.Failed())
	}
}

// TestRealPlanesSideBySide has small planes, one on disk, which know nothing of each other.
func TestRealPlanesSideBySide(t *testing.T) {
	b := realBinary(t, V136)
	dir := t.TempDir()
	planes, errs := make([]*Plane, 2), make([]error, 2)
	var wg sync.WaitGroup
	for i := range planes {
		wg.Go(func() {
			planes[i], errs[i] = Start(t.Context(), Config{
				Binary: b, Dir: dir, Name: fmt.Sprint(i),
				Etcd: []string{Tmpfs, Disk}[i],
			})
		})
	}
	wg.Wait()
	for i, p := range planes {
		if errs[i] != nil {
			t.Error(errs[i])
			continue
		}
		defer end(t, p)
	}
	if t.Failed() {
		t.FailNow()
	}
	want(t, planes[0], 201, planes[0].AdminToken, "POST", "/api/v1/namespaces", named("first"))
	want(t, planes[1], 404, planes[1].AdminToken, "GET", "/api/v1/namespaces/first", nil)
	want(t, planes[1], 401, planes[0].AdminToken, "GET", "/api/v1/namespaces", nil)
	if res, err := planes[0].client.Get(planes[1].Server()); err == nil {
		_ = res.Body.Close()
		t.Error("one plane's authority vouches for the other")
	}
	if data, err := filepath.Glob(filepath.Join(dir, "*-etcd", "member", "wal")); err != nil || len(data) != 1 {
		t.Errorf("data on disk: %v, %v", data, err)
	}
	for _, p := range planes {
		end(t, p)
	}
	if data, err := filepath.Glob(filepath.Join(dir, "*-etcd")); err != nil || len(data) != 0 {
		t.Errorf("left: %v, %v", data, err)
	}
	if logs, err := filepath.Glob(filepath.Join(dir, "kube-apiserver-*.log")); err != nil || len(logs) != 2 {
		t.Errorf("logs: %v, %v", logs, err)
	}
}

// TestRealPSP has the plugin deny a pod, since there is no policy, where a plane without it admits the same.
func TestRealPSP(t *testing.T) {
	b := realBinary(t, V124)
	for _, on := range []bool{false, true} {
		d := &diary{}
		c := d.config(t, b)
		c.PSP = on
		p := begin(t, c)
		want(t, p, 201, p.AdminToken, "POST", "/api/v1/namespaces/default/serviceaccounts", named("default"))
		status, said := 201, ""
		if on {
			status = 403
		}
		wait(t, "an answer about a pod", func() bool { // the plugin for ServiceAccounts sees a new one after a moment
			var got int
			got, said = request(t, p, p.AdminToken, "POST", "/api/v1/namespaces/default/pods", pod("p"))
			return got == status && (!on || strings.Contains(said, "PodSecurityPolicy"))
		})
		end(t, p)
		d.nothingLeft(t)
	}
}

// TestRealFault wants an error that helps when a flag is wrong.
func TestRealFault(t *testing.T) {
	d := &diary{}
	c := d.config(t, realBinary(t, V136))
	c.Flags = []string{"--no-such-flag=1"}
	p, err := Start(t.Context(), c)
	if err == nil {
		end(t, p)
	}
	if err == nil || !strings.Contains(err.Error(), APIServer) || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %v, want one about the flag", err)
	}
	d.nothingLeft(t)
}

// TestRealCancelled ends a start in the middle.
func TestRealCancelled(t *testing.T) {
	d := &diary{}
	c := d.config(t, realBinary(t, V136))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	p, err := Start(ctx, c)
	if err == nil {
		end(t, p)
		hosttest.Missing(t, "a control plane starts within a second", "run on a slower host")
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	d.nothingLeft(t)
	if _, err := os.Stat(filepath.Join(c.Dir, "kube-apiserver-x.log")); errors.Is(err, fs.ErrNotExist) {
		t.Error("no log is left to look at")
	}
}

var _ clock.Clock = (*turning)(nil)
