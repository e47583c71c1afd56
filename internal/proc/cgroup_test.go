package proc_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

func newCgroup(t *testing.T, q proc.Quota) *proc.Cgroup {
	t.Helper()
	name := proc.CgroupName(fmt.Sprint("test ", os.Getpid()), strings.ToLower(t.Name()))
	plan, planErr := proc.PlanCgroup(name)
	g, err := proc.NewCgroup(name, q)
	if errors.Is(err, proc.ErrNoCgroup) {
		hosttest.Missing(t, fmt.Sprintf("no control group limits CPU time: %v", err), hosttest.Root)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(g.Path()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", g.Path(), err)
		}
	})
	if planErr != nil || plan != g.Path() {
		t.Errorf("planned %q (%v), created %q", plan, planErr, g.Path())
	}
	return g
}

// TestCgroupLimitsAChild: a child that would burn a whole CPU gets the share, by the kernel's own accounts. A busy
// machine may give it even less, so the test goes on until the group has been throttled a few times. Unlimited it would
// use 0.5 s and more meanwhile; a tenth of a second is left for what a hypervisor takes while the child stands charged.
func TestCgroupLimitsAChild(t *testing.T) {
	const share, period = 0.05, 50 * time.Millisecond
	g := newCgroup(t, proc.Quota{Share: share, Period: period})
	s := spec(t, "burn")
	s.Cgroup = g
	c := start(t, s)
	t0, cpu0 := time.Now(), cpuTicks(t, c.PID)
	eventually(t, "the group is throttled in 10 periods", func() bool { return throttled(t, g) >= 10 })
	// The clocks are read from the wide to the narrow: CPU first. Ticks are 10 ms.
	used := float64(cpuTicks(t, c.PID)-cpu0) / 100
	wall := time.Since(t0)
	if allowed := share*(wall+2*period).Seconds()*1.1 + 0.1; used > allowed {
		t.Errorf("used %.3f CPU-s in %v, want at most %.3f", used, wall, allowed)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func throttled(t *testing.T, g *proc.Cgroup) (n int) {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join(g.Path(), "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(stat)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "nr_throttled "); ok {
			if n, err = strconv.Atoi(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b)[strings.LastIndex(string(b), ")")+2:])
	user, err1 := strconv.Atoi(f[11])
	sys, err2 := strconv.Atoi(f[12])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return user + sys
}

// TestRemoveCgroupWaits: a group with a process in it is removed as soon as that has ended, and not before.
func TestRemoveCgroupWaits(t *testing.T) {
	g := newCgroup(t, proc.Quota{Share: 0.5})
	s := spec(t, "echo")
	s.Cgroup = g
	c := start(t, s)
	removed := make(chan error, 1)
	go func() { removed <- proc.RemoveCgroup(g.Path()) }()
	select {
	case err := <-removed:
		t.Fatalf("removed with a process in it: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if err := proc.RemoveCgroup(g.Path()); err != nil {
		t.Errorf("second time: %v", err)
	}
}

// TestReleaseEndsTheLimit: a released process runs on, and its group can be removed.
func TestReleaseEndsTheLimit(t *testing.T) {
	g := newCgroup(t, proc.Quota{Share: 0.5})
	c := start(t, spec(t, "echo"))
	if err := g.Add(c.PID); err != nil {
		t.Fatal(err)
	}
	if err := g.Release(c.PID); err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	select {
	case <-c.Exited():
		t.Error("the process has ended")
	default:
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := g.Release(c.PID); err != nil {
		t.Errorf("of a process that has ended: %v", err)
	}
}

func TestRemoveCgroupRefusesOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tare-x-y")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/sys/fs/cgroup/cpu/system", "tare-x-y", "/sys/fs/cgroup/cpu/tare-x/../system",
		"/sys/fs/cgroup/cpu/tare-x/", dir, "",
	} {
		if err := proc.RemoveCgroup(path); err == nil {
			t.Errorf("%q: no error", path)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("removed a directory that is no control group")
	}
}

func TestCgroupNames(t *testing.T) {
	if got, want := proc.CgroupName("gke-2020 2026/11:21", "sts:1"), "tare-gke-2020-2026-11-21-sts-1"; got != want {
		t.Errorf("CgroupName = %q, want %q", got, want)
	}
	for _, bad := range []string{"", "x", "tare-a/b", "tare-a b", "tare-" + strings.Repeat("x", 200)} {
		if _, err := proc.PlanCgroup(bad); err == nil || errors.Is(err, proc.ErrNoCgroup) {
			t.Errorf("%q: error %v, want one about the name", bad, err)
		}
	}
}

// TestBurnerUsesWhatItSays compares with the thread's own clock around the call. How much more than it was asked for it
// uses is the host's affair: the kernel charges a thread for the time that a hypervisor takes from it.
func TestBurnerUsesWhatItSays(t *testing.T) {
	b, err := newBurner()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, d := range []time.Duration{0, 10 * time.Microsecond, 650 * time.Microsecond, 20 * time.Millisecond} {
		t0, err0 := proc.ThreadCPU()
		told, err1 := b.Burn(d)
		t1, err2 := proc.ThreadCPU()
		if err := errors.Join(err0, err1, err2); err != nil {
			t.Fatal(err)
		}
		if told < d || told > t1-t0 {
			t.Errorf("Burn(%v) says it used %v; seen from outside %v", d, told, t1-t0)
		}
	}
}

// TestThrottledBurnerServesTheShare is the real thing: 1 ms of CPU a call at half a CPU in periods of 20 ms. The
// process may use no more than the share over whole periods, whatever else the machine does, but for what the last call
// is charged with while a hypervisor stops it: 50 ms of the 200 that it would use unthrottled in as many.
func TestThrottledBurnerServesTheShare(t *testing.T) {
	b, err := newBurner()
	if err != nil {
		t.Fatal(err)
	}
	const share, period = 0.5, 20 * time.Millisecond
	th, err := proc.NewThrottle(proc.Quota{Share: share, Period: period}, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	cpu0, err := proc.ProcessCPU()
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if err := th.Do(t.Context(), func() {
			if _, err := b.Burn(time.Millisecond); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	wall := time.Since(t0)
	cpu1, err := proc.ProcessCPU()
	if err != nil {
		t.Fatal(err)
	}
	if allowed := time.Duration(share*float64(wall+2*period)) + 50*time.Millisecond; cpu1-cpu0 > allowed {
		t.Errorf("used %v of CPU in %v, allowed %v", cpu1-cpu0, wall, allowed)
	}
	if cpu1-cpu0 < 200*time.Millisecond {
		t.Errorf("used %v of CPU for 200 ms of work", cpu1-cpu0)
	}
	// A machine that gives us less than the share leaves nothing to throttle.
	if s := th.Stats(); s.Throttled == 0 && (cpu1-cpu0).Seconds() > 0.9*share*wall.Seconds() {
		t.Errorf("stats %+v: never throttled, though %v of CPU were used in %v", s, cpu1-cpu0, wall)
	}
}
