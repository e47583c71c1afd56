package identity

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestEndpointLimitsItselfWithoutControlGroups: it says so in every report, and still serves about 163/s.
func TestEndpointLimitsItselfWithoutControlGroups(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	tg, j := prepared(t, embedded("cpu-only"), standard, func(tg *target) {
		tg.planGroup = func(string) (string, error) { return "", fmt.Errorf("test: %w", proc.ErrNoCgroup) }
	})
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, noteThrottle) {
		t.Errorf("notes %q", notes)
	}
	for _, c := range j.Changes() {
		if c.Kind == changeCgroup {
			t.Errorf("a group is journaled that was never made: %v", c)
		}
	}
	wantThrottledNear163(t, tg)
}

func TestGroupLimits(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	tg, _ := prepared(t, embedded("cpu-only"), standard)
	if tg.arm("default").group == nil {
		hosttest.Missing(t, "this host gives no control group", hosttest.Root)
	}
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	wantThrottledNear163(t, tg)
}

// wantThrottledNear163 overloads the endpoint for 2 s. It must never serve more than its price allows. It serves about
// as much, held back by its limit, only if this host gives it that much processor time, so a try during which others
// used the processors is repeated.
func wantThrottledNear163(t *testing.T, tg *target) {
	t.Helper()
	const tries = 8
	wrong := ""
	for range 2 { // quiet tries
		for try := 0; ; try++ {
			if try == tries {
				hosttest.Missing(t, fmt.Sprintf("others had the processors in each of %d tries; the last: %s", tries, wrong),
					hosttest.Quiet)
			}
			free := cpuShare(t)
			if err := tg.Enter(t.Context(), standard); err != nil { // periods count from here
				t.Fatal(err)
			}
			rate := overload(t, tg)
			free = min(free, cpuShare(t))
			throttled := tg.Observe(t.Context(), standard).Throttled
			if throttled == nil {
				t.Fatal("the share of throttled periods is not known")
			}
			t.Logf("%.1f/s, throttled in %.2f of the periods, %.2f of a processor to be had", rate, *throttled, free)
			if rate > 190 {
				t.Fatalf("%.1f/s, want about 163 and never more", rate)
			}
			if rate >= 80 && *throttled >= 0.5 {
				return
			}
			wrong = fmt.Sprintf("%.1f/s, want about 163; throttled in %.2f of the periods, want most", rate, *throttled)
			if free > 0.9 {
				break
			}
		}
	}
	t.Error("on a quiet host, twice: " + wrong)
}

// overload returns how many calls a second the endpoint serves of 300/s.
func overload(t *testing.T, tg *target) float64 {
	t.Helper()
	const seconds = 2
	in := 0
	for _, c := range offerBurst(t, tg, 300, seconds*time.Second, time.Minute, 64) {
		if c.Outcome != load.OK {
			t.Fatalf("a call ended as %v", c.Outcome)
		}
		if c.Done < seconds*time.Second {
			in++
		}
	}
	return float64(in) / seconds
}

// cpuShare returns the smallest share of a processor that this host gives to threads that want all of it.
func cpuShare(t *testing.T) float64 {
	t.Helper()
	const long = 200 * time.Millisecond
	before, begin := load.ProcessCPU(), time.Now()
	var all sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for range n {
		all.Go(func() {
			for time.Since(begin) < long {
			}
		})
	}
	all.Wait()
	return (load.ProcessCPU() - before) / time.Since(begin).Seconds() / float64(n)
}

// TestControlGroupsOfKilledTestsAreRemoved kills tests that have a control group, none of which may stay on this host.
func TestControlGroupsOfKilledTestsAreRemoved(t *testing.T) {
	if os.Getenv("TARE_TEST_DIE") != "" {
		tg, _ := prepared(t, embedded("cpu-only"), standard)
		fmt.Printf("group %s\n", tg.arm(standard.ID).group.Path())
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if _, err := proc.PlanCgroup(proc.CgroupName("x", serverEndpoint)); err != nil {
		hosttest.Missing(t, "this host gives no control group", hosttest.Root)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestControlGroupsOfKilledTestsAreRemoved$")
	c.Env = append(os.Environ(), "TARE_TEST_DIE=1", "TMPDIR="+t.TempDir()) // it cannot clean up
	c.WaitDelay = 10 * time.Second
	out, err := c.Output()
	_, path, ok := strings.Cut(string(out), "group ")
	path = strings.TrimSpace(path)
	if err == nil || !ok {
		t.Fatalf("the tests did not die with a group: %v\n%s", err, out)
	}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	t.Errorf("%s is left", path)
}
