package exec

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/proc"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

var treatment = areatest.Treatment

// testEnv returns a run's environment, with temporary files in the test's own folder.
func testEnv(t *testing.T, treatments ...design.Treatment) area.Env {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	return area.Env{
		Dir: t.TempDir(), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Treatments: treatments,
		Getenv: func(name string) (string, bool) { v := os.Getenv(name); return v, v != "" },
	}
}

// openPrepared opens a target, and prepares, enters and verifies its treatments.
func openPrepared(t *testing.T, s *Spec, env area.Env, j area.Journal) area.Target {
	t.Helper()
	for _, f := range (Area{}).Preflight(t.Context(), s, env) {
		if f.Severity == area.Error {
			t.Fatalf("preflight: %+v", f)
		}
	}
	target, err := Area{}.Open(t.Context(), s, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context, design.Treatment) error{
		func(ctx context.Context, tr design.Treatment) error { return target.Prepare(ctx, tr, j) },
		target.Can().Enter, target.Verify,
	} {
		for _, tr := range env.Treatments {
			if err := step(t.Context(), tr); err != nil {
				t.Fatalf("step of %s: %v", tr.ID, err)
			}
		}
	}
	return target
}

// leastCosts returns the lowest costs of a call over a few batches, by metric.
func leastCosts(t *testing.T, target area.Target, tr design.Treatment, name string, calls int) map[string]float64 {
	t.Helper()
	ops, err := target.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ops, func(o load.Operation) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("there is no operation %s", name)
	}
	out := map[string]float64{}
	for range 5 {
		samples, err := ops[i].Batch(t.Context(), calls)
		if err != nil {
			t.Fatalf("%s under %s: %v", name, tr.ID, err)
		}
		for _, s := range samples {
			if old, ok := out[s.Metric]; !ok || s.Value < old {
				out[s.Metric] = s.Value
			}
		}
	}
	return out
}

// closeTarget closes a target, which must leave nothing behind.
func closeTarget(t *testing.T, target area.Target, env area.Env, j *areatest.Journal) {
	t.Helper()
	for _, tr := range env.Treatments {
		if err := target.Can().Leave(t.Context(), tr); err != nil {
			t.Error(err)
		}
	}
	if err := target.Close(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, j)
}

// nothingLeft fails the test unless folders were journaled, all changes are undone and no temporary file is left.
func nothingLeft(t *testing.T, j *areatest.Journal) {
	t.Helper()
	if len(j.Folders()) == 0 {
		t.Error("no folder was journaled")
	}
	j.WantAllUndone(t)
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "tare-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// projectRoot returns the project's folder.
func projectRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// python returns the path of the interpreter itself, not of a wrapper script. It skips the test if there is none.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	if errors.Is(err, exec.ErrNotFound) {
		hosttest.Missing(t, "python3 is not installed", "apt-get install python3")
	}
	if err != nil {
		t.Fatalf("python3: %v", err)
	}
	return strings.TrimSpace(string(path))
}

