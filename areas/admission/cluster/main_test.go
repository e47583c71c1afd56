package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"tare/areas/plane"
	"tare/rigs/hosttest"
)

// startPlane starts a real control plane, which ends with the test. Without a binary the test is skipped, unless one
// was named.
func startPlane(t *testing.T, v plane.Version, nodes, psp bool) *plane.Plane {
	t.Helper()
	hosttest.SkipIfShort(t)
	host := plane.Host{Getenv: os.LookupEnv}
	b, ok := plane.Cached(t.Context(), v, host)
	if !ok {
		if _, named := os.LookupEnv(plane.Variable); named && v == plane.V136 {
			t.Fatalf("%s is set, and no control plane works", plane.Variable)
		}
		hosttest.Missing(t, fmt.Sprintf("no control plane of Kubernetes %s is built", v), hosttest.Plane)
	}
	hosttest.Place(t)
	p, err := plane.Start(t.Context(), plane.Config{Binary: b, Dir: t.TempDir(), Nodes: nodes, PSP: psp})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

// connect is New with an end.
func connect(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// admin reaches a plane as its administrator.
func admin(t *testing.T, p *plane.Plane, run string, bare bool) *Cluster {
	t.Helper()
	return connect(t, Options{
		Run: run, Server: p.Server(), CA: p.CA, Token: p.AdminToken, Bare: bare,
		Patience: 20 * time.Second,
	})
}

// kubeconfig is the text of a file with one context, "here".
func kubeconfig(server string, ca []byte, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: u, user: {%s}}]
`, server, base64.StdEncoding.EncodeToString(ca), user)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// manifest is an object from YAML.
func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// wantError fails unless err says all of the words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nwant it to say %q", err, w)
		}
	}
}
