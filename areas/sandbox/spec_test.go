package sandbox

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestDescriptionListsWorkloads: editors show what the description lists.
func TestDescriptionListsWorkloads(t *testing.T) {
	f, _ := reflect.TypeFor[Spec]().FieldByName("Workloads")
	_, list, _ := strings.Cut(f.Tag.Get("jsonschema_description"), ": ")
	if d := cmp.Diff(kinds(), strings.Split(strings.TrimSuffix(list, "."), ", ")); d != "" {
		t.Error(d)
	}
	for _, name := range []string{workFork, workCompute, workSyscall} {
		if !slices.Contains(kinds(), name) {
			t.Errorf("there is no workload %q to be a negative control", name)
		}
	}
}

func TestShares(t *testing.T) {
	for text, want := range map[string]share{
		"0%": {0, 1}, "2%": {1, 50}, "10%": {1, 10}, "0.5%": {1, 200}, "3%": {3, 100}, "100%": {1, 1}, "250%": {5, 2},
		"0.1%": {1, 1000},
	} {
		got, err := parseShare(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, want %v: %v", text, got, want, err)
		}
		if n := 7 * want.whole; got.of(n) != 7*want.part {
			t.Errorf("%s of %d: %d", text, n, got.of(n))
		}
	}
	for _, text := range []string{"", "2", "-1%", "0.01%", "33.3333%", "1001%", "x%"} {
		if got, err := parseShare(text); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

// FuzzShare: a share is read exactly, and is small enough to plant.
func FuzzShare(f *testing.F) {
	for _, s := range []string{"2%", "0.1%", "1000%", "33.3%", "1e3%", " 5 %", "NaN%", "-0%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseShare(text)
		if err != nil {
			return
		}
		p, err := unit.ParsePercent(text)
		if err != nil || s.whole < 1 || s.whole > finestShare || s.part < 0 || s.part > largestShare*s.whole {
			t.Fatalf("%q gives %v: %v", text, s, err)
		}
		if got := float64(s.of(s.whole)) / float64(s.whole); got-p.Ratio() > 1e-8 || p.Ratio()-got > 1e-8 {
			t.Errorf("%q gives %v, which is %v", text, s, got)
		}
	})
}

// FuzzPlan: levels lead to a plan that its enforcer can express and describe, or to an error in one line.
func FuzzPlan(f *testing.F) {
	f.Add("seccomp", "RuntimeDefault", "4", "0", "2%", "a")
	f.Add("landlock", "", "50", "1", "", "")
	f.Add("none", "AlwaysAllow", "-1", "x", "9", "b")
	f.Fuzz(func(t *testing.T, enforcer, mode, rules, match, planted, command string) {
		levels := map[string]string{}
		for factor, level := range map[string]string{
			factorEnforcer: enforcer, factorMode: mode, factorRules: rules, factorMatch: match, factorPlanted: planted,
			factorCommand: command,
		} {
			if level != "" {
				levels[factor] = level
			}
		}
		s := &Spec{Workloads: []string{"open"}, Commands: []Command{{Name: "a", Run: []string{"true"}}}}
		p, err := s.plan(design.Treatment{ID: "x", Levels: levels})
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without words")
			}
			return
		}
		if p.policy.Rules < 0 || p.policy.Rules > maxLandlockRules || p.policy.Match != 0 || p.planted.whole < 1 {
			t.Errorf("%v gives %+v", levels, p)
		}
		if p.stack.describe(p.policy) == "" || len(s.operations(p)) != 2 {
			t.Errorf("%v gives no description, or not two operations", levels)
		}
	})
}

// TestNegativeControls lists the operations that no treatment can affect, relative to the baseline.
func TestNegativeControls(t *testing.T) {
	for _, c := range []struct {
		title string
		arms  []design.Treatment // the first is the baseline
		want  [][]string
	}{
		{
			"against nothing",
			[]design.Treatment{baseline(), treatment("enforcer", "seccomp"), treatment("enforcer", "landlock", "rules", "5")},
			[][]string{nil, {"fork", "compute"}, {"fork", "syscall", "compute"}},
		},
		{
			"no baseline is marked",
			[]design.Treatment{treatment("enforcer", "landlock", "rules", "0"), treatment("enforcer", "landlock", "rules", "9")},
			[][]string{nil, {"fork", "syscall", "compute"}},
		},
		{
			"what the baseline acts on is no control",
			[]design.Treatment{treatment("enforcer", "seccomp"), treatment("enforcer", "landlock")},
			[][]string{nil, {"fork", "compute"}},
		},
		{
			"nothing against nothing is what is asked",
			[]design.Treatment{baseline(), treatment("enforcer", "none", "planted", "0%")},
			[][]string{nil, nil},
		},
		{
			"a planted cost is real",
			[]design.Treatment{baseline(), treatment("enforcer", "landlock", "planted", "2%")},
			[][]string{nil, nil},
		},
		{
			"the A/A arm is a control already",
			[]design.Treatment{baseline(), {ID: "aa", Control: design.AA, Of: "enforcer=none", Levels: baseline().Levels}},
			[][]string{nil, nil},
		},
	} {
		tg, _ := prepared(t, &Spec{
			Workloads: []string{"open", "fork", "syscall", "compute"},
			Commands:  []Command{{Name: "fork2", Run: []string{"true"}}},
		}, c.arms...)
		for i, a := range c.arms {
			ops, err := tg.Operations(a)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range ops {
				if o.Negative {
					got = append(got, o.Name)
				}
			}
			if d := cmp.Diff(c.want[i], got); d != "" {
				t.Errorf("%s: controls of %s (-want +got):\n%s", c.title, a.ID, d)
			}
		}
	}
}

