package cli

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var kills = flag.Int("kills", 50, "how often TestKilledRuns kills a run")

const killedExperiment = `name: killed
area: identity
question: capacity
target: {adapter: gce-metadata, embedded: {preset: blog-2020}}
load: {timeout: 2s, max_rate: 600/s}
seed: 1
`

// comparedExperiment is small, so that a run that goes on after a kill soon comes to its end.
const comparedExperiment = `name: compared
area: sandbox
question: compare
target: {workloads: [syscall, exec]}
baseline: {enforcer: none}
treatments: [{enforcer: none, planted: 10%}]
blocks: 4
seed: 1
`

// TestKilledRuns ends runs with SIGKILL at random points. Whatever the point, the record must stay readable, and undo must leave
// neither a process nor a control group behind, however often it is called.
func TestKilledRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: starts and kills many runs")
	}
	t.Setenv("TMPDIR", t.TempDir()) // so that folders of other runs are not taken for leftovers
	bin := buildTare(t)
	n := *kills
	before := leftovers(t, bin)
	var wg sync.WaitGroup
	var undone atomic.Int64
	lanes := make(chan struct{}, 4)
	for i := range n {
		wg.Add(1)
		lanes <- struct{}{}
		go func() {
			defer func() { <-lanes; wg.Done() }()
			// Early points are where the journal and the world can disagree: half of the kills fall into the first half second.
			rng := rand.New(rand.NewPCG(uint64(i), 9))
			after := time.Duration(rng.Float64() * 0.5 * float64(time.Second))
			if i%2 == 1 {
				after = time.Duration(rng.Float64() * 8 * float64(time.Second))
			}
			if killOne(t, bin, filepath.Join(t.TempDir(), strconv.Itoa(i)), killedExperiment, after) {
				undone.Add(1)
			}
		}()
	}
	wg.Wait()
	if undone.Load() == 0 {
		t.Error("no kill left anything to undo: the test has tried nothing")
	}
	t.Logf("%d of %d kills left something to undo", undone.Load(), n)
	if after := leftovers(t, bin); after != before {
		t.Errorf("left behind:\n%s\nbefore the test there was:\n%s", after, before)
	}
}

// killOne kills one run and cleans up behind it. It reports whether there was anything to undo.
func killOne(t *testing.T, bin, dir, experiment string, after time.Duration) (undone bool) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Error(err)
		return false
	}
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(experiment), 0o600); err != nil {
		t.Error(err)
		return false
	}
	run := exec.CommandContext(t.Context(), bin, "run", "x.yaml")
	run.Dir = dir
	if err := run.Start(); err != nil {
		t.Error(err)
		return false
	}
	time.Sleep(after)
	_ = run.Process.Kill()
	state, _ := run.Process.Wait()
	records, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
	for _, r := range records {
		if _, err := os.Stat(filepath.Join(r, "record.jsonl")); err != nil {
			continue // killed between the folder and its journal: nothing was changed yet
		}
		for _, args := range [][]string{{"report", r}, {"undo", r}, {"undo", r}, {"report", r}} {
			out, code := tare(t, bin, dir, args...)
			undone = undone || strings.Contains(out, "undone  ")
			if code == ExitError || code == ExitUsage {
				t.Errorf("killed after %s (%v): tare %s: exit %d\n%s", after, state, strings.Join(args, " "), code, out)
			}
		}
	}
	return undone
}

// TestKilledComparisons kills comparisons, undoes what they left, and goes on with them: blocks that were complete are not measured again, and
// at the end all are there.
func TestKilledComparisons(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: starts and kills many runs")
	}
	t.Setenv("TMPDIR", t.TempDir()) // so that folders of other runs are not taken for leftovers
	bin := buildTare(t)
	before := leftovers(t, bin)
	var gone atomic.Int64
	var wg sync.WaitGroup
	lanes := make(chan struct{}, 3)
	for i := range 12 {
		lanes <- struct{}{}
		wg.Go(func() {
			defer func() { <-lanes }()
			if killAndResume(t, bin, filepath.Join(t.TempDir(), strconv.Itoa(i)), i) {
				gone.Add(1)
			}
		})
	}
	wg.Wait()
	// What a kill before the run began has left, nothing can undo: there was no journal yet. The next run does.
	last := t.TempDir()
	if err := os.WriteFile(filepath.Join(last, "x.yaml"), []byte(comparedExperiment), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := tare(t, bin, last, "plan", "x.yaml"); code != ExitPass {
		t.Errorf("plan: exit %d\n%s", code, out)
	}
	if gone.Load() == 0 {
		t.Error("no run was gone on with: the test has tried nothing")
	}
	if after := leftovers(t, bin); after != before {
		t.Errorf("left behind:\n%s\nbefore the test there was:\n%s", after, before)
	}
}

