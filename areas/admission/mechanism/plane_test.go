package mechanism_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
	"tare/areas/plane"
	"tare/rigs/hosttest"
)

// api is a real API server that this test process has started, and one user of it.
type api struct {
	t      *testing.T
	plane  *plane.Plane
	client *http.Client
}

// startPlane starts a control plane without nodes. Without a binary there is nothing to test against; one that is named
// must work.
func startPlane(t *testing.T, v plane.Version) *api {
	t.Helper()
	hosttest.SkipIfShort(t)
	variable := map[plane.Version]string{plane.V136: "TARE_PLANE", plane.V124: "TARE_PLANE_PSP"}[v]
	binary, ok := plane.Cached(t.Context(), v, plane.Host{Getenv: os.LookupEnv})
	if !ok {
		if os.Getenv(variable) != "" {
			t.Fatalf("%s names no control plane of version %s", variable, v)
		}
		hosttest.Missing(t, fmt.Sprintf("no control plane of Kubernetes %s is built", v), hosttest.Plane)
	}
	hosttest.Place(t)
	p, err := plane.Start(t.Context(), plane.Config{Binary: binary, Dir: t.TempDir(), PSP: v == plane.V124})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close the plane: %v", err)
		}
	})
	return &api{t: t, plane: p, client: trusting(t, p.CA)}
}

// trusting is a client that trusts one authority alone.
func trusting(t *testing.T, ca []byte) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority is no certificate")
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// send sends one request as the administrator, or as the caller.
func (a *api) send(token, method, path string, body []byte) (status int, answer []byte) {
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.plane.Server()+path, bytes.NewReader(body))
	if err != nil {
		a.t.Error(err)
		return 0, nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Error(err)
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		a.t.Error(err)
	}
	return resp.StatusCode, answer
}

// create creates an object; it must not exist.
func (a *api) create(o *unstructured.Unstructured, r schema.GroupVersionResource) {
	body, err := o.MarshalJSON()
	if err != nil {
		a.t.Error(err)
		return
	}
	if status, answer := a.send(a.plane.AdminToken, http.MethodPost, collection(r, o.GetNamespace()),
		body); status != http.StatusCreated {
		a.t.Errorf("create %s %s: status %d: %s", o.GetKind(), o.GetName(), status, answer)
	}
}

func collection(r schema.GroupVersionResource, namespace string) string {
	path := "/api/" + r.Version
	if r.Group != "" {
		path = "/apis/" + r.Group + "/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Resource
}

// namespace creates a namespace with the service account that pods run as, and a caller who may create and update pods
// in it.
func (a *api) namespace(name string, labels map[string]string) {
	object := func(text string, args ...any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(fmt.Appendf(nil, text, args...)); err != nil {
			a.t.Fatal(err)
		}
		return o
	}
	ns := object(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	ns.SetLabels(labels)
	a.create(ns, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	a.create(object(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":%q}}`, name),
		schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"})
	rbac := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	a.create(object(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"caller","namespace":%q},
		"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["create","update","get","delete"]}]}`, name), rbac)
	rbac.Resource = "rolebindings"
	a.create(object(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"caller","namespace":%q},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"caller"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"tare-caller"}]}`, name), rbac)
}

// apply creates what was rendered, objects of one kind side by side.
func (a *api) apply(r mechanism.Rendered) {
	a.t.Helper()
	resources := map[string]schema.GroupVersionResource{}
	for _, gvr := range r.Resources {
		resources[strings.TrimSuffix(strings.TrimSuffix(gvr.Resource, "ies"), "s")] = gvr
	}
	for start := 0; start < len(r.Objects); {
		end := start
		for end < len(r.Objects) && r.Objects[end].GetKind() == r.Objects[start].GetKind() {
			end++
		}
		kind := strings.TrimSuffix(strings.ToLower(r.Objects[start].GetKind()), "y")
		gvr, ok := resources[kind]
		if !ok {
			a.t.Fatalf("no resource for %s among %v", kind, r.Resources)
		}
		inParallel(r.Objects[start:end], func(o *unstructured.Unstructured) { a.create(o, gvr) })
		start = end
	}
}

func inParallel[T any](all []T, do func(T)) {
	var wg sync.WaitGroup
	next := make(chan T)
	for range 8 {
		wg.Go(func() {
			for one := range next {
				do(one)
			}
		})
	}
	for _, one := range all {
		next <- one
	}
	close(next)
	wg.Wait()
}

// remove removes what carries the run's label, and says whether all of it is gone.
func (a *api) remove(r mechanism.Rendered, run, namespace string) {
	a.t.Helper()
	for _, gvr := range r.Resources {
		ns := ""
		if gvr.Group == "rbac.authorization.k8s.io" {
			ns = namespace
		}
		path := collection(gvr, ns) + "?labelSelector=tare.dev%2Frun%3D" + run
		if status, answer := a.send(a.plane.AdminToken, http.MethodDelete, path, nil); status != http.StatusOK {
			a.t.Errorf("remove %s: status %d: %s", gvr.Resource, status, answer)
		}
		var list struct{ Items []any }
		_, answer := a.send(a.plane.AdminToken, http.MethodGet, path, nil)
		if err := json.Unmarshal(answer, &list); err != nil || len(list.Items) != 0 {
			a.t.Errorf("%d of %s left (%v)", len(list.Items), gvr.Resource, err)
		}
	}
}

func (a *api) dryRun(namespace string, pod []byte) (int, []byte) {
	return a.send(a.plane.CallerToken, http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", pod)
}

// judge sends a probe.
func (a *api) judge(namespace string, p mechanism.Probe) error {
	return p.Judge(a.dryRun(namespace, p.Pod))
}

// inForce waits until every probe of the proof is answered as it must be, and says how long that took.
func (a *api) inForce(namespace string, proof mechanism.Proof) time.Duration {
	a.t.Helper()
	began := time.Now()
	for _, p := range append(slices.Clone(proof.Bad), proof.Good) {
		for {
			err := a.judge(namespace, p)
			if err == nil {
				break
			}
			if time.Since(began) > 3*time.Minute {
				a.t.Fatalf("not in force after three minutes: %v", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return time.Since(began)
}

// cost is the median time in ms of n sequential dry runs of the good pod, and the API server's CPU for each, in ms.
func (a *api) cost(namespace string, good mechanism.Probe, n int) (p50, cpu float64) {
	a.t.Helper()
	times := make([]float64, n)
	before := a.cpu()
	for i := range times {
		began := time.Now()
		status, answer := a.dryRun(namespace, good.Pod)
		times[i] = 1000 * time.Since(began).Seconds()
		if err := good.Judge(status, answer); err != nil {
			a.t.Fatal(err)
		}
	}
	cpu = 1000 * (a.cpu() - before) / float64(n)
	slices.Sort(times)
	return times[n/2], cpu
}

// cpu is the API server's CPU time so far, in seconds.
func (a *api) cpu() float64 {
	a.t.Helper()
	for _, p := range a.plane.Probes() {
		if p.Subject() != plane.APIServer {
			continue
		}
		samples, err := p.Read(a.t.Context())
		if err != nil || len(samples) == 0 {
			a.t.Fatalf("read %s: %v", p.Subject(), err)
		}
		return samples[0].Value
	}
	a.t.Fatal("no probe of the API server")
	return 0
}
