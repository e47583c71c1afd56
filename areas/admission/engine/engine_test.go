package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/areas/admission/engine"
	"tare/internal/build"
	"tare/rigs/hosttest"
)

func TestCheckVersion(t *testing.T) {
	for version, fits := range map[string]bool{
		"1.18.0": true, "1.18.2": true, engine.Kyverno.Default: true, "1.20.0-rc.1": true, "1.13.6": true,
		"": false, "1.12.9": false, "v1.19.1": false, "1.19": false, "2.0.0": false, "latest": false, "1.19.1 -x": false,
		"1.19.1@../x": false,
	} {
		if err := engine.Kyverno.CheckVersion(version); (err == nil) != fits {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// TestSeek finds what was built, says who could build, and names nothing that is no version.
func TestSeek(t *testing.T) {
	h := engine.Host{
		Cache: t.TempDir(), Log: slog.New(slog.DiscardHandler), Getenv: func(string) (string, bool) { return "", false },
	}
	_, there, err := engine.Kyverno.Seek(t.Context(), engine.Kyverno.Default, h)
	missing, ok := errors.AsType[*engine.Missing](err)
	if there || !ok || !strings.Contains(missing.Hint(), "install Go") {
		t.Errorf("%v, %v; want that Go is missing", there, err)
	}
	dir := filepath.Join(h.Cache, "kyverno-"+engine.Kyverno.Default+"-3")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := engine.Kyverno.Find(t.Context(), engine.Kyverno.Default, h)
	if err != nil || p.Path != filepath.Join(dir, "engine") || p.Definitions != filepath.Join(dir, "crds") {
		t.Errorf("%+v, %v", p, err)
	}
	if !engine.Current(filepath.Base(dir)) || engine.Current("kyverno-1.12.0-3") || engine.Current("opa-1.22.0-3") ||
		engine.Current("gatekeeper-"+engine.Gatekeeper.Default) || engine.Current("kyverno-reports-1.12.0-3") ||
		!engine.Current("kyverno-reports-"+engine.Kyverno.Default+"-3") || engine.Current("kyverno-reports") {
		t.Error("another folder is current than Find uses")
	}
	if _, err := engine.Kyverno.Find(t.Context(), "../x", h); err == nil {
		t.Error("a folder is a version")
	}
}

// TestKyvernoStaysOnLoopback by its flags, or, where it has none, by edits of what is built. It may ask name servers
// only if it is told so.
func TestKyvernoStaysOnLoopback(t *testing.T) {
	for name, c := range map[string]struct {
		flags, help string
		edits       int // besides those of the three programs' main functions and of the door
		network     bool
	}{
		"by flags": {`"metricsHost", "webhookServerHost"`, "  -metricsHost string\n  -webhookServerHost string\n", 0, true},
		"by edits": {`"metricsPort"`, "", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			module := t.TempDir()
			for _, file := range []string{"cmd/internal/flag.go", "cmd/kyverno/main.go"} {
				path := filepath.Join(module, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(c.flags), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			edits, err := engine.EditsOf(engine.Kyverno, module)
			if err != nil || len(edits) != 11+c.edits {
				t.Errorf("edits %+v, %v", edits, err)
			}
			t.Setenv(role, "fake")
			t.Setenv(flags, c.help)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			config := engine.Config{Engine: "kyverno", Path: os.Args[0], Kubeconfig: "/x", Network: c.network}
			if c.network {
				config.Kubeconfig = "/network"
			}
			err = engine.Run(ctx, config, func(engine.Ready) error { cancel(); return nil })
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	if _, err := engine.EditsOf(engine.Kyverno, t.TempDir()); err == nil {
		t.Error("a module without its files is built")
	}
}

// TestRun: it is ready when both of its ports answer, its counts can be read, and it ends with its parent's wish.
func TestRun(t *testing.T) {
	t.Setenv(role, "fake")
	t.Setenv(flags, "  -metricsHost string\n  -webhookServerHost string\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var at engine.Ready
	config := engine.Config{Engine: "kyverno", Path: os.Args[0], Kubeconfig: "/x"}
	err := engine.Run(ctx, config, func(r engine.Ready) error {
		at = r
		is, err := r.Counts(ctx, "n")
		if err != nil || is.Objected["a"] != 2 || is.Evaluated != 2 {
			t.Errorf("counts %+v, %v", is, err)
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || at.Seconds <= 0 {
		t.Errorf("%v after %+v", err, at)
	}
	if a, err := http.Get(at.Metrics); err == nil {
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
		t.Error("it still answers")
	}
	err = engine.Run(t.Context(), engine.Config{Engine: "kyverno", Path: os.Args[0], Kubeconfig: "/refused"}, nil)
	if err == nil || !strings.Contains(err.Error(), "kyverno ended by itself") ||
		!strings.Contains(err.Error(), "the cluster refuses me") {
		t.Errorf("%v, want its last words", err)
	}
	var before engine.Ready
	for _, start := range []string{"the first", "afresh, where the API server looks for it"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err = engine.Run(ctx, engine.Config{
			Engine: "gatekeeper", Path: os.Args[0], Kubeconfig: "/x", Certificates: "/certificates", Ports: before.Ports,
		}, func(r engine.Ready) error {
			if r.Metrics != "" || !strings.HasPrefix(r.Webhooks, "127.0.0.1:") ||
				before.Webhooks != "" && r.Webhooks != before.Webhooks {
				t.Errorf("%s: %+v, and before %+v", start, r, before)
			}
			before = r
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	for _, beside := range []string{"kyverno-reports", "kyverno-background"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err = engine.Run(ctx, engine.Config{
			Engine: beside, Path: os.Args[0], Kubeconfig: "/x", Audit: 15 * time.Second,
		}, func(r engine.Ready) error {
			if r.Metrics == "" || r.Webhooks != "" {
				t.Errorf("%s: %+v", beside, r)
			}
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", beside, err)
		}
	}
	if err := engine.Run(t.Context(), engine.Config{Engine: "opa"}, nil); err == nil {
		t.Error("an engine that there is not was run")
	}
	if err := engine.Run(t.Context(), engine.Config{Engine: "kyverno", Path: "/none"}, nil); err == nil {
		t.Error("nothing was run")
	}
}

// role is the environment variable by which this binary plays an engine, and flags the one with its help.
const (
	role  = "TARE_TEST_ENGINE"
	flags = "TARE_TEST_FLAGS"
)

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		hosttest.Main(m)
	}
	if slices.Contains(os.Args, "-help") {
		fmt.Print(os.Getenv(flags))
		os.Exit(0)
	}
	if err := fake(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fake listens where the arguments say, and serves metrics.
func fake(args []string) error {
	at := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		at[name] = value
	}
	host, webhooks, health := at["webhookServerHost"], at["webhookServerPort"], at["metricsHost"]+":"+at["metricsPort"]
	switch {
	case os.Getenv(flags) != "" || at["host"] != "":
	case host+at["metricsHost"]+at["controllerRuntimeMetricsAddress"] != "":
		return errors.New("it is given flags that it does not have")
	default: // as its edits have it
		host, health = "127.0.0.1", "127.0.0.1"+health
	}
	switch {
	case at["kubeconfig"] == "":
		return errors.New("it is not told where the cluster is")
	case os.Getenv("POD_NAMESPACE") == "gatekeeper-system" && at["cert-dir"] == "/certificates":
		host, webhooks, health = at["host"], at["port"], at["health-addr"]
	case os.Getenv("KYVERNO_NAMESPACE") != "kyverno":
		return errors.New("it is not told where it is")
	case (os.Getenv("TARE_NETWORK") != "") != (at["kubeconfig"] == "/network"):
		return errors.New("it may ask name servers, or not, against what was said")
	case (os.Getenv("KYVERNO_DEPLOYMENT") == "kyverno-reports-controller") != (at["backgroundScanInterval"] == "15s"):
		return errors.New("it is not told how often it scans, or another controller is")
	}
	if at["kubeconfig"] == "/refused" {
		return errors.New("the cluster refuses me")
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", host+":"+webhooks)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `kyverno_policy_results_total{resource_namespace="n",policy_name="a",rule_result="fail"} 2`+"\n")
	})
	return http.ListenAndServe(health, nil) //nolint:gosec // it ends with its parent
}

// TestBinariesAreBuilt really builds, where that is wanted: it takes minutes, and the network where Go's own cache
// lacks something.
func TestBinariesAreBuilt(t *testing.T) {
	if os.Getenv("TARE_TEST_PLANE_BUILD") != "1" {
		hosttest.Missing(t, "it compiles policy engines", hosttest.Plane)
	}
	h := engine.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}
	for _, k := range engine.Programs() {
		p, err := k.Find(t.Context(), k.Default, h)
		if err != nil {
			t.Error(err)
			continue
		}
		if !build.Executable(p.Path) {
			t.Errorf("%+v", p)
		}
		if info, err := os.Stat(p.Definitions); slices.Contains(engine.Kinds(), k) && (err != nil || !info.IsDir()) {
			t.Errorf("%+v, %v", p, err)
		}
	}
}
