package engines

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "copy the modules in opa/, ../plane and ../plane/psp to their folders here")

// modules are where the embedded sources come from, by folder.
var modules = map[string]string{"opasource": "opa", "planesource": "../plane", "pspsource": "../plane/psp"}

// sourcesOf are the files of a module that make its program, by path.
func sourcesOf(t *testing.T, module string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(module, func(path string, e fs.DirEntry, err error) error {
		name := e.Name()
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == "testdata" || (path != module && exists(filepath.Join(path, "go.mod")))): // another module
			return filepath.SkipDir
		case e.IsDir() || strings.HasSuffix(name, "_test.go") ||
			(name != "go.mod" && name != "go.sum" && filepath.Ext(name) != ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(module, path)
		out[filepath.ToSlash(rel)+".txt"] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestSourcesAreTheModules: what is built from the binary is what is checked in as a module, all of it and nothing
// else.
func TestSourcesAreTheModules(t *testing.T) {
	for folder, module := range modules {
		want := sourcesOf(t, module)
		if len(want) < 3 {
			t.Errorf("%s: only %d files", module, len(want))
		}
		if *update {
			rewrite(t, folder, want)
			continue
		}
		if diff := cmp.Diff(want, embedded(t, folder)); diff != "" {
			t.Errorf("%s differs from the module in %s; run go test ./engines -update\n%s", folder, module, diff)
		}
	}
}

func embedded(t *testing.T, folder string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := fs.WalkDir(Sources, folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := Sources.ReadFile(path)
		got[strings.TrimPrefix(path, folder+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func rewrite(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// light are the files of a control plane that need nothing of Kubernetes.
var light = []string{"component.go", "socket.go"}

// packages of ../plane need nothing of Kubernetes either: what the driver of the pull manager is made of, but for the
// calls themselves.
var packages = []string{"./batch", "./driver", "./recordfile", "./sequence", "./setting"}

// TestPlanesShareTheirText: both control planes start in the same way, so plane/psp links to the files of ../plane that
// do not depend on the version of Kubernetes, and to their tests. Two modules that pin Kubernetes cannot import each
// other.
func TestPlanesShareTheirText(t *testing.T) {
	for _, name := range append([]string{"etcd.go", "component_test.go"}, light...) {
		target, err := os.Readlink(filepath.Join(modules["pspsource"], name))
		if err != nil || target != "../"+name {
			t.Errorf("plane/psp/%s links to %q (%v), want ../%s", name, target, err, name)
		}
	}
}

// TestPlanesPassTheirTests: "go test ./..." does not go into other modules, so what can be tested there without
// Kubernetes is tested from here.
func TestPlanesPassTheirTests(t *testing.T) {
	golang, err := exec.LookPath("go")
	if err != nil {
		t.Skip("SKIPPED: no Go toolchain in PATH, and the tests of another module are to be compiled")
	}
	shared := append([]string{"component_test.go"}, light...)
	for _, c := range []struct {
		folder string
		what   []string
	}{{"planesource", shared}, {"pspsource", shared}, {"planesource", packages}} {
		cmd := exec.CommandContext(t.Context(), golang, append([]string{"test", "-count=1", "-timeout=2m"}, c.what...)...)
		cmd.Dir, cmd.Env = modules[c.folder], append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", modules[c.folder], err, out)
		}
	}
}
