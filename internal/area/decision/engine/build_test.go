package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func cacheHost(t *testing.T) Host {
	t.Helper()
	return Host{Cache: filepath.Join(t.TempDir(), "cache"), Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}
}

// TestBuiltOnce: of many that want the same at the same time, one builds, and all get what it built, whole.
func TestBuiltOnce(t *testing.T) {
	h := cacheHost(t)
	var builds atomic.Int32
	r := recipe{name: "x", lock: "x", make: func(_ context.Context, dir string) error {
		builds.Add(1)
		if err := os.WriteFile(filepath.Join(dir, "one"), nil, 0o600); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		return os.WriteFile(filepath.Join(dir, "two"), nil, 0o600)
	}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := h.built(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			for _, name := range []string{"one", "two"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

// TestBuildThatFailsLeavesNothing, and one that was killed is cleared away by the next.
func TestBuildThatFailsLeavesNothing(t *testing.T) {
	h := cacheHost(t)
	killed := filepath.Join(h.Cache, "x.123.tmp")
	if err := os.MkdirAll(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	fail := recipe{name: "x", lock: "x", make: func(context.Context, string) error { return no }}
	if _, err := h.built(t.Context(), fail); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(h.Cache)
	if err != nil || len(entries) != 1 || entries[0].Name() != "x.lock" {
		t.Errorf("left: %v (%v)", entries, err)
	}
	ok := recipe{name: "x", lock: "x", make: func(context.Context, string) error { return nil }}
	if dir, err := h.built(t.Context(), ok); err != nil || dir != filepath.Join(h.Cache, "x") {
		t.Errorf("after the failure: %q, %v", dir, err)
	}
}

// TestWaitForAnotherBuildEnds with the context, and is told once.
func TestWaitForAnotherBuildEnds(t *testing.T) {
	h := cacheHost(t)
	var log bytes.Buffer
	h.Log = slog.New(slog.NewTextHandler(&log, nil))
	if err := os.MkdirAll(h.Cache, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := h.acquire(t.Context(), filepath.Join(h.Cache, "x.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := h.built(ctx, recipe{name: "x", lock: "x"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if n := strings.Count(log.String(), "waiting for it"); n != 1 {
		t.Errorf("told %d times: %s", n, &log)
	}
}

// TestStepEndsWithItsContext, with everything that it started.
func TestStepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := step{path: "/bin/sh", args: []string{"-c", "sleep 300 & sleep 300"}}.run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(began); d > 4*time.Second {
		t.Errorf("ended after %v: something held its output open", d)
	}
}

func TestJavaVersion(t *testing.T) {
	for out, want := range map[string]struct {
		version string
		major   int
	}{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime":                 {"17.0.15", 17},
		"openjdk version \"21\" 2023-09-19":                                       {"21", 21},
		"java version \"1.8.0_392\"":                                              {"1.8.0_392", 8},
		"openjdk version \"25-ea\" 2025-09-16":                                    {"25-ea", 25},
		"Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version \"17.0.1\" 2021-10-19": {"17.0.1", 17},
		"": {"", 0}, "version \"x\"": {"", 0},
	} {
		if version, major := javaVersion(out); version != want.version || major != want.major {
			t.Errorf("%q: %q, %d", out, version, major)
		}
	}
}

// TestVersionsAreThoseThatArePinned: what a launch tells is what the build files hold.
func TestVersionsAreThoseThatArePinned(t *testing.T) {
	for file, want := range map[string]string{
		"opa/go.mod":              "github.com/open-policy-agent/opa v" + opaVersion + "\n",
		"xacml/att.sha256":        "  xacml-pdp-" + last(xacmlVersions[ATT]) + ".jar\n",
		"xacml/authzforce.sha256": "  authzforce-ce-core-pdp-engine-" + last(xacmlVersions[AuthzForce]) + ".jar\n",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "engines", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
	pom, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "engines", "xacml", "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, goal := range []string{compileGoal, copyGoal} {
		f := strings.Split(goal, ":")
		if want := "<artifactId>" + f[1] + "</artifactId>\n        <version>" + f[2] + "</version>"; !strings.Contains(string(pom), want) {
			t.Errorf("pom.xml does not pin %s", goal)
		}
	}
}

func last(words string) string {
	f := strings.Fields(words)
	return f[len(f)-1]
}