// TestTargetRejectsCallsOutOfOrder: a step out of order is an error, and notes say what is in force.
func TestTargetRejectsCallsOutOfOrder(t *testing.T) {
	four := treatment("enforcer", "seccomp", "rules", "4")
	tg, j := prepared(t, &Spec{Workloads: []string{"open"}}, baseline(), four, treatment("planted", "2%"))
	if err := tg.Prepare(t.Context(), four, j); err == nil {
		t.Error("prepared twice")
	}
	if err := tg.Enter(t.Context(), treatment("enforcer", "landlock")); err == nil {
		t.Error("entered without having been prepared")
	}
	if err := tg.Verify(t.Context(), four); err == nil {
		t.Error("verified without having been entered")
	}
	if _, err := operationOf(t, tg, four, "open").Batch(t.Context(), 1); err == nil {
		t.Error("a batch without having been entered")
	}
	if err := tg.Leave(t.Context(), four); err != nil {
		t.Errorf("left without having been entered: %v", err)
	}
	enter(t, tg, four)
	if err := tg.Enter(t.Context(), four); err == nil {
		t.Error("entered twice")
	}
	notes := strings.Join(tg.Notes(), "\n")
	for _, want := range []string{"ptrace, mknod, mount, _sysctl", "makes 51 calls for every 50", "CPU"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
}

// TestFreshWorkers: each Enter starts a worker with a folder of its own.
func TestFreshWorkers(t *testing.T) {
	tg, j := prepared(t, &Spec{Workloads: []string{"syscall"}}, baseline())
	pids, dirs := map[int]bool{}, map[string]bool{}
	for range 3 {
		enter(t, tg, baseline())
		s := tg.arms[baseline().ID].sample
		pids[s.worker.child.PID], dirs[s.dir] = true, true
		if err := tg.Leave(t.Context(), baseline()); err != nil {
			t.Fatal(err)
		}
		if left := len(j.Pending()); left != 1 {
			t.Errorf("%d changes are left between stays, want the folder", left)
		}
	}
	if len(pids) != 3 || len(dirs) != 3 {
		t.Errorf("workers %v in %v", pids, dirs)
	}
}

// TestPlantedCostIsFound finds a planted cost among arms that take turns. The bounds are wide, since the machine may be
// busy, and the blocks are many: what else runs here may disturb several in a row.
func TestPlantedCostIsFound(t *testing.T) {
	hosttest.SkipIfShort(t)
	arms := []design.Treatment{
		baseline(), treatment("enforcer", "none", "planted", "0%"),
		treatment("enforcer", "none", "planted", "50%"),
	}
	tg, _ := prepared(t, &Spec{Workloads: []string{"syscall"}}, arms...)
	got := measureInterleaved(t, tg, arms, "syscall", 10_000, 7, 31)
	if got[1] < 0.85 || got[1] > 1.15 || got[2] < 1.3 || got[2] > 1.7 {
		t.Errorf("nothing planted costs %.3f, 50 %% costs %.3f of the baseline", got[1], got[2])
	}
}

// TestPlantedCallsAreExact counts the calls that are made: every batch of every arm makes exactly its share.
func TestPlantedCallsAreExact(t *testing.T) {
	arms := []design.Treatment{baseline(), treatment("planted", "2%"), treatment("planted", "30%")}
	tg, _ := prepared(t, &Spec{Workloads: []string{"syscall"}}, arms...)
	for n, want := range map[int][]int{1: {50, 51, 65}, 50: {50, 51, 65}, 51: {100, 102, 130}, 1000: {1000, 1020, 1300}} {
		for i, a := range arms {
			enter(t, tg, a)
			made := 0
			o := operation{name: "x", run: countCalls(&made)}
			if _, err := tg.batch(tg.arms[a.ID], o)(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if made != want[i] {
				t.Errorf("%s makes %d calls for %d, want %d", a.ID, made, n, want[i])
			}
			if err := tg.Leave(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPreflight: a program that cannot be a worker is a finding for each enforcer that is needed, and for no other.
func TestPreflight(t *testing.T) {
	env := areatest.Env(t)
	env.Treatments = []design.Treatment{baseline(), treatment("enforcer", "seccomp")}
	requireEnforcer(t, enforcerSeccomp)
	if found := (Area{}).Preflight(t.Context(), &Spec{}, env); len(found) > 0 {
		t.Fatalf("this host can, and yet: %v", found)
	}
	env.Self = "/bin/false"
	found := (Area{}).Preflight(t.Context(), &Spec{}, env)
	var of []string
	for _, f := range found {
		name, _, _ := strings.Cut(f.Message, ":")
		of = append(of, name)
		if f.Severity != area.Error || f.Hint == "" || !strings.Contains(f.Message, "exit status 1") {
			t.Errorf("got %+v, want an error with the exit status and a hint", f)
		}
	}
	if !slices.Equal(of, []string{"none", "seccomp"}) {
		t.Errorf("findings for %v", of)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found := (Area{}).Preflight(ctx, &Spec{}, areatest.Env(t)); len(found) != len(enforcers()) {
		t.Errorf("an interrupted preflight found %v", fmt.Sprint(found))
	}
}
