package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/rigs/hosttest"
)

// TestSetUpCosts measures every set-up cost under every policy, after the threads have proved it.
func TestSetUpCosts(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for title, levels := range policies() {
		t.Run(title, func(t *testing.T) {
			tr := treatment(levels...)
			names := setUpNames()
			if p, err := (&Spec{}).plan(tr); err != nil || p.stack.canLoad() != nil {
				names = slices.DeleteFunc(names, func(n string) bool { return n == workload.KindLoad })
			}
			tg, j := prepared(t, &Spec{SetUp: names}, tr)
			enter(t, tg, tr)
			if err := tg.Verify(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				o := operationOf(t, tg, tr, name)
				s, err := o.Batch(t.Context(), 3)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				want, most := metricWall, mostSetUps
				switch name {
				case kindMemory:
					want, most = metricMemory, 1
				case workload.KindLoad:
					most = mostLoads
				}
				if value(t, s, want); o.Most != most || o.Negative {
					t.Errorf("%s: %+v", name, o)
				}
			}
			if left := len(j.Pending()); left != 4 {
				t.Errorf("%d changes, want the folder, the worker, and the processes for set-ups and for memory", left)
			}
		})
	}
}

// TestSetUpThreadsProveThePolicy: threads that are not under the policy are found, both of set-ups and of others.
func TestSetUpThreadsProveThePolicy(t *testing.T) {
	tr := treatment("enforcer", "none", "others", "3")
	tg, _ := prepared(t, &Spec{SetUp: []string{"confine"}}, tr)
	requireEnforcer(t, enforcerLandlock)
	for what, of := range map[string]func(*sample) *sample{
		"set-ups": func(s *sample) *sample { return s.setter },
		"others":  func(s *sample) *sample { return s.holder },
	} {
		enter(t, tg, tr)
		s := tg.arms[tr.ID].sample
		if err := s.prove(t.Context()); err != nil {
			t.Fatal(err)
		}
		of(s).plan.stack = stack{landlockRules{}}
		if err := s.prove(t.Context()); err == nil || !strings.Contains(err.Error(), "not enforced as expected") {
			t.Errorf("bare threads of %s under Landlock: %v", what, err)
		}
		if err := tg.Leave(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
}

// threadsUnderFilter counts the threads of a process that are under a filter.
func threadsUnderFilter(t *testing.T, pid int) (n int) {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(all) == 0 {
		t.Fatalf("process %d has %d threads: %v", pid, len(all), err)
	}
	for _, path := range all {
		text, _ := os.ReadFile(path) // a thread may have ended
		if strings.Contains(string(text), "\nSeccomp:\t2\n") {
			n++
		}
	}
	return n
}

// TestOthersFollowTheArm: a batch finds the other policies of its own treatment on the host, and those of no other.
func TestOthersFollowTheArm(t *testing.T) {
	alone := treatment("enforcer", "seccomp", "others", "0")
	few, more := treatment("enforcer", "seccomp", "others", "7"), treatment("enforcer", "seccomp", "others", "40")
	arms := []design.Treatment{alone, few, more}
	tg, _ := prepared(t, &Spec{Workloads: []string{"syscall"}}, arms...)
	for _, a := range arms {
		enter(t, tg, a)
		if err := tg.Verify(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	under := func(a design.Treatment) int {
		return threadsUnderFilter(t, tg.arms[a.ID].sample.holder.worker.child.PID)
	}
	for _, turn := range []struct {
		arm       design.Treatment
		few, more int
	}{{more, 0, 40}, {few, 7, 0}, {few, 7, 0}, {alone, 0, 0}, {few, 7, 0}, {more, 0, 40}} {
		if _, err := operationOf(t, tg, turn.arm, "syscall").Batch(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if f, m := under(few), under(more); f != turn.few || m != turn.more {
			t.Errorf("in a batch of %s %d and %d policies are held, want %d and %d", turn.arm.ID, f, m, turn.few, turn.more)
		}
	}
	for _, a := range arms {
		if err := tg.Leave(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, "others: that many further policies") {
		t.Errorf("notes do not say what others are:\n%s", notes)
	}
	if tg.holding != nil {
		t.Error("an arm that was left is said to hold policies")
	}
}

// A shelf is an enforcer whose policies are in the kernel itself: here, a number.
type shelf struct {
	none

	loaded *int
}

func (s shelf) Fill(_ context.Context, _ Policy, n int, _ *host) (func(context.Context) error, error) {
	*s.loaded += n
	return func(context.Context) error { *s.loaded -= n; return nil }, nil
}

// TestOthersInTheKernel: an enforcer that keeps policies itself is asked to load and remove them.
func TestOthersInTheKernel(t *testing.T) {
	bare, full := treatment("enforcer", "none"), treatment("enforcer", "none", "others", "9")
	tg, _ := prepared(t, &Spec{Workloads: []string{"syscall"}}, bare, full)
	loaded := 0
	tg.arms[full.ID].plan.stack = stack{shelf{loaded: &loaded}}
	for _, a := range []design.Treatment{bare, full} {
		enter(t, tg, a)
	}
	for _, turn := range []struct {
		arm  design.Treatment
		want int
	}{{bare, 0}, {full, 9}, {full, 9}, {bare, 0}, {full, 9}} {
		if _, err := operationOf(t, tg, turn.arm, "syscall").Batch(t.Context(), 1); err != nil || loaded != turn.want {
			t.Errorf("%s: %d loaded, want %d: %v", turn.arm.ID, loaded, turn.want, err)
		}
	}
	if err := tg.Leave(t.Context(), full); err != nil || loaded != 0 {
		t.Errorf("%d are loaded after the arm was left: %v", loaded, err)
	}
}

// A wholeProcess is an enforcer that cannot confine single threads.
type wholeProcess struct{ Enforcer }

// TestSetUpNeedsThreads: an enforcer that cannot confine single threads has no set-ups and no others.
func TestSetUpNeedsThreads(t *testing.T) {
	p := plan{stack: stack{wholeProcess{none{}}}}
	if err := (&Spec{SetUp: []string{"confine"}}).expressSetUp(p); err == nil {
		t.Error("a set-up of an enforcer that cannot confine threads")
	}
	p.others = 1
	if err := (&Spec{}).expressSetUp(p); err == nil || !strings.Contains(err.Error(), "others: none cannot confine") {
		t.Errorf("others of an enforcer that cannot confine threads: %v", err)
	}
}

// TestTrialsLeaveSetUpsOut: what a profile refuses is looked for in what confined processes do.
func TestTrialsLeaveSetUpsOut(t *testing.T) {
	s := &Spec{Workloads: []string{"open"}, SetUp: setUpNames(), Commands: []Command{{Name: "c", Run: []string{"true"}}}}
	var names []string
	for _, o := range s.workloadOperations(plan{}) {
		names = append(names, o.name)
	}
	if !slices.Equal(names, []string{"open", "c"}) {
		t.Errorf("a trial has %q", names)
	}
}

func TestMeminfo(t *testing.T) {
	const text = "MemTotal:  5 kB\nSUnreclaim:  3 kB\nVmallocUsed:\t20 kB\nPercpu:  100 kB\nHugePages_Total:  7\n"
	if got, err := parseMeminfo([]byte(text)); got != 123<<10 || err != nil {
		t.Errorf("%d: %v, want 123 KiB", got, err)
	}
	for _, bad := range []string{
		"", strings.Replace(text, "Percpu", "X", 1), strings.Replace(text, "20 kB", "20", 1),
		strings.Replace(text, " 3 kB", " x kB", 1),
	} {
		if got, err := parseMeminfo([]byte(bad)); err == nil || !strings.Contains(err.Error(), "cannot be read here") {
			t.Errorf("%q gives %d: %v", bad, got, err)
		}
	}
	if _, err := policyMemory(t.Context(), &sample{}, 1); err == nil {
		t.Error("memory without a process that holds policies")
	}
}

// TestMemoryOfAFilter: a thread under a long filter takes more of the kernel's memory than one under none. The bounds
// are wide, since other work on the host moves the figures.
func TestMemoryOfAFilter(t *testing.T) {
	hosttest.SkipIfShort(t)
	docker := treatment("enforcer", "seccomp", "mode", "RuntimeDefault")
	tg, _ := prepared(t, &Spec{SetUp: []string{kindMemory}}, baseline(), docker)
	enter(t, tg, baseline())
	enter(t, tg, docker)
	var bare, filtered []float64
	for range 5 {
		for arm, out := range map[string]*[]float64{baseline().ID: &bare, docker.ID: &filtered} {
			s, err := operationOf(t, tg, tg.arms[arm].treatment, kindMemory).Batch(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			*out = append(*out, value(t, s, metricMemory))
		}
	}
	if more := middle(filtered) - middle(bare); more < 2<<10 || more > 100<<10 {
		t.Errorf("a thread takes %.0f B, one under Docker's profile %.0f B", middle(bare), middle(filtered))
	}
	if got := memorySample(workload.Cost{Memory: 300}, 3); got[0].Value != 100 {
		t.Errorf("300 B of 3 policies are %v of one", got)
	}
}

// TestForecastOfSetUp: budgets may name set-up costs, and memory only where it is measured.
func TestForecastOfSetUp(t *testing.T) {
	for _, c := range []struct {
		setUp []string
		want  bool
	}{{[]string{"confine", "memory"}, true}, {[]string{"confine"}, false}} {
		f := (&Spec{SetUp: c.setUp}).Forecast(area.Asked{}, baseline())
		if d := cmp.Diff(c.setUp, f.Operations); d != "" || slices.Contains(f.Metrics, metricMemory) != c.want {
			t.Errorf("%v: operations (-want +got) %s, metrics %v", c.setUp, d, f.Metrics)
		}
	}
}
