package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// requireProcessors skips the test where this process may not use two processors.
func requireProcessors(t *testing.T) {
	t.Helper()
	if _, err := workerCPUs(areatest.Env(t), 2); err != nil {
		hosttest.Missing(t, err.Error(), "run with two processors")
	}
}

// allowedTo returns the processors of a process.
func allowedTo(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "Cpus_allowed_list:")
	list, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(list)
}

// TestWorkersRunTogether: each worker has its own processor, proves the policy, and makes all calls of a batch.
func TestWorkersRunTogether(t *testing.T) {
	requireProcessors(t)
	for _, levels := range [][]string{
		{"enforcer", "none", "workers", "2"},
		{"enforcer", "seccomp", "mode", "RuntimeDefault", "workers", "2"},
		{"enforcer", "landlock", "workers", "2"},
	} {
		tr := treatment(levels...)
		tg, j := prepared(t, &Spec{Workloads: kinds()}, tr)
		enter(t, tg, tr)
		if err := tg.Verify(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		s := tg.arms[tr.ID].sample
		for i, w := range append([]*sample{s}, s.peers...) {
			if got, want := allowedTo(t, w.worker.child.PID), strconv.Itoa(tg.arms[tr.ID].cpus[i]); got != want {
				t.Errorf("worker %d runs on processors %s, want %s", i, got, want)
			}
		}
		if len(s.peers) != 1 || len(j.Pending()) != 3 {
			t.Errorf("%d further workers, %d changes; want 1, and 3 with the folder", len(s.peers), len(j.Pending()))
		}
		for _, k := range kinds() {
			got, err := operationOf(t, tg, tr, k).Batch(t.Context(), 2)
			if err != nil {
				t.Errorf("%s: %v", k, err)
				continue
			}
			value(t, got, metricWall)
		}
		if err := tg.Leave(t.Context(), tr); err != nil || len(j.Pending()) != 1 {
			t.Errorf("%d changes are left: %v", len(j.Pending()), err)
		}
	}
}

// TestNothingOfAWorkerInterruptsIt: the runtime's threads of a worker, which have its one processor, wake late, and the
// one that measures, and starts programs, as early as this process does.
func TestNothingOfAWorkerInterruptsIt(t *testing.T) {
	slack := func(task string) string {
		text, err := os.ReadFile("/proc/" + task + "/timerslack_ns")
		if err != nil {
			hosttest.Missing(t, err.Error(), "run as root")
		}
		return strings.TrimSpace(string(text))
	}
	tr := treatment("enforcer", "none")
	tg, _ := prepared(t, &Spec{Workloads: kinds()}, tr)
	enter(t, tg, tr)
	if _, err := operationOf(t, tg, tr, kinds()[0]).Batch(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(tg.arms[tr.ID].sample.worker.child.PID)
	tasks, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		t.Fatal(err)
	}
	byOwn := map[string]int{}
	for _, task := range tasks {
		byOwn[slack(task.Name())]++
	}
	late, own := strconv.Itoa(int(lateWakes)), slack("self")
	if byOwn[own] != 1 || byOwn[late] != len(tasks)-1 || len(tasks) < 2 {
		t.Errorf("threads by how late they may wake: %v; want one of %s ns, and the others of %s", byOwn, own, late)
	}
}

// TestEachWorkerIsProved: a further worker that is not under the policy is found.
func TestEachWorkerIsProved(t *testing.T) {
	requireProcessors(t)
	requireEnforcer(t, enforcerLandlock)
	tr := treatment("enforcer", "none", "workers", "2")
	tg, _ := prepared(t, &Spec{Workloads: []string{"open"}}, tr)
	enter(t, tg, tr)
	tg.arms[tr.ID].sample.peers[0].plan.stack = stack{landlockRules{}}
	if err := tg.Verify(t.Context(), tr); err == nil || !strings.Contains(err.Error(), "not enforced as expected") {
		t.Errorf("a bare second worker under Landlock: %v", err)
	}
}

// TestLateWorkersAreAskedAgain: only a start that came too late is repeated.
func TestLateWorkersAreAskedAgain(t *testing.T) {
	tooLate := fmt.Errorf("run: %w", &workload.Failure{Op: "open", Call: workload.CommonStart})
	other := &workload.Failure{Op: "open", Call: "openat"}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.Join(nil, nil), false},
		{errors.Join(tooLate, nil), true},
		{errors.Join(tooLate, tooLate), true},
		{errors.Join(tooLate, other), false},
		{errors.Join(nil, other), false},
		{other, false},
	} {
		if got := late(c.err); got != c.want {
			t.Errorf("%v: late %v", c.err, got)
		}
	}
	got := sumOf([]workload.Cost{
		{N: 5, Wall: time.Second, CPU: 400, Instructions: 10, Counted: true},
		{N: 5, Wall: 3 * time.Second, CPU: 600, Instructions: 30, Counted: true},
	})
	if want := (workload.Cost{N: 5, Wall: 3 * time.Second, CPU: 500, Instructions: 20, Counted: true}); got != want {
		t.Errorf("the sum is %+v, want %+v", got, want)
	}
}

