package identity

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/proc"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if name := areatest.ServerOfArgs(areaName); name != "" {
		areatest.Serve(Area{}, name)
	}
	if len(os.Args) == 2 && os.Args[1] == sweeper {
		sweepGroups(os.Getppid())
		os.Exit(0)
	}
	swept, err := startSweeper()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := hosttest.Sharing(m).Run()
	swept()
	os.Exit(code)
}

// sweeper is the argument that makes this binary remove the control groups of its parent, when that has ended. Tests
// remove their groups themselves, but for one that panics, and with it all others, as at a time-out.
const sweeper = "sweep-groups"

// testRun begins the names of all runs of a process of tests.
func testRun(pid int) string { return fmt.Sprintf("p%dx", pid) }

// startSweeper starts one for this process. done ends it.
func startSweeper() (done func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, sweeper)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() { _ = in.Close(); _ = c.Wait() }, nil
}

// sweepGroups waits until standard input ends, which is when the process pid ends, and removes that process's control
// groups.
func sweepGroups(pid int) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT) // they are meant for the tests
	_, _ = io.Copy(io.Discard, os.Stdin)
	path, err := proc.PlanCgroup(proc.CgroupName(testRun(pid), serverEndpoint))
	if err != nil {
		return // this host has no groups
	}
	for range 100 { // the processes in them end with their parent, a moment later
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "tare-"+testRun(pid)+"*"))
		for _, group := range left {
			_ = os.Remove(group)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func testEnv(t testing.TB) area.Env {
	t.Helper()
	env := areatest.Env(t)
	env.Run = testRun(os.Getpid()) + env.Run[:6]
	return env
}

// prepared opens spec and prepares one treatment. At the end of the test it closes the target, which must undo all
// changes.
func prepared(t testing.TB, spec *Spec, tr design.Treatment, adjust ...func(*target)) (*target, *areatest.Journal) {
	t.Helper()
	if tr.ID == "" {
		tr.ID = design.ID(tr.Levels)
	}
	tg, j := areatest.Open[*target](t, Area{}, spec, testEnv(t))
	for _, a := range adjust {
		a(tg)
	}
	if err := tg.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

func embedded(preset string) *Spec {
	return &Spec{Adapter: "gce-metadata", Embedded: &Embedded{Preset: &preset}}
}

// arm is what Prepare made for a treatment.
func (t *target) arm(id string) *arm {
	a, _ := t.arms.Of(design.Treatment{ID: id})
	return a
}
