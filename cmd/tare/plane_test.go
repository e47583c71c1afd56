package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/internal/cli"
	"tare/internal/clock"
	"tare/rigs/hosttest"
)

// planeVariable names a control plane that was built elsewhere.
const planeVariable = "TARE_PLANE"

// builtPlane returns a control plane of this host. It builds none, which takes minutes, but skips the test.
func builtPlane(t *testing.T) (path string) {
	t.Helper()
	needsAreas(t, "admission")
	if path = os.Getenv(planeVariable); path == "" {
		dir, ok := currentBuild(t, "control planes", "1.36-")
		if !ok {
			hosttest.Missing(t, "no control plane of Kubernetes 1.36 is built", hosttest.Plane)
		}
		path = filepath.Join(dir, "tare-plane")
	}
	hosttest.Place(t)
	return path
}

// currentBuild returns the folder of a build in the user's cache that this version of tare uses.
func currentBuild(t *testing.T, holds, prefix string) (dir string, ok bool) {
	t.Helper()
	text, code := runTare(t, "cache", "-o", "json")
	var cache struct {
		Folders []struct {
			Holds, Folder string
			Items         []struct{ Name, State string }
		}
	}
	if err := json.Unmarshal([]byte(text), &cache); code != cli.ExitPass || err != nil {
		t.Fatalf("tare cache: exit %d, %v\n%s", code, err, text)
	}
	for _, f := range cache.Folders {
		for _, i := range f.Items {
			if f.Holds == holds && strings.HasPrefix(i.Name, prefix) && i.State == "current" {
				return filepath.Join(f.Folder, i.Name), true
			}
		}
	}
	return "", false
}

// TestPlaneScript runs a real control plane if one is built or named.
func TestPlaneScript(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	path := builtPlane(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "plane"),
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      checkExitCode,
			"killholder": killHolder,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home")) // not there: nothing of other scripts is in it
			e.Setenv(planeVariable, path)
			e.Setenv("TARE_CACHE", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("XDG_RUNTIME_DIR", filepath.Join(e.WorkDir, "run"))
			e.Defer(func() { // after a script that failed halfway
				out := t.Output()
				if cli.Main(context.Background(), cli.Env{
					Args: []string{"tare", "plane", "down", "--all"}, Stdout: out, Stderr: out,
					Getenv: e.Getenv, Areas: areas(),
				}) != cli.ExitPass {
					t.Error("a plane is still running")
				}
			})
			return nil
		},
	})
}

// killHolder kills the process that holds a plane, and waits until its components have ended.
func killHolder(ts *testscript.TestScript, _ bool, args []string) {
	holder, running := planeProcesses(ts, args[0])
	if holder <= 1 || running != 5 {
		ts.Fatalf("plane %s, held by process %d, with %d processes", args[0], holder, running)
	}
	ts.Check(syscall.Kill(holder, syscall.SIGKILL))
	for n := 0; running > 0; n++ {
		if n == 300 {
			ts.Fatalf("%d processes outlive their holder", running)
		}
		ts.Check(clock.System{}.Sleep(context.Background(), 100*time.Millisecond))
		_, running = planeProcesses(ts, args[0])
	}
}

// planeProcesses returns the holder of a plane, and how many of its components run, as `tare plane status` tells.
func planeProcesses(ts *testscript.TestScript, name string) (holder, running int) {
	var out bytes.Buffer
	code := cli.Main(context.Background(), cli.Env{
		Args: []string{"tare", "plane", "status", "-o", "json"}, Stdout: &out, Stderr: &out, Getenv: ts.Getenv,
		Areas: areas(),
	})
	var status struct {
		Planes []struct {
			Name       string
			Holder     struct{ PID int }
			Components []struct {
				RSS *float64 `json:"rss_bytes"`
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &status); err != nil || code != cli.ExitPass {
		ts.Fatalf("tare plane status: exit %d, %v\n%s", code, err, &out)
	}
	for _, p := range status.Planes {
		if p.Name != name {
			continue
		}
		holder = p.Holder.PID
		for _, c := range p.Components {
			if c.RSS != nil {
				running++
			}
		}
	}
	return holder, running
}