// TestWorkersNeedProcessors: more workers than processors are an error of the preflight, and are not started.
func TestWorkersNeedProcessors(t *testing.T) {
	many := treatment("enforcer", "none", "workers", "2")
	env := areatest.Env(t)
	env.CPUs = []int{0}
	env.Treatments = []design.Treatment{baseline(), many}
	spec := &Spec{Workloads: []string{"open"}}
	found := spec.checkWorkers(env)
	areatest.WantFinding(t, "two on one", found, area.Finding{
		Severity: area.Error, Message: "workers: 2 workers need a processor each, and 1 are allowed",
	})
	tg, j := areatest.Open[*target](t, Area{}, spec, env)
	if err := tg.Prepare(t.Context(), many, j); err == nil || len(j.Pending()) > 0 {
		t.Errorf("prepared with %d changes: %v", len(j.Pending()), err)
	}
}

// TestNotesOnWorkers: the notes say where workers run, with one and with several.
func TestNotesOnWorkers(t *testing.T) {
	requireProcessors(t)
	one, two := treatment("workers", "1"), treatment("workers", "2")
	for _, c := range []struct {
		arms []design.Treatment
		want string
		not  string
	}{
		{[]design.Treatment{one}, "contention between CPUs is not measured", "at the same time"},
		{[]design.Treatment{two}, "at the same time, each on its own CPU", "is not measured"},
		{[]design.Treatment{one, two}, "treatments with one worker run on CPU", "is not measured"},
	} {
		tg, _ := prepared(t, &Spec{Workloads: []string{"open"}}, c.arms...)
		if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, c.want) || strings.Contains(notes, c.not) {
			t.Errorf("notes of %d arms, want %q and not %q:\n%s", len(c.arms), c.want, c.not, notes)
		}
	}
}

// TestWorkersAreNoArtefact: more workers may make anything dearer, so an operation that no enforcer can affect is a
// negative control only with as many of them.
func TestWorkersAreNoArtefact(t *testing.T) {
	requireProcessors(t)
	base := treatment("enforcer", "none", "workers", "1")
	base.Baseline = true
	alike, more := treatment("enforcer", "seccomp", "workers", "1"), treatment("enforcer", "seccomp", "workers", "2")
	others := treatment("enforcer", "seccomp", "workers", "1", "others", "5")
	tg, _ := prepared(t, &Spec{Workloads: []string{"compute"}}, base, alike, more, others)
	for _, c := range []struct {
		arm  design.Treatment
		want bool
	}{{alike, true}, {more, false}, {others, false}} {
		if got := operationOf(t, tg, c.arm, "compute").Negative; got != c.want {
			t.Errorf("compute under %s is a negative control: %v", c.arm.ID, got)
		}
	}
}

// TestCreatesListsProcesses: the plan lists all processes of a treatment.
func TestCreatesListsProcesses(t *testing.T) {
	arms := []design.Treatment{baseline(), treatment("workers", "3"), treatment("enforcer", "seccomp", "others", "5")}
	for want, spec := range map[string]*Spec{
		"5 processes at a time":       {Workloads: []string{"open"}},
		"3 processes beside them":     {SetUp: []string{"confine"}},
		"up to 5 further policies at": {Workloads: []string{"open"}},
	} {
		if text := strings.Join(spec.Creates(arms), "\n"); !strings.Contains(text, want) {
			t.Errorf("the plan lacks %q:\n%s", want, text)
		}
	}
}

