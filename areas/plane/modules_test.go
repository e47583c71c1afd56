package plane

import (
	"os"
	"os/exec"
	"testing"

	"tare/internal/build"
	"tare/rigs/hosttest"
)

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
