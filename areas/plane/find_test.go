package plane

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/files"
	"tare/rigs/memtest"
)

// script writes a program that a shell runs.
func script(t *testing.T, path, text string) string {
	t.Helper()
	if err := files.WriteProgram(path, []byte("#!/bin/sh\n"+text+"\n")); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	says136 = `echo '{"etcd":"v3.6.8","go":"go1.26.8","kubernetes":"v1.36.3","protocol":"2"}'`
	says124 = `echo '{"etcd":"v3.5.4","go":"go1.26.8","kubernetes":"v1.24.17","protocol":"2"}'`
)

// bare is a host without programs, with the given environment.
func bare(t *testing.T, env map[string]string) Host {
	t.Helper()
	return Host{
		Cache: filepath.Join(t.TempDir(), "cache"), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
}

// TestNamedBinary: what the user names is used, first the experiment's, then the variable of the version, and nothing
// else is looked for.
func TestNamedBinary(t *testing.T) {
	dir := t.TempDir()
	new136, old124 := script(t, filepath.Join(dir, "new"), says136),
		script(t, filepath.Join(dir, "old"), "echo I0101 a warning >&2\n"+says124)
	env := map[string]string{"TARE_PLANE": new136, "TARE_PLANE_PSP": old124}
	for name, c := range map[string]struct {
		v    Version
		path string
		want Binary
	}{
		"variable": {V136, "", Binary{
			Path: new136, Version: "1.36", Kubernetes: "v1.36.3", Etcd: "v3.6.8",
			Go: "go1.26.8",
		}},
		"psp's": {V124, "", Binary{
			Path: old124, Version: "1.24", Kubernetes: "v1.24.17", Etcd: "v3.5.4",
			Go: "go1.26.8",
		}},
		"path wins": {
			V124, script(t, filepath.Join(dir, "other"), says124),
			Binary{Path: filepath.Join(dir, "other"), Version: "1.24", Kubernetes: "v1.24.17", Etcd: "v3.5.4", Go: "go1.26.8"},
		},
		"path has only": {
			V136, script(t, filepath.Join(dir, "few"),
				`echo '{"etcd":"e","kubernetes":"v1.36.0","protocol":"2"}'`),
			Binary{Path: filepath.Join(dir, "few"), Version: "1.36", Kubernetes: "v1.36.0", Etcd: "e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := bare(t, env)
			h.Path = c.path
			b, err := Find(t.Context(), c.v, h)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, b); diff != "" {
				t.Error(diff)
			}
			if again, ok := Cached(t.Context(), c.v, h); !ok || again != b {
				t.Errorf("Cached: %+v, %v", again, ok)
			}
			if _, err := os.Stat(h.Cache); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the cache was looked at: %v", err)
			}
		})
	}
}

// TestNamedBinaryIsRefused with a reason and a next step; nothing else is tried in its place.
func TestNamedBinaryIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("moo"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	if err := files.WriteProgram(damaged, []byte("\x7fELF\x02\x01\x01 cut off")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, reason string }{
		"nothing":         {filepath.Join(dir, "nothing"), "is no program that may be executed"},
		"a folder":        {dir, "is no program that may be executed"},
		"a text":          {text, "is no program that may be executed"},
		"damaged":         {damaged, "exec format error"},
		"another program": {script(t, filepath.Join(dir, "true"), "echo moo"), "does not say its version as tare-plane does"},
		"fails":           {script(t, filepath.Join(dir, "false"), says136+"; exit 3"), "exit status 3"},
		"other JSON": {
			script(t, filepath.Join(dir, "json"), `echo '{"version":"v1.36.3"}'`),
			"does not say its version",
		},
		"other minor": {script(t, filepath.Join(dir, "minor"), says124), "is of Kubernetes v1.24.17, and 1.36 is wanted"},
		"an older tare's": {
			script(t, filepath.Join(dir, "old"), `echo '{"etcd":"v3.6.8","kubernetes":"v1.36.3"}'`),
			`another version of tare (protocol "", and "2" is wanted)`,
		},
		"no release": {script(t, filepath.Join(dir, "devel"),
			`echo '{"etcd":"e","kubernetes":"(devel)","protocol":"2"}'`), "is of Kubernetes (devel)"},
	} {
		t.Run(name, func(t *testing.T) {
			for by, h := range map[string]Host{
				"(named)":       bare(t, nil),
				"($TARE_PLANE)": bare(t, map[string]string{"TARE_PLANE": c.path}),
			} {
				if by == "(named)" {
					h.Path = c.path
				}
				_, err := Find(t.Context(), V136, h)
				missing, ok := errors.AsType[*Missing](err)
				if !ok {
					t.Fatalf("error %v, want a Missing", err)
				}
				if !strings.Contains(missing.Reason, c.reason) || !strings.Contains(missing.Reason, by) || missing.Next == "" ||
					!strings.Contains(missing.What, "1.36") {
					t.Errorf("%+v, want the reason %q", missing, c.reason)
				}
				if b, ok := Cached(t.Context(), V136, h); ok {
					t.Errorf("Cached: %+v", b)
				}
			}
		})
	}
}

// TestBinaryThatHangs is not waited for, and neither is what it started.
func TestBinaryThatHangs(t *testing.T) {
	c := candidate{
		path: script(t, filepath.Join(t.TempDir(), "hangs"), "sleep 300 & sleep 300"), by: "named", next: "x",
		within: 200 * time.Millisecond,
	}
	_, err := c.identify(t.Context(), V136)
	if missing, ok := errors.AsType[*Missing](err); !ok ||
		!strings.Contains(missing.Reason, "did not say its version within 200ms") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.identify(ctx, V136); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestUnknownVersion(t *testing.T) {
	h := bare(t, nil)
	if _, err := Find(t.Context(), "1.30", h); err == nil || !strings.Contains(err.Error(), `"1.30"`) ||
		!strings.Contains(err.Error(), "[1.36 1.24]") {
		t.Errorf("error %v", err)
	}
	if _, ok := Cached(t.Context(), "1.30", h); ok {
		t.Error("it is cached")
	}
}

// FuzzSaysVersion: whatever a program prints, only a line that names both versions is believed.
func FuzzSaysVersion(f *testing.F) {
	for _, out := range []string{
		"", "moo\n", `{"etcd":"v3.6.8","go":"go1.26.8","kubernetes":"v1.36.3","protocol":"2"}`, "W0101 warning\n" +
			`{"etcd":"e","kubernetes":"k"}` + "\nmore", `{"kubernetes":1}`, "null", "[]",
	} {
		f.Add(out)
	}
	f.Fuzz(func(t *testing.T, out string) {
		defer memtest.Bound(t, len(out))()
		b, _, ok := parseVersion(out)
		if ok != (b.Kubernetes != "" && b.Etcd != "") {
			t.Errorf("%q: %+v, %v", out, b, ok)
		}
		if v := minorOf(b.Kubernetes); v != "" && !strings.HasPrefix(strings.TrimPrefix(b.Kubernetes, "v"), string(v)+".") {
			t.Errorf("%q is of %q", b.Kubernetes, v)
		}
	})
}