// hostileWorker returns how the workers of this test binary are to misbehave. A file in the temporary folder holds it,
// since workers do not get the test's environment.
func hostileWorker() string {
	b, _ := os.ReadFile(filepath.Join(os.TempDir(), "hostile-worker"))
	return string(b)
}

// makeHostile makes the workers of a test misbehave.
func makeHostile(t *testing.T, what string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	if err := os.WriteFile(filepath.Join(os.TempDir(), "hostile-worker"), []byte(what), 0o600); err != nil {
		t.Fatal(err)
	}
}

// misbehave is a worker that misbehaves in the given way.
func misbehave(what string) {
	fmt.Println(`{"ready":{}}`)
	requests, answers := bufio.NewReader(os.NewFile(requestsFD, "requests")), os.NewFile(answersFD, "answers")
	say := func(line string) {
		if _, err := answers.WriteString(line + "\n"); err != nil {
			os.Exit(9)
		}
	}
	if what != "mute" {
		say(`{"protocol":"tare-workload","version":1}`)
	}
	_, _ = requests.ReadString('\n')
	fmt.Fprintln(os.Stderr, "the worker is out of sorts:", what)
	switch what {
	case "garbage":
		say("Segmentation fault")
	case "lies":
		say(`{"id":1,"cost":{"n":10,"wall_ns":-5,"cpu_ns":1}}`)
	case "dies":
		os.Exit(3)
	}
	time.Sleep(time.Hour)
}

// TestHostileWorker: whatever a worker does, the error quotes the last line of its log, and the worker ends.
func TestHostileWorker(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for what, says := range map[string]string{
		"dies":    "exit status 3",
		"garbage": "Segmentation fault",
		"lies":    "wall -5 ns",
		"hangs":   "no answer within",
		"mute":    "no answer within",
	} {
		t.Run(what, func(t *testing.T) {
			makeHostile(t, what)
			tg, _ := prepared(t, &Spec{Workloads: []string{"open"}}, baseline())
			tg.patience = 500 * time.Millisecond
			if err := tg.Enter(t.Context(), baseline()); err != nil {
				t.Fatal(err)
			}
			child := tg.arms[baseline().ID].sample.worker.child
			_, err := operationOf(t, tg, baseline(), "open").Batch(t.Context(), 10)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range []string{says, "the worker is out of sorts: " + what} {
				if !strings.Contains(err.Error(), want) && (what != "mute" || want == says) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
			select {
			case <-child.Exited():
			default:
				t.Error("the worker still runs")
			}
			if err := tg.Leave(t.Context(), baseline()); err != nil {
				t.Errorf("leave: %v", err)
			}
		})
	}
}

// TestVerifyReportsADeadWorker: Verify fails, and says why.
func TestVerifyReportsADeadWorker(t *testing.T) {
	makeHostile(t, "dies")
	tg, _ := prepared(t, &Spec{Workloads: []string{"open"}}, baseline())
	if err := tg.Enter(t.Context(), baseline()); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), baseline()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("verify: %v", err)
	}
}

// TestInterrupt: an interrupt ends a running batch immediately, and its worker.
func TestInterrupt(t *testing.T) {
	tg, _ := prepared(t, &Spec{Workloads: []string{"compute"}}, baseline())
	enter(t, tg, baseline())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := operationOf(t, tg, baseline(), "compute").Batch(ctx, 1<<29); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted batch: %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the interrupt took %v", took)
	}
	if err := tg.Leave(t.Context(), baseline()); err != nil {
		t.Errorf("leave: %v", err)
	}
}

// TestFailedCallKeepsTheWorker: a worker that reports a failed call keeps running.
func TestFailedCallKeepsTheWorker(t *testing.T) {
	spec := &Spec{Commands: []Command{{Name: "fails", Run: []string{"false"}}, {Name: "works", Run: []string{"true"}}}}
	tg, _ := prepared(t, spec, baseline())
	enter(t, tg, baseline())
	var f *workload.Failure
	if _, err := operationOf(t, tg, baseline(), "fails").Batch(t.Context(), 1); !errors.As(err, &f) {
		t.Errorf("a command that fails: %v", err)
	}
	s, err := operationOf(t, tg, baseline(), "works").Batch(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	value(t, s, metricCPU)
}