// killAndResume kills the comparison number i and goes on with every third. It reports whether there was one to go on with.
func killAndResume(t *testing.T, bin, dir string, i int) bool {
	after := time.Duration(rand.New(rand.NewPCG(uint64(i), 4)).Float64() * 2 * float64(time.Second))
	killOne(t, bin, dir, comparedExperiment, after)
	records, _ := filepath.Glob(filepath.Join(dir, "results", "*", "record.jsonl"))
	if len(records) == 0 || i%3 > 0 {
		return false
	}
	out, code := tare(t, bin, dir, "run", "--resume", filepath.Dir(records[0]))
	switch {
	case strings.Contains(out, "has all its 4 blocks"):
	case code != ExitPass && code != ExitInvalid:
		t.Errorf("killed after %s, going on: exit %d\n%s", after, code, out)
	case !strings.Contains(out, "4 blocks of 2 treatments"):
		t.Errorf("killed after %s, going on does not come to 4 blocks:\n%s", after, out)
	}
	return true
}

func tare(t *testing.T, bin, dir string, args ...string) (string, int) {
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Errorf("tare %v: %v", args, err)
		return "", ExitError
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// leftovers lists what tare could leave behind: its servers' processes and its control groups.
func leftovers(t *testing.T, bin string) string {
	t.Helper()
	var b strings.Builder
	for range 20 { // the kernel takes a moment to end children of a killed parent
		b.Reset()
		stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, s := range stats {
			if line, err := os.ReadFile(s); err == nil && bytes.HasPrefix(line, []byte(bin+"\x00serve\x00")) {
				fmt.Fprintf(&b, "process %s: %q\n", s, line)
			}
		}
		folders, _ := filepath.Glob(filepath.Join(os.TempDir(), "tare-sandbox-*"))
		for _, f := range folders {
			fmt.Fprintf(&b, "folder %s\n", f)
		}
		_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "tare-") {
				fmt.Fprintf(&b, "cgroup %s\n", path)
			}
			return nil
		})
		if b.Len() == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return b.String()
}

// TestInterruptedRun sends one interrupt: the run must undo its changes, leave a partial report that says so, and exit with 130.
func TestInterruptedRun(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: starts a run")
	}
	t.Setenv("TMPDIR", t.TempDir()) // so that folders of other runs are not taken for leftovers
	bin := buildTare(t)
	for name, c := range map[string]struct {
		signals int
		hint    string // in what the run prints
		status  string // in what the report says later
	}{
		"once":  {1, "interrupted", "interrupted"},
		"twice": {2, "tare undo", "was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(killedExperiment), 0o600); err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), bin, "run", "x.yaml")
			run.Dir = dir
			var out bytes.Buffer
			run.Stdout, run.Stderr = &out, &out
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * time.Second)
			// Two different signals: the kernel merges equal ones. And no pause between them: undoing takes only milliseconds.
			for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM}[:c.signals] {
				_ = run.Process.Signal(signal)
			}
			_ = run.Wait()
			if code := run.ProcessState.ExitCode(); code != ExitInterrupted {
				t.Errorf("exit %d, want %d\n%s", code, ExitInterrupted, &out)
			}
			if !strings.Contains(out.String(), c.hint) {
				t.Errorf("the output does not say %q:\n%s", c.hint, &out)
			}
			records, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
			if len(records) != 1 {
				t.Fatalf("records: %v, want one", records)
			}
			if text, code := tare(t, bin, dir, "undo", records[0]); code != ExitPass {
				t.Errorf("undo: exit %d\n%s", code, text)
			}
			if text, code := tare(t, bin, dir, "report", records[0]); code != ExitInterrupted || !strings.Contains(text, c.status) {
				t.Errorf("report: exit %d, want %d and the words %q\n%s", code, ExitInterrupted, c.status, text)
			}
			if c.signals == 1 {
				if left := leftovers(t, bin); left != "" {
					t.Errorf("left behind:\n%s", left)
				}
			}
		})
	}
}

// TestOneWriter: nobody may undo a run, or go on with it, while it goes on. An interrupt then ends it in order.
func TestOneWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: starts a run")
	}
	t.Setenv("TMPDIR", t.TempDir())
	bin := buildTare(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(strings.Replace(comparedExperiment, "blocks: 4", "blocks: 160", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), bin, "run", "x.yaml")
	run.Dir = dir
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	var records []string
	for range 200 {
		if records, _ = filepath.Glob(filepath.Join(dir, "results", "*", "record.jsonl")); len(records) > 0 && bytes.Contains(readAll(records[0]), []byte("trial-end")) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(records) == 0 {
		t.Fatalf("the run has no record:\n%s", &out)
	}
	name := filepath.Dir(records[0])
	for _, args := range [][]string{{"undo", name}, {"run", "--resume", name}} {
		if text, code := tare(t, bin, dir, args...); code != ExitError || !strings.Contains(text, "is in use by run") {
			t.Errorf("tare %v while the run goes on: exit %d\n%s", args, code, text)
		}
	}
	_ = run.Process.Signal(os.Interrupt)
	_ = run.Wait()
	if code := run.ProcessState.ExitCode(); code != ExitInterrupted || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("exit %d, want %d\n%s", code, ExitInterrupted, &out)
	}
	if text, code := tare(t, bin, dir, "undo", name); code != ExitPass || !strings.Contains(text, "nothing to undo") {
		t.Errorf("undo behind an interrupt: exit %d\n%s", code, text)
	}
	if left := leftovers(t, bin); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}

func readAll(name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return b
}
