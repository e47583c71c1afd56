package build_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

// program is a module of two files that needs nothing but the standard library, and little of that.
var program = build.GoModule{
	Files: build.Files{
		"go.mod":  []byte("module x\n\ngo 1.26\n"),
		"main.go": []byte("package main\n\nvar said = \"nothing\"\n\nfunc main() { print(said) }\n"),
	},
	LDFlags: "-X main.said=built", Binary: "prog",
}

func findGo(t *testing.T) build.Go {
	t.Helper()
	g, err := build.FindGo(t.Context(), os.LookupEnv)
	if err != nil {
		hosttest.Missing(t, err.Error(), "have go on PATH")
	}
	return g
}

// TestModuleIsBuilt by a real toolchain with its flags, whatever the user has set, and only the program is left.
func TestModuleIsBuilt(t *testing.T) {
	t.Setenv("GOFLAGS", "nonsense")
	t.Setenv("GOWORK", "/none/go.work")
	t.Setenv("GOARCH", "mips")
	g, dir := findGo(t), t.TempDir()
	if !strings.HasPrefix(g.Version, "go1.") || g.Cache == "" || g.ModCache == "" {
		t.Errorf("got toolchain %+v", g)
	}
	work := filepath.Join(dir, "src")
	if err := program.Files.Unpack(work); err != nil {
		t.Fatal(err)
	}
	n, err := g.Packages(t.Context(), program, work, nil)
	if err != nil || n.All < 2 || n.Stale < 1 || n.Stale > n.All {
		t.Errorf("got packages %+v, %v; want some that are not built", n, err)
	}
	var lines []string
	if err := g.Build(t.Context(), program, work, dir, func(line string) { lines = append(lines, line) }); err != nil {
		t.Fatal(err)
	}
	out, err := build.Step{Path: filepath.Join(dir, "prog")}.Run(t.Context())
	if err != nil || out != "built" {
		t.Errorf("the program said %q (%v); its build %q", out, err, lines)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// TestTemporaryFilesAreInTheFolder that is filled, where the next build finds those of a killed one, unless the user
// names another folder.
func TestTemporaryFilesAreInTheFolder(t *testing.T) {
	script := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho $TARE_BUILD $GOTMPDIR\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{"", t.TempDir()} {
		dir := t.TempDir()
		work := filepath.Join(dir, "src")
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		var said []string
		g := build.Go{Path: script, Temporary: named}
		if err := g.Build(t.Context(), program, work, dir, func(line string) { said = append(said, line) }); err != nil {
			t.Fatal(err)
		}
		if len(said) == 0 || !strings.HasPrefix(said[0]+" ", dir+" ") ||
			strings.HasPrefix(said[0], dir+" "+dir+"/") != (named == "") {
			t.Errorf("with GOTMPDIR %q it was called with %q", named, said)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v (%v)", left, err)
		}
	}
}

// TestFaultsOfARealToolchain: this version of Go prints the messages by which faults are recognized.
func TestFaultsOfARealToolchain(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	g := findGo(t)
	for name, c := range map[string]struct {
		mod, main string
		fault     build.Fault
		says      string
	}{
		"a newer Go": {"module x\n\ngo 1.999\n", "package main\n\nfunc main() {}\n", build.TooOld, "go >= 1.999"},
		"offline": {
			"module x\n\ngo 1.26\n\nrequire example.invalid/y v1.0.0\n",
			"package main\n\nimport _ \"example.invalid/y\"\n\nfunc main() {}\n",
			build.Unreachable, "GOPROXY=off",
		},
		"our mistake": {
			"module x\n\ngo 1.26\n", "package main\n\nfunc main() { undefined() }\n", build.Other,
			"undefined: undefined",
		},
	} {
		m := program
		m.Files = build.Files{
			"go.mod": []byte(c.mod), "main.go": []byte(c.main),
			"go.sum": []byte(
				"example.invalid/y v1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nexample.invalid/y v1.0.0/go.mod " +
					"h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"),
		}
		err := g.Make(t.Context(), m, t.TempDir())
		fault, ok := errors.AsType[*build.GoFault](err)
		if !ok || fault.Fault != c.fault || !strings.Contains(fault.Error(), c.says) {
			t.Errorf("%s: %v, want %s: %q", name, err, c.fault, c.says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Make(ctx, program, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := build.FindGo(ctx, os.LookupEnv); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestFaults: faults are recognized by the toolchain's messages; the line is quoted, shortened.
func TestFaults(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		script string
		want   build.GoFault
	}{
		"full before unreachable": {
			"Get x: dial tcp\nwrite /x: no space left on device",
			build.GoFault{Fault: build.NoSpace, Says: "write /x: no space left on device"},
		},
		"a long line": {
			"go: downloading y\n" + long + ": connection refused",
			build.GoFault{Fault: build.Unreachable, Says: long[:300]},
		},
		"altered": {
			"verifying a@v1: checksum mismatch\n\tdownloaded: h1:x\nSECURITY ERROR",
			build.GoFault{Fault: build.Altered, Says: "verifying a@v1: checksum mismatch"},
		},
		"a killed compiler": {
			"k8s.io/api: compile: signal: killed",
			build.GoFault{Fault: build.Killed, Says: "k8s.io/api: compile: signal: killed"},
		},
		"another": {"panic: 502", build.GoFault{Fault: build.Other, Says: "exit status 1"}},
	} {
		bin := t.TempDir()
		text := "#!/bin/sh\nif [ $1 = env ]; then echo a warning >&2; echo '{\"GOVERSION\": \"go1.26.8\"}'; exit; fi\ncat " +
			">&2 <<'.'\n" + c.script + "\n.\nexit 1\n"
		if err := files.WriteProgram(filepath.Join(bin, "go"), []byte(text)); err != nil {
			t.Fatal(err)
		}
		g, err := build.FindGo(t.Context(), func(string) (string, bool) { return bin, true })
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.Packages(t.Context(), program, bin, nil)
		fault, ok := errors.AsType[*build.GoFault](err)
		if !ok {
			t.Fatalf("%s: got %v, want a Fault", name, err)
		}
		c.want.Tail = build.Tail(c.script)
		if diff := cmp.Diff(c.want, *fault); diff != "" {
			t.Errorf("%s: fault (-want +got):\n%s", name, diff)
		}
	}
}
