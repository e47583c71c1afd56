package sandbox

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

func TestValidate(t *testing.T) {
	open := Spec{Workloads: []string{"open"}}
	pair := []Command{{Name: "a", Run: []string{"true"}}, {Name: "b", Run: []string{"false"}}}
	for _, c := range []struct {
		title  string
		spec   Spec
		q      design.Question
		levels [][]string
		path   string
		says   string // empty: nothing is wrong
	}{
		{title: "plain", spec: open},
		{title: "all kinds", spec: Spec{
			Workloads: kinds(), Commands: pair, Real: []string{"redis", "nginx", "sysbench"},
			Rounds: 5, Span: unit.Duration(time.Second),
		}},
		{title: "scale", spec: open, q: design.Scale, levels: [][]string{
			{"enforcer", "landlock", "rules", "0"},
			{"enforcer", "landlock", "rules", "2000"},
		}},
		{title: "nothing", path: "workloads", says: "name something to time"},
		{
			title: "a slip", spec: Spec{Workloads: []string{"open", "excc"}}, path: "workloads[1]",
			says: `did you mean "exec"?`,
		},
		{
			title: "no slip", spec: Spec{Workloads: []string{"banana"}}, path: "workloads[0]",
			says: `there is no workload "banana"; there are exec,`,
		},
		{title: "twice", spec: Spec{Workloads: []string{"open", "open"}}, path: "workloads[1]", says: "already"},
		{
			title: "a command like a workload",
			spec:  Spec{Workloads: []string{"open"}, Commands: []Command{{Name: "open", Run: []string{"true"}}}},
			path:  "commands[0].name", says: "already",
		},
		{
			title: "a command called command", spec: Spec{Commands: []Command{{Name: "command", Run: []string{"true"}}}},
			path: "commands[0].name", says: "already",
		},
		{
			title: "a name with a dot", spec: Spec{Commands: []Command{{Name: "a.b", Run: []string{"true"}}}},
			path: "commands[0].name", says: "so that budgets can name it",
		},
		{
			title: "a command without a program", spec: Spec{Commands: []Command{{Name: "a"}}}, path: "commands[0]",
			says: "needs a program",
		},
		{title: "a daemon's slip", spec: Spec{Real: []string{"rediss"}}, path: "real[0]", says: `did you mean "redis"?`},
		{
			title: "connections", spec: Spec{Real: []string{"redis", "redis-get", "apache-1000"}, Connections: []int{1, 500}},
		},
		{
			title: "too many connections of one", spec: Spec{Real: []string{"apache-1001"}}, path: "real[0]",
			says: `there is no real workload "apache-1001"`,
		},
		{
			title: "too many connections", spec: Spec{Real: []string{"redis"}, Connections: []int{50, 1001}},
			path: "connections[1]", says: "1001 connections: want 1 to 1000",
		},
		{
			title: "no connections", spec: Spec{Real: []string{"redis"}, Connections: []int{0}}, path: "connections[0]",
			says: "0 connections: want 1 to 1000",
		},
		{
			title: "connections twice", spec: Spec{Real: []string{"redis", "redis-50"}, Connections: []int{50}}, path: "real",
			says: `"redis-50" is real already`,
		},
		{
			title: "connections to nothing", spec: Spec{Real: []string{"sysbench", "redis-50"}, Connections: []int{50}},
			path: "connections", says: "no server in real that takes the number",
		},
		{title: "sysbench twice", spec: Spec{Real: []string{"sysbench", "sysbench-cpu"}}, path: "real", says: "already"},
		{
			title: "short", spec: Spec{Workloads: []string{"open"}, Span: unit.Duration(time.Microsecond)}, path: "span",
			says: "want 1ms to 10s",
		},

		{
			title: "an enforcer's slip", spec: open, levels: [][]string{{"enforcer", "secomp"}},
			says: `did you mean "seccomp"?`,
		},
		{
			title: "a factor's slip", spec: open, levels: [][]string{{"enforcer", "none", "rule", "1"}},
			says: `did you mean "rules"?`,
		},
		{
			title: "a mode's slip", spec: open, levels: [][]string{{"enforcer", "seccomp", "mode", "RuntimeDefalt"}},
			says: `did you mean "RuntimeDefault"?`,
		},
		{
			title: "negative rules", spec: open, levels: [][]string{{"enforcer", "landlock", "rules", "-1"}},
			says: "not a number from 0 on",
		},
		{
			title: "too many rules", spec: open, levels: [][]string{{"enforcer", "seccomp", "rules", "1000"}},
			says: "no more system calls",
		},
		{
			title: "far too many rules", spec: open, levels: [][]string{{"enforcer", "landlock", "rules", "10001"}},
			says: "up to 10000",
		},
		{
			title: "rules of nothing", spec: open, levels: [][]string{{"enforcer", "none", "rules", "5"}},
			says: "rules: not expressible",
		},
		{
			title: "a mode of nothing", spec: open, levels: [][]string{{"enforcer", "none", "mode", "AlwaysAllow"}},
			says: "mode: not expressible",
		},
		{
			title: "no rules of nothing", spec: open,
			levels: [][]string{{"enforcer", "none", "rules", "0", "match", "0", "planted", "0%"}},
		},
		{
			title: "depth", spec: open, levels: [][]string{{"enforcer", "seccomp", "match", "2"}},
			says: "match: not expressible by seccomp",
		},
		{
			title: "depth of Landlock", spec: open, levels: [][]string{{"enforcer", "landlock", "match", "2"}},
			says: "match: not expressible by landlock",
		},
		{
			title: "no default", spec: open, levels: [][]string{{"enforcer", "landlock", "mode", "RuntimeDefault"}},
			says: "landlock cannot express RuntimeDefault",
		},
		{
			title: "no hardening", spec: open, levels: [][]string{{"enforcer", "landlock", "mode", "EnhanceProtect"}},
			says: "landlock cannot express EnhanceProtect",
		},
		{
			title: "no hardening by calls", spec: open, levels: [][]string{{"enforcer", "seccomp", "mode", "EnhanceProtect"}},
			says: "seccomp cannot express EnhanceProtect",
		},
		{title: "a bare number", spec: open, levels: [][]string{{"planted", "2"}}, says: "planted: "},
		{title: "too fine", spec: open, levels: [][]string{{"planted", "0.01%"}}, says: "too fine"},
		{title: "too much", spec: open, levels: [][]string{{"planted", "2000%"}}, says: "cannot be planted"},
		{
			title: "commands against one another", spec: Spec{Commands: pair},
			levels: [][]string{{"command", "a"}, {"command", "b"}},
		},
		{
			title: "an unknown command", spec: Spec{Commands: pair}, levels: [][]string{{"command", "a"}, {"command", "c"}},
			says: `command: there is no "c"`,
		},
		{
			title: "one command against all", spec: Spec{Commands: pair},
			levels: [][]string{{"enforcer", "none"}, {"command", "b"}}, says: "cannot be compared with",
		},
	} {
		found := areatest.Validate(&c.spec, c.q, c.levels)
		areatest.WantFinding(t, c.title, found, area.Finding{Path: c.path, Severity: area.Error, Message: c.says})
	}
}

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
