package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/areas/sandbox/workload"
	"tare/rigs/hosttest"
)

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
