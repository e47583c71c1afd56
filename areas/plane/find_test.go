package plane

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
	"tare/internal/files"
	"tare/rigs/hosttest"
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

// TestModules: what is built says the version that its go.mod pins, and that is of the release that was asked for.
func TestModules(t *testing.T) {
	for v, folder := range map[Version]string{V136: "1.36", V124: "1.24"} {
		s, err := v.source()
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.module()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join("_kubernetes", folder, "go.mod.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\tk8s.io/kubernetes "+m.Version+"\n") || minorOf(m.Version) != v {
			t.Errorf("%s: version %q", v, m.Version)
		}
		for _, flag := range []string{
			"-X k8s.io/component-base/version.gitVersion=" + m.Version, "-X k8s.io/component-base/version.gitMajor=1",
			"-X k8s.io/component-base/version.gitMinor=" + strings.TrimPrefix(string(v), "1."),
		} {
			if !strings.Contains(m.LDFlags+" ", flag+" ") {
				t.Errorf("%s: %q lacks %q", v, m.LDFlags, flag)
			}
		}
		files := slices.Sorted(maps.Keys(m.Files))
		isTest := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
		if len(files) < 5 || slices.ContainsFunc(files, isTest) {
			t.Errorf("%s: is built from %q", v, files)
		}
	}
}

// TestFolderNames differ with all that a binary is made of.
func TestFolderNames(t *testing.T) {
	s, err := V136.source()
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.module()
	if err != nil {
		t.Fatal(err)
	}
	fewer, tagged, linked := m, m, m
	fewer.Files = maps.Clone(m.Files)
	delete(fewer.Files, "main.go")
	tagged.Flags = []string{"-tags", "x"}
	linked.LDFlags += " -X a.b=c"
	seen := map[string]string{}
	for what, c := range map[string]struct {
		m  build.GoModule
		by string
	}{
		"plain": {m, "go1.26.8"}, "a file less": {fewer, "go1.26.8"}, "a tag more": {tagged, "go1.26.8"},
		"other words for the linker": {linked, "go1.26.8"},
		"another Go":                 {m, "go1.26.9"},
		"a Go of one's own":          {m, "devel go1.27-0123 Mon Nov 2 01:02:03 2026 ../x"},
		"no Go":                      {m, ""},
	} {
		name := folderName(V136, c.m, c.by)
		if other := seen[name]; other != "" {
			t.Errorf("%s and %s are both %s", what, other, name)
		}
		seen[name] = what
		if filepath.Base(name) != name || strings.ContainsAny(name, " :*[?") || !strings.HasPrefix(name, "1.36-") {
			t.Errorf("%s: %q is a bad name of a folder", what, name)
		}
	}
}

func TestPinned(t *testing.T) {
	for mod, want := range map[string]string{
		"module x\n\nrequire (\n\ta/b v1.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n": "v1.36.3",
		"module x\nrequire k8s.io/kubernetes v1.24.17\n":                        "v1.24.17",
		"module x\n":                             "",
		"require k8s.io/kubernetes-csi v1.2.3\n": "",
		"replace k8s.io/kubernetes => k8s.io/kubernetes v1.36.3\n":                                     "",
		"\tk8s.io/kubernetes v1.36.3 // indirect\n":                                                    "",
		"\t// k8s.io/kubernetes v1.36.3\n":                                                             "",
		"\tk8s.io/kubernetes v0.0.0-20260101000000-0123456789ab\n\tk8s.io/kubernetes/staging v1.2.3\n": "",
	} {
		got, err := pinned(mod)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", mod, got, err)
		}
	}
}

func TestMinorOf(t *testing.T) {
	got := map[string]Version{}
	for _, k := range []string{"v1.36.3", "v1.24.17", "1.30.0-rc.1", "v1.36", "(devel)", ""} {
		got[k] = minorOf(k)
	}
	want := map[string]Version{
		"v1.36.3": "1.36", "v1.24.17": "1.24", "1.30.0-rc.1": "1.30", "v1.36": "",
		"(devel)": "", "": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// shared are the files of both modules that need nothing of Kubernetes, with their tests.
var shared = []string{"component_test.go", "component.go", "socket.go"}

// packages of the module of 1.36 need nothing of Kubernetes either: what the driver of the pull manager is made of, but
// for the calls themselves.
var packages = []string{"./batch", "./driver", "./recordfile", "./sequence", "./setting"}

// TestModulesPassTheirTests: "go test ./..." does not see the modules, so this runs those of their tests that do not
// need Kubernetes.
func TestModulesPassTheirTests(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	golang, err := exec.LookPath("go")
	if err != nil {
		hosttest.Missing(t, "there is no Go toolchain", "have go on PATH")
	}
	for version, tests := range map[Version][][]string{V136: {shared, packages}, V124: {shared}} {
		s, err := version.source()
		if err != nil {
			t.Fatal(err)
		}
		files, err := build.ReadFiles(sources, "_kubernetes/shared", "_kubernetes/"+s.folder)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := files.Unpack(dir); err != nil {
			t.Fatal(err)
		}
		for _, what := range tests {
			cmd := exec.CommandContext(t.Context(), golang, append([]string{"test", "-count=1", "-timeout=2m"}, what...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -trimpath")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s %v: %v\n%s", version, what, err, out)
			}
		}
	}
}