// buildExample builds the example in Go.
func buildExample(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		hosttest.Missing(t, "there is no Go toolchain", "have go on PATH")
	}
	path := filepath.Join(t.TempDir(), "hash")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./areas/exec/examples/hash")
	cmd.Dir = projectRoot(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// TestExamples: in both examples checking costs more than the empty loop; each verifies itself and leaves nothing
// behind.
func TestExamples(t *testing.T) {
	hosttest.SkipIfShort(t)
	for name, program := range map[string]func(*testing.T) []string{
		"python": func(t *testing.T) []string { return []string{python(t), "areas/exec/examples/hash.py"} },
		"go":     func(t *testing.T) []string { return []string{buildExample(t)} },
	} {
		for _, fresh := range []string{"", freshRun} {
			t.Run(name+fresh, func(t *testing.T) {
				words := program(t)
				none, sha, mac := treatment("check", "none"), treatment("check", "sha256"), treatment("check", "hmac")
				env := testEnv(t, none, sha, mac)
				s := &Spec{Program: words, Dir: projectRoot(t), Settings: settings("size", "1048576"), Fresh: fresh}
				var j areatest.Journal
				target := openPrepared(t, s, env, &j)
				without := leastCosts(t, target, none, "load", 5)
				for _, tr := range []design.Treatment{sha, mac} {
					with := leastCosts(t, target, tr, "load", 5)
					// SHA-256 of a MiB at 10 GB/s. Of wall time the host may take as much from the other side.
					if with["cpu"] < without["cpu"]+100e-6 {
						t.Errorf("CPU time under %s: %v, without %v", tr.ID, with["cpu"], without["cpu"])
					}
				}
				loop := leastCosts(t, target, none, "empty", 10000)
				if loop["wall"] <= 0 || loop["wall"] > without["wall"]/10 {
					t.Errorf("the loop takes %v a call, loading %v", loop["wall"], without["wall"])
				}
				if name == "go" && (loop["allocations"] > 0.01 || without["allocated"] < 1<<20) {
					t.Errorf("the loop takes %v objects, loading %v B", loop["allocations"], without["allocated"])
				}
				ops, err := target.Operations(none)
				if err != nil || len(ops) != 2 || ops[0].Harness || !ops[1].Harness || ops[0].Span != 20*time.Millisecond {
					t.Errorf("got operations %+v, %v", ops, err)
				}
				notes := strings.Join(target.Can().Notes(), "\n")
				for _, want := range []string{"the program: " + words[0], "the calls were made by hash", "page cache"} {
					if !strings.Contains(notes, want) {
						t.Errorf("no note says %q:\n%s", want, notes)
					}
				}
				closeTarget(t, target, env, &j)
			})
		}
	}
}

// TestExampleRejectsATreatment: the error of an unsupported treatment is in the program's words, and nothing is left
// behind.
func TestExampleRejectsATreatment(t *testing.T) {
	bad := treatment("check", "none", "size", "0")
	env := testEnv(t, bad)
	s := &Spec{Program: []string{python(t), "areas/exec/examples/hash.py"}, Dir: projectRoot(t)}
	target, j := areatest.Open[area.Target](t, Area{}, s, env)
	if err := target.Prepare(t.Context(), bad, j); err == nil || !strings.Contains(err.Error(), "size=0: want 1 to") {
		t.Errorf("got %v, want the program's own error about size=0", err)
	}
	if err := target.Close(t.Context()); err != nil {
		t.Error(err)
	}
	nothingLeft(t, j)
}

// TestUndoAfterKill undoes what a killed run left, from its journal alone, in another folder, twice.
func TestUndoAfterKill(t *testing.T) {
	tr := treatment("check", "hmac")
	env := testEnv(t, tr)
	var j areatest.Journal
	openPrepared(t, &Spec{Program: []string{python(t), "areas/exec/examples/hash.py"}, Dir: projectRoot(t)}, env, &j)
	left := j.Pending()
	kinds := map[string]bool{}
	for _, c := range left {
		kinds[c.Kind] = true
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, []string{"folder", "prepared", "process"}) {
		t.Errorf("journaled are %v", got)
	}
	t.Chdir(t.TempDir())
	areatest.UndoTwice(t, Area{}, left, env)
	for _, c := range left {
		if c.Kind != kit.ProcessKind {
			_ = j.Undone(c)
			continue
		}
		pid, err := strconv.Atoi(c.Data["pid"])
		if err != nil {
			t.Fatal(err)
		}
		if ticks, err := proc.StartTicks(pid); err == nil && strconv.FormatUint(ticks, 10) == c.Data["start_ticks"] {
			t.Errorf("process %d lives", pid)
		}
		_ = j.Undone(c)
	}
	nothingLeft(t, &j)
}

// TestNamedProcessesCount: the CPU time and memory of processes that a program names are measured, and not otherwise.
func TestNamedProcessesCount(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	worker := exec.CommandContext(t.Context(), self, "be-a-worker", socket)
	stdin, err1 := worker.StdinPipe()
	stdout, err2 := worker.StdoutPipe()
	if err := errors.Join(err1, err2, worker.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		_ = worker.Wait()
	}()
	if text, err := bufio.NewReader(stdout).ReadString('\n'); text != "ready\n" {
		t.Fatalf("the worker printed %q, %v; want ready", text, err)
	}
	named, unnamed := treatment("named", "yes"), treatment("named", "no")
	env := testEnv(t, named, unnamed)
	t.Setenv("MY_TOKEN", "hunter2")
	s := &Spec{
		Program: []string{self, "be-a-driver"}, Env: []Variable{"MY_TOKEN"},
		Settings:   settings("socket", socket, "pid", strconv.Itoa(worker.Process.Pid)),
		Operations: []string{"ask"},
	}
	var j areatest.Journal
	target := openPrepared(t, s, env, &j)
	with, without := leastCosts(t, target, named, "ask", 10), leastCosts(t, target, unnamed, "ask", 10)
	if with["cpu"] < burns.Seconds() || without["cpu"] > burns.Seconds()/2 {
		t.Errorf("a call takes %v of CPU with the worker named, %v without; the worker burns %v", with["cpu"],
			without["cpu"], burns)
	}
	for i, tr := range env.Treatments {
		var subjects []string
		for _, p := range target.Can().Probes(tr) {
			subjects = append(subjects, p.Subject())
		}
		if want := []string{filepath.Base(self), "worker"}[:2-i]; !slices.Equal(subjects, want) {
			t.Errorf("%s: probes of %v, want %v", tr.ID, subjects, want)
		}
	}
	closeTarget(t, target, env, &j)
	for _, c := range j.Changes() {
		for key, value := range c.Data {
			if strings.Contains(value, "hunter2") {
				t.Errorf("the journal holds the value of a variable in %s of %s", key, c.Kind)
			}
		}
	}
	if notes := strings.Join(target.Can().Notes(), "\n"); strings.Contains(notes, "hunter2") {
		t.Errorf("the notes hold the value of a variable:\n%s", notes)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatalf("the worker, which the driver did not start, has ended with it: %v", err)
	}
	_ = c.Close()
}

// TestMain lets this test binary be a driver, and a worker that a driver calls.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "be-a-driver" {
		runDriver()
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "be-a-worker" {
		runWorker(os.Args[2])
		return
	}
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

// burns is the CPU time that the worker takes for a call.
const burns = 2 * time.Millisecond

// runWorker burns CPU time for each byte that it receives on the socket, sends the byte back, and ends with its
// standard input.
func runWorker(socket string) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			runtime.LockOSThread() // whose CPU time is read
			one := make([]byte, 1)
			for {
				if _, err := c.Read(one); err != nil {
					return
				}
				from, _ := proc.ThreadCPU()
				for now := from; now-from < burns; now, _ = proc.ThreadCPU() {
				}
				if _, err := c.Write(one); err != nil {
					return
				}
			}
		}()
	}
}

