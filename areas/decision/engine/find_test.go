package engine_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/files"
)

// fakeHost is a host with the given environment, whose programs are shell scripts in its only folder of programs.
func fakeHost(t *testing.T, env, programs map[string]string) engine.Host {
	t.Helper()
	bin := t.TempDir()
	for name, script := range programs {
		if err := files.WriteProgram(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]string{"PATH": bin}
	maps.Copy(all, env)
	return engine.Host{
		Self: "/self", Cache: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Getenv: func(name string) (string, bool) { v, ok := all[name]; return v, ok },
	}
}

// goSays is a Go toolchain that says its version, as far as that goes.
const goSays = `if [ "$1" = env ]; then echo '{"GOVERSION": "go1.26.8"}'; exit 0; fi; `

const java17 = `echo 'openjdk version "17.0.15" 2025-04-15' >&2`

// TestMissingProgramsAreReported with a next step, and not as a failure of tare.
func TestMissingProgramsAreReported(t *testing.T) {
	jdk := map[string]string{"java": java17, "javac": "exit 1"}
	golang := func(says string) map[string]string {
		return map[string]string{"go": goSays + "echo '" + says + "' >&2; exit 1"}
	}
	for name, c := range map[string]struct {
		kind     engine.Kind
		programs map[string]string
		reason   string
	}{
		"no java":         {engine.ATT, nil, "java was not found in PATH"},
		"java 8":          {engine.ATT, map[string]string{"java": `echo 'java version "1.8.0_392"' >&2`}, `is Java "1.8.0_392", and 17 is the oldest`},
		"java 11":         {engine.AuthzForce, map[string]string{"java": `echo 'openjdk version "11.0.2" 2019-01-15' >&2`}, `is Java "11.0.2", and 17 is the oldest`},
		"a broken java":   {engine.ATT, map[string]string{"java": "exit 3"}, "exit status 3"},
		"no compiler":     {engine.AuthzForce, map[string]string{"java": java17}, "javac was not found in PATH"},
		"no network":      {engine.ATT, jdk, "could not fetch the engine: http://u:xxxxx@127.0.0.1:1/"},
		"no go":           {engine.OPA, nil, "no opa and no Go toolchain"},
		"an old go":       {engine.OPA, golang("go: go.mod requires go >= 1.26.0 (running go 1.21)"), `too old: go: go.mod requires go >= 1.26.0`},
		"no proxy":        {engine.OPA, golang("go: downloading x\nmain.go:5: dial tcp: no such host"), `could not fetch OPA: main.go:5: dial tcp`},
		"an opa of stone": {engine.OPA, map[string]string{"opa": "echo moo"}, "does not say its version"},
	} {
		t.Run(name, func(t *testing.T) {
			// nobody listens there
			h := fakeHost(t, map[string]string{engine.Repository: "http://u:secret@127.0.0.1:1"}, c.programs)
			_, err := engine.Find(t.Context(), c.kind, h)
			missing := new(engine.Missing)
			if !errors.As(err, &missing) {
				t.Fatalf("error %v, want a Missing", err)
			}
			if missing.Kind != c.kind || !strings.Contains(missing.Reason, c.reason) || missing.Next == "" {
				t.Errorf("%+v, want the reason %q", missing, c.reason)
			}
			if left, err := filepath.Glob(filepath.Join(h.Cache, "*[^k]")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
}

// TestBuildsThatFail for other reasons than missing programs are errors that quote the build.
func TestBuildsThatFail(t *testing.T) {
	broken := map[string]string{"go": goSays + "echo 'main.go:1: syntax error' >&2; exit 1"}
	_, err := engine.Find(t.Context(), engine.OPA, fakeHost(t, nil, broken))
	if err == nil || errors.As(err, new(*engine.Missing)) || !strings.Contains(err.Error(), "syntax error") {
		t.Errorf("a mistake in Go: %v", err)
	}
	if _, err := engine.Find(t.Context(), "none", fakeHost(t, nil, nil)); err == nil ||
		!strings.Contains(err.Error(), "not one of [cedar pdpx") {
		t.Errorf("unknown kind: %v", err)
	}
}

// TestEmbeddedEnginesNeedNothing need nothing of the host.
func TestEmbeddedEnginesNeedNothing(t *testing.T) {
	for _, k := range []engine.Kind{engine.Cedar, engine.PDPX} {
		l, err := engine.Find(t.Context(), k, fakeHost(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"serve", "decision", string(k)}, l.Args); diff != "" || l.Path != "/self" ||
			l.Kind != k || l.Java || l.Version == "" {
			t.Errorf("got launch %+v, want tare's own server of that kind", l)
		}
	}
}

// TestOPAInPath is used if no OPA is built, and is run by tare's own binary.
func TestOPAInPath(t *testing.T) {
	h := fakeHost(t, nil, map[string]string{"opa": "echo 'Version: 0.70.0'; echo 'Build Commit: x'"})
	l, err := engine.Find(t.Context(), engine.OPA, h)
	if err != nil {
		t.Fatal(err)
	}
	if l.Path != "/self" || !strings.HasPrefix(l.Version, "OPA 0.70.0 (/") {
		t.Errorf("got launch %+v, want OPA 0.70.0 through tare's binary", l)
	}
}

// TestUnusableCacheIsMissing: a host without a safe cache folder lacks something.
func TestUnusableCacheIsMissing(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{open: "written by other users", filepath.Join(file, "x"): "not a directory"} {
		for _, k := range []engine.Kind{engine.OPA, engine.ATT} {
			h := fakeHost(t, nil, map[string]string{"java": java17, "opa": "echo 'Version: 1.0.0'"})
			h.Cache = dir
			_, err := engine.Find(t.Context(), k, h)
			if missing := new(engine.Missing); !errors.As(err, &missing) || !strings.Contains(missing.Reason, says) {
				t.Errorf("%s in %s: %v", k, dir, err)
			}
		}
	}
}

func TestCacheFolder(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/c")
	for _, c := range []struct{ cache, variable, want string }{
		{"/a", "/b", "/a"}, {"", "/b", "/b/engines"}, {"", "", "/c/tare/engines"},
	} {
		env := map[string]string{}
		if c.variable != "" {
			env["TARE_CACHE"] = c.variable
		}
		h := fakeHost(t, env, nil)
		h.Cache = c.cache
		if got, err := h.Built().Folder(); err != nil || got != c.want {
			t.Errorf("%q (%v), want %q", got, err, c.want)
		}
	}
}

// TestPrepareWritesThePolicies in the language of each kind, readable only by this user.
func TestPrepareWritesThePolicies(t *testing.T) {
	for _, c := range []struct {
		kind  engine.Kind
		files []string
		holds string
	}{
		{engine.Cedar, []string{"policies.cedar"}, `Role::"role6"`},
		{engine.OPA, []string{"policies.rego"}, `"role6"`},
		{engine.ATT, []string{"pdp.xml", "policies.xml"}, ">role6<"},
		{engine.AuthzForce, []string{"pdp.xml", "policies.xml"}, ">role6<"},
		{engine.PDPX, nil, ""},
	} {
		dir := t.TempDir()
		cfg, err := engine.Launch{Kind: c.kind}.Prepare(dir, model.Set{N: 7})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has mode %v (%v)", c.kind, e.Name(), info.Mode(), err)
			}
			names = append(names, e.Name())
		}
		if diff := cmp.Diff(c.files, names); diff != "" || cfg.N != 7 || cfg.Addr != "127.0.0.1:0" {
			t.Errorf("%s: configuration %+v, files (-want +got):\n%s", c.kind, cfg, diff)
		}
		if c.holds == "" {
			continue
		}
		text, err := os.ReadFile(cfg.File)
		if err != nil || !strings.Contains(string(text), c.holds) {
			t.Errorf("%s: %q lacks %q (%v)", c.kind, text, c.holds, err)
		}
	}
	if _, err := (engine.Launch{Kind: "none"}).Prepare(t.TempDir(), model.Set{N: 1}); err == nil {
		t.Error("an unknown kind was prepared")
	}
	if _, err := (engine.Launch{Kind: engine.Cedar}).Prepare(filepath.Join(t.TempDir(), "none"),
		model.Set{N: 1}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestKindsAndAdapters(t *testing.T) {
	got := ""
	for _, k := range engine.Kinds() {
		got += fmt.Sprint(k, " ", k.Adapter(), "\n")
	}
	want := "cedar authzen\npdpx pdpx\nopa opa\natt xacml\nauthzforce xacml\nopenfga openfga\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSeekBuildsNothing: every program that builds fails the test. What is missing is the same as for Find.
func TestSeekBuildsNothing(t *testing.T) {
	golang := map[string]string{"go": goSays + "echo built >&2; exit 1"}
	jdk := map[string]string{"java": java17, "javac": "echo built; exit 1"}
	for name, c := range map[string]struct {
		kind     engine.Kind
		programs map[string]string
		there    bool
		reason   string // why it is missing; empty: it is not
	}{
		"in this binary":    {engine.Cedar, nil, true, ""},
		"in PATH":           {engine.OPA, map[string]string{"opa": "echo Version: 1.2.3"}, true, ""},
		"an opa of stone":   {engine.OPA, map[string]string{"opa": "echo moo"}, false, "does not say its version"},
		"to be built by Go": {engine.OPA, golang, false, ""},
		"no go":             {engine.OPA, nil, false, "no opa and no Go toolchain"},
		"to be built":       {engine.ATT, jdk, false, ""},
		"no java":           {engine.AuthzForce, nil, false, "java was not found"},
		"no compiler":       {engine.AuthzForce, map[string]string{"java": java17}, false, "javac was not found"},
	} {
		t.Run(name, func(t *testing.T) {
			h := fakeHost(t, nil, c.programs)
			there, err := engine.Seek(t.Context(), c.kind, h)
			missing := new(engine.Missing)
			if errors.As(err, &missing) != (c.reason != "") || !strings.Contains(missing.Reason, c.reason) ||
				(c.reason == "" && err != nil) || there != c.there {
				t.Errorf("there %v, error %v; want %v, %q", there, err, c.there, c.reason)
			}
			if left, err := os.ReadDir(h.Cache); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
	if _, err := engine.Seek(t.Context(), "none", fakeHost(t, nil, nil)); err == nil {
		t.Error("an unknown kind was found")
	}
}
