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

// sourcesOf are the files of a module that make its program, by name.
func sourcesOf(t *testing.T, module string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(module)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasSuffix(name, "_test.go") || (name != "go.mod" && name != "go.sum" && filepath.Ext(name) != ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name+".txt"] = string(text)
	}
	return out
}

// TestSourcesAreTheModules: what is built from the binary is what is checked in as a module, all of it and nothing else.
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
		entries, err := fs.ReadDir(Sources, folder)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range entries {
			text, err := Sources.ReadFile(folder + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			got[e.Name()] = string(text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs from the module in %s; run go test ./engines -update\n%s", folder, module, diff)
		}
	}
}

func rewrite(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// light are the files of a control plane that need nothing of Kubernetes.
var light = []string{"component.go", "loopback.go"}

// TestPlanesShareTheirText: both control planes are started in one way, so the text that does it is the same, and so are its tests.
func TestPlanesShareTheirText(t *testing.T) {
	for _, name := range append([]string{"etcd.go", "component_test.go"}, light...) {
		current, err1 := os.ReadFile(filepath.Join(modules["planesource"], name))
		old, err2 := os.ReadFile(filepath.Join(modules["pspsource"], name))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(current), string(old)); diff != "" {
			t.Errorf("%s differs between ../plane and ../plane/psp\n%s", name, diff)
		}
	}
}

// TestPlanesPassTheirTests: "go test ./..." does not go into other modules, so what can be tested there without Kubernetes is tested from here.
func TestPlanesPassTheirTests(t *testing.T) {
	golang, err := exec.LookPath("go")
	if err != nil {
		t.Skip("SKIPPED: no Go toolchain in PATH, and the tests of another module are to be compiled")
	}
	for _, folder := range []string{"planesource", "pspsource"} {
		cmd := exec.CommandContext(t.Context(), golang, append([]string{"test", "-count=1", "-timeout=2m", "component_test.go"}, light...)...)
		cmd.Dir, cmd.Env = modules[folder], append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", modules[folder], err, out)
		}
	}
}