// runDriver is a driver whose calls are made by a worker that it did not start. It names that process only if the level
// "named" says so, and counts no CPU time.
func runDriver() {
	var worker net.Conn
	answers := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r struct {
			ID     uint64            `json:"id"`
			Do     string            `json:"do"`
			Levels map[string]string `json:"levels"`
			Calls  int               `json:"calls"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			os.Exit(1)
		}
		ok := map[string]any{}
		switch r.Do {
		case "describe":
			ok = map[string]any{
				"protocol": 1, "name": "asker", "version": "7", "operations": []any{
					map[string]any{"name": "ask"},
					map[string]any{"name": "nothing", "harness": true},
				},
				"factors": map[string][]string{"named": {"yes", "no"}, "socket": {}, "pid": {}},
			}
		case "prepare":
			var err error
			if worker, err = net.Dial("unix", r.Levels["socket"]); err != nil {
				os.Exit(1)
			}
			if pid, _ := strconv.Atoi(r.Levels["pid"]); r.Levels["named"] == "yes" {
				ok["pids"] = map[string]int{"worker": pid}
			}
		case "verify":
			ok["checks"] = []string{os.Getenv("MY_TOKEN")}
		case "operate":
			start, one := time.Now(), []byte{1}
			for range r.Calls {
				_, err1 := worker.Write(one)
				_, err2 := worker.Read(one)
				if err1 != nil || err2 != nil {
					os.Exit(1)
				}
			}
			ok = map[string]any{"calls": r.Calls, "total": map[string]float64{"wall": time.Since(start).Seconds()}}
		}
		if answers.Encode(map[string]any{"id": r.ID, "ok": ok}) != nil || r.Do == "stop" {
			return
		}
	}
}
