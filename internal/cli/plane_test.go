package cli

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/areas/plane"
	"tare/internal/clock"
)

// TestPlaneScript runs a real control plane if one is built or named. It builds none, which takes minutes.
func TestPlaneScript(t *testing.T) {
	if testing.Short() {
		t.Skip("a control plane takes seconds and 500 MiB")
	}
	t.Parallel()
	b, ok := plane.Cached(t.Context(), plane.V136, plane.Host{Getenv: os.LookupEnv})
	if !ok {
		t.Skipf("NOT TESTED: there is no control plane of Kubernetes %s here; 'make plane' builds it, or name one in %s",
			plane.V136, plane.Variable)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "plane"),
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      checkExitCode,
			"killholder": killHolder,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv(plane.Variable, b.Path)
			e.Setenv("TARE_CACHE", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("XDG_RUNTIME_DIR", filepath.Join(e.WorkDir, "run"))
			e.Defer(func() { // after a script that failed halfway
				out := t.Output()
				if Main(context.Background(), Env{
					Args: []string{"tare", "plane", "down", "--all"}, Stdout: out, Stderr: out,
					Getenv: e.Getenv, Areas: every,
				}) != ExitPass {
					t.Error("a plane is still running")
				}
			})
			return nil
		},
	})
}

// killHolder kills the process that holds a plane, and waits until its components have ended.
func killHolder(ts *testscript.TestScript, _ bool, args []string) {
	k, ok, err := plane.KeptFolder{Dir: filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "tare", "planes")}.Get(args[0])
	if err != nil || !ok || len(k.Processes) != 5 {
		ts.Fatalf("plane %s with %d processes: %v", args[0], len(k.Processes), err)
	}
	ts.Check(syscall.Kill(k.Holder.PID, syscall.SIGKILL))
	for _, p := range k.Processes {
		for n := 0; p.Alive(); n++ {
			if n == 3000 {
				ts.Fatalf("%s outlives its holder", p.Name)
			}
			ts.Check(clock.System{}.Sleep(context.Background(), 10*time.Millisecond))
		}
	}
}
