package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/cli"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

var kills = flag.Int("kills", 0, "how often TestKilledRuns kills a run of each area; 0: a few times")

const killedExperiment = `name: killed
area: identity
question: capacity
target: {adapter: gce-metadata, embedded: {preset: blog-2020}}
load: {timeout: 2s, max_rate: 600/s, max_time: 10s}
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

// drivenExperiment compares two treatments of the killed driver.
func drivenExperiment(settings string, blocks int) string {
	return fmt.Sprintf("name: exec\narea: exec\nquestion: compare\ntarget: {program: [%s], %s}\nbaseline: {it: a}\n"+
		"treatments: [{it: b}]\nblocks: %d\nseed: 1\n", killedDriver, settings, blocks)
}

// A killable is an experiment whose runs are killed.
type killable struct {
	name, experiment string
	// points is how often a run is killed unless -kills says otherwise; life is about the duration of a run on an idle
	// host.
	points   int
	life     time.Duration
	firstEnd int // which of ends comes first
	// resumed is printed by a run that was killed, undone and resumed; empty: such a run cannot be resumed.
	resumed string
	// trials says that a kill may leave a folder for trials before there is a record, so that undo cannot remove it. The
	// next command with the experiment does.
	trials bool
	// needs skips the test if this host cannot run it, and provides what else the experiment needs.
	needs func(t *testing.T, bin string, k *killable)
	// listing lists what a run could leave elsewhere: the objects of a cluster.
	listing func(t *testing.T) []string
}

// run returns the arguments that run the experiment. Blocks that are too few for a verdict are set there, too.
func (k *killable) run() []string { return k.command("run") }

// command are the arguments of a command about the experiment.
func (k *killable) command(words ...string) []string {
	args := append(slices.Clone(words), "x.yaml")
	if m := regexp.MustCompile(`blocks: (\d+)`).FindStringSubmatch(k.experiment); m != nil {
		args = append(args, "--set", "blocks="+m[1])
	}
	return args
}

// ends are the ways in which runs are ended: each leaves nothing, or a record that undo completes.
var ends = []struct {
	name    string
	signals []syscall.Signal
}{
	{"killed", []syscall.Signal{syscall.SIGKILL}},
	{"hung up", []syscall.Signal{syscall.SIGHUP}},
	{"quit", []syscall.Signal{syscall.SIGQUIT}},
	{"stopped, continued and killed", []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGKILL}},
}

// killables returns at least one experiment of each area, none of which needs other programs.
func killables() []killable {
	const small = "seed: 1\nload: {rate: 20/s, max_rate: 50/s, duration: 1s, timeout: 10s}\n"
	return []killable{
		{name: "identity", experiment: killedExperiment, points: 2, life: 4 * time.Second},
		{
			name: "sandbox", points: 3, life: time.Second, trials: true, resumed: "4 blocks of 2 treatments",
			experiment: strings.Replace(comparedExperiment, "exec]", "exec], rounds: 6", 1),
		},
		{
			name: "lab", points: 2, life: 16 * time.Second, needs: withLab,
			experiment: strings.NewReplacer("compared", "lab", "{workloads: [syscall, exec]}", "{on: lab, workloads: [open]}").
				Replace(comparedExperiment),
		},
		{
			name: "decision", points: 2, life: 3 * time.Second, needs: withEngines,
			experiment: "name: decision\narea: decision\nquestion: compare\ntarget: {}\n" +
				"baseline: {engine: cedar}\ntreatments: [{engine: $(ENGINE)}]\nfixed: {policies: 5}\nblocks: 3\nseed: 1\n" +
				"load: {closed: {workers: 1}, max_rate: 200/s, duration: 200ms, timeout: 5s}\n",
		},
		{
			name: "exec", points: 3, life: 3 * time.Second, resumed: "4 blocks of 2 treatments",
			experiment: drivenExperiment("rounds: 3, span: 5ms", 4),
		},
		{
			name: "imagepull", points: 2, life: 3 * time.Second, needs: withPlane,
			experiment: "name: imagepull\narea: imagepull\nquestion: compare\ntarget: {operations: [check, pull], " +
				"rounds: 3, span: 1ms}\nbaseline: {accessor: disabled}\ntreatments: " +
				"[{accessor: cached}]\nfixed: {records: 20}\nblocks: 3\nseed: 1\n",
		},
		{
			name: "admission", points: 1, life: 6 * time.Second, needs: withPlane,
			experiment: "name: admission\narea: admission\nquestion: compare\ntarget: {}\n" +
				"baseline: {mechanism: none}\ntreatments: [{mechanism: webhook, policies: 2}]\nfixed: {nodes: 2}\nblocks: 2\n" +
				small,
		},
		{
			name: "cluster", points: 1, life: 6 * time.Second, needs: withCluster,
			experiment: "name: cluster\narea: admission\nquestion: compare\ntarget: {kubeconfig: $(KUBECONFIG)}\n" +
				"baseline: {mechanism: none}\ntreatments: [{mechanism: vap, policies: 2}, {mechanism: webhook, policies: 2}]\n" +
				"blocks: 2\n" + small,
		},
	}
}

// TestKilledRuns ends runs of every area by signals at random moments, half of them early, when journal and system may
// disagree. The record must stay readable, and undo must remove everything, however often it is called.
func TestKilledRuns(t *testing.T) {
	hosttest.SkipIfShort(t)
	bin := tareBinary(t)
	adoptOrphans(t)
	undone := 0
	for i, k := range killables() {
		k.firstEnd = i
		t.Run(k.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir()) // so that folders of other runs are not taken for leftovers
			t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
			t.Cleanup(reapOrphans)
			needsAreas(t, areaOf(k.experiment))
			if k.needs != nil {
				k.needs(t, bin, &k)
			}
			undone += k.sweep(t, bin)
		})
	}
	if undone == 0 && !t.Failed() {
		t.Error("no kill left anything to undo, so nothing was tested")
	}
}

// sweep kills runs, undoes them, and compares the system before and after. It returns how many kills left something to
// undo.
func (k *killable) sweep(t *testing.T, bin string) (undone int) {
	points := k.points
	before := k.settledTraces(t)
	if *kills > 0 {
		points, k.life = *kills, k.runWhole(t, bin)
	}
	early, swept, differences := 0, 0, 0
	for i := range points {
		rng := rand.New(rand.NewPCG(uint64(i), uint64(points)))
		after := time.Duration(rng.Float64() * float64(k.life) / 4)
		late := (i+points)%2 == 1
		if late {
			after = time.Duration(rng.Float64() * float64(k.life))
		}
		folder := folderWith(t, k.experiment)
		end := (k.firstEnd + i) % len(ends)
		dir, something := k.kill(t, bin, folder, end, after, late)
		switch {
		case something:
			undone++
		case dir == "":
			early++
		}
		diff := k.diffTraces(t, before)
		if dir == "" && k.trials && len(diff) > 0 {
			if out, code := execTare(t, bin, folder, k.command("plan", "--try")...); code != cli.ExitPass {
				t.Errorf("plan: exit %d\n%s", code, out)
			}
			swept++
			diff = k.diffTraces(t, before)
		}
		if len(diff) > 0 {
			differences += len(diff)
			t.Errorf("%s after %s, undone (%s): the host has changed:\n%s", ends[end].name, after, dir,
				strings.Join(diff, "\n"))
			before = k.traces(t)
		}
		if dir != "" && k.resumed != "" && i%3 == 0 {
			k.resume(t, bin, dir, after)
		}
	}
	t.Logf("%d kills within %s, %d left something to undo, %d came before the record, %d of them left a trial, which "+
		"the next command removed; %d differences",
		points, k.life.Round(time.Millisecond), undone, early, swept, differences)
	return undone
}

// runWhole completes a run, which must leave nothing behind, and returns its duration.
func (k *killable) runWhole(t *testing.T, bin string) time.Duration {
	before := k.traces(t)
	began := time.Now()
	out, code := execTare(t, bin, folderWith(t, k.experiment), k.run()...)
	if code == cli.ExitError || code == cli.ExitUsage {
		t.Fatalf("complete run: exit %d\n%s", code, out)
	}
	took := time.Since(began)
	if diff := k.diffTraces(t, before); len(diff) > 0 {
		t.Errorf("a complete run has changed the host:\n%s", strings.Join(diff, "\n"))
	}
	return took
}

// folderWith returns a new folder that holds an experiment.
func folderWith(t *testing.T, experiment string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(experiment), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// kill kills one run in a folder with the experiment, and undoes it. The time counts from the run's start; late: from
// the moment when its record is there. It returns the record's folder, "" where the kill came before there was one, and
// whether there was anything to undo.
func (k *killable) kill(t *testing.T, bin, dir string, end int, after time.Duration, late bool) (record string,
	undone bool,
) {
	journals := filepath.Join(dir, "results", "*", "record.jsonl")
	run := exec.CommandContext(t.Context(), bin, k.run()...)
	run.Dir = dir
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for range 1200 { // a minute
		if found, _ := filepath.Glob(journals); !late || len(found) > 0 || hasEnded(run.Process.Pid) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(after)
	for _, signal := range ends[end].signals {
		_ = run.Process.Signal(signal)
		time.Sleep(time.Duration(len(ends[end].signals)-1) * 50 * time.Millisecond)
	}
	stuck := time.AfterFunc(2*time.Minute, func() {
		t.Errorf("%s after %s: it does not end", ends[end].name, after)
		_ = run.Process.Kill()
	})
	state, _ := run.Process.Wait()
	stuck.Stop()
	records, _ := filepath.Glob(journals)
	if len(records) == 0 {
		return "", false // killed before the journal: nothing was changed yet
	}
	record = filepath.Dir(records[0])
	for i, args := range [][]string{{"undo", record}, {"undo", record}, {"report", record}} {
		out, code := execTare(t, bin, dir, args...)
		undone = undone || strings.Contains(out, "undone  ")
		if code == cli.ExitError || code == cli.ExitUsage || i == 1 && !strings.Contains(out, "nothing to undo") {
			t.Errorf("%s after %s (%v): tare %s: exit %d\n%s", ends[end].name, after, state, strings.Join(args, " "), code, out)
		}
	}
	return record, undone
}

// hasEnded reports whether a child that is not waited for yet has ended.
func hasEnded(pid int) bool {
	_, rest, _ := bytes.Cut(readAll(fmt.Sprintf("/proc/%d/stat", pid)), []byte(") "))
	return bytes.HasPrefix(rest, []byte("Z"))
}

// resume resumes a comparison that was killed and undone: complete blocks are not measured again, and at the end no
// block is missing.
func (k *killable) resume(t *testing.T, bin, dir string, after time.Duration) {
	out, code := execTare(t, bin, filepath.Dir(filepath.Dir(dir)), "run", "--all", "--resume", dir)
	switch {
	case strings.Contains(out, "has all its "):
	case code != cli.ExitPass && code != cli.ExitInvalid:
		t.Errorf("killed after %s, resumed: exit %d\n%s", after, code, out)
	case !strings.Contains(out, k.resumed):
		t.Errorf("killed after %s, resumed: the output lacks %q:\n%s", after, k.resumed, out)
	}
}

// TestKilledTwice: a run that was killed, resumed and killed again is undone as its own: what resuming wrote about the
// undoing does not break the record's seals.
func TestKilledTwice(t *testing.T) {
	needsAreas(t, "exec")
	hosttest.SkipIfShort(t)
	bin, dir := tareBinary(t), folderWith(t, drivenExperiment("rounds: 3, span: 5ms", 80))
	journal := func() []byte {
		found, _ := filepath.Glob(filepath.Join(dir, "results", "*", "record.jsonl"))
		if len(found) != 1 {
			return nil
		}
		return readAll(found[0])
	}
	killAtTrial := func(n int, args ...string) {
		run := started(t, dir, append([]string{bin}, args...)...)
		for end := time.Now().Add(time.Minute); bytes.Count(journal(), []byte(`"trial-end"`)) < n; {
			if time.Now().After(end) || hasEnded(run.Process.Pid) {
				_ = run.Process.Kill()
				_ = run.Wait()
				t.Fatalf("tare %v did not come to trial %d:\n%s", args, n, &run.out)
			}
			time.Sleep(5 * time.Millisecond)
		}
		_ = run.Process.Kill()
		_ = run.Wait()
	}
	killAtTrial(3, "run", "x.yaml")
	records, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
	killAtTrial(7, "run", "--resume", records[0])
	text, code := execTare(t, bin, dir, "undo", records[0])
	if code != cli.ExitPass || !strings.Contains(text, "undone  ") {
		t.Errorf("undo: exit %d\n%s", code, text)
	}
}

func execTare(t *testing.T, bin, dir string, args ...string) (string, int) {
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Errorf("tare %v: %v", args, err)
		return "", cli.ExitError
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestInterruptedRun sends one interrupt: the run must undo its changes, leave a partial report that says so, and exit
// with 130. A second one leaves them, and exits with 1.
func TestInterruptedRun(t *testing.T) {
	needsAreas(t, "identity")
	hosttest.SkipIfShort(t)
	t.Setenv("TMPDIR", t.TempDir()) // so that folders of other runs are not taken for leftovers
	bin := tareBinary(t)
	leftovers := watchLeftovers(t, bin)
	const expired = 124
	for name, c := range map[string]struct {
		under   []string // the command that starts tare
		signals int
		code    int
		hint    string // in what the run prints
		status  string // in what the report says later
	}{
		"once":  {nil, 1, cli.ExitInterrupted, "interrupted", "interrupted"},
		"twice": {nil, 2, cli.ExitError, "tare undo", "was killed"},
		// It signals its child, and then its group.
		"by timeout": {[]string{"timeout", "4"}, 0, expired, "interrupted", "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folderWith(t, killedExperiment)
			run := started(t, dir, slices.Concat(c.under, []string{bin, "run", "x.yaml"})...)
			if c.signals > 0 {
				time.Sleep(4 * time.Second)
			}
			// Two different signals: the kernel merges equal ones. And no pause between them: undoing takes only
			// milliseconds.
			for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM}[:c.signals] {
				_ = run.Process.Signal(signal)
			}
			_ = run.Wait()
			if code := run.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit %d, want %d\n%s", code, c.code, &run.out)
			}
			if !strings.Contains(run.out.String(), c.hint) {
				t.Errorf("the output lacks %q:\n%s", c.hint, &run.out)
			}
			records, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
			if len(records) != 1 {
				t.Fatalf("records: %v, want one", records)
			}
			if text, code := execTare(t, bin, dir, "undo", records[0]); code != cli.ExitPass {
				t.Errorf("undo: exit %d\n%s", code, text)
			}
			if text, code := execTare(t, bin, dir, "report", records[0]); code != cli.ExitInterrupted ||
				!strings.Contains(text, c.status) {
				t.Errorf("report: exit %d, want %d and %q\n%s", code, cli.ExitInterrupted, c.status, text)
			}
			if c.status == "interrupted" {
				if left := leftovers(); left != "" {
					t.Errorf("left behind:\n%s", left)
				}
			}
		})
	}
}

// TestInterruptedWhileItUndoes: an interrupt of a run that undoes what it had left before it goes on lets that end, and
// exits with 130; a second one exits with 1, since something may be left.
func TestInterruptedWhileItUndoes(t *testing.T) {
	needsAreas(t, "exec")
	hosttest.SkipIfShort(t)
	bin := tareBinary(t)
	for name, c := range map[string]struct {
		signals, code int
		hint          string
		pending       bool // later
	}{
		"once":  {1, cli.ExitInterrupted, "all was undone, and the run does not go on", false},
		"twice": {2, cli.ExitError, "Next: tare undo", true},
	} {
		t.Run(name, func(t *testing.T) {
			began := filepath.Join(t.TempDir(), "began")
			w, err := record.Create(t.TempDir(), record.Header{
				Key: ownKey(t), Area: "exec", Question: design.Compare, Experiment: record.Experiment{Name: "x"},
				Host: record.Host{Name: hostname(t), Kernel: kernelOf(), CPUs: runtime.NumCPU()},
			}, []byte(drivenExperiment("rounds: 16", 8)), clock.System{})
			if err == nil {
				err = errors.Join(w.Intend(area.Change{Kind: kit.CommandKind, ID: "slow", Data: map[string]string{
					"run": `["sh","-c","touch ` + began + `; sleep 2"]`,
				}}), w.Plan(record.Plan{Blocks: 8}), w.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			run := started(t, t.TempDir(), bin, "run", "--resume", w.Dir())
			for !hasEnded(run.Process.Pid) {
				if _, err := os.Stat(began); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM}[:c.signals] {
				_ = run.Process.Signal(signal)
			}
			_ = run.Wait()
			if code := run.ProcessState.ExitCode(); code != c.code || !strings.Contains(run.out.String(), c.hint) {
				t.Errorf("exit %d, want %d and %q\n%s", code, c.code, c.hint, &run.out)
			}
			rec, err := record.Open(w.Dir())
			if err != nil || len(rec.Pending()) > 0 != c.pending {
				t.Errorf("%d changes are pending, %v", len(rec.Pending()), err)
			}
		})
	}
}

// TestInterruptedBeforeTheRun: a command that is still reading its experiment ends at the first interrupt, also where
// it was started with interrupts ignored, as in the background of a script.
func TestInterruptedBeforeTheRun(t *testing.T) {
	bin := tareBinary(t)
	for name, script := range map[string]string{
		"listening": `exec "$0" run -`, "ignored": `trap "" INT; exec "$0" run -`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, "sh", "-c", script, bin)
			run.Dir = dir
			var out bytes.Buffer
			run.Stdout, run.Stderr = &out, &out
			in, err := run.StdinPipe()
			if err == nil {
				err = run.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close() //nolint:errcheck // nothing to lose
			for !isReadingStdin(run.Process.Pid) {
				if ctx.Err() != nil {
					t.Fatal("it does not read its input")
				}
				time.Sleep(10 * time.Millisecond)
			}
			_ = run.Process.Signal(os.Interrupt)
			_ = run.Wait()
			code := run.ProcessState.ExitCode()
			if code != cli.ExitInterrupted || !strings.Contains(out.String(), "nothing was measured") {
				t.Errorf("exit %d, want %d\n%s", code, cli.ExitInterrupted, &out)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("the folder holds %v", left)
			}
		})
	}
}

// kernelOf returns the kernel of this host as a record has it.
func kernelOf() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// isReadingStdin reports whether a thread of a process waits for standard input (proc_pid_syscall(5)).
func isReadingStdin(pid int) bool {
	calls, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	return slices.ContainsFunc(calls, func(file string) bool {
		return bytes.HasPrefix(readAll(file), fmt.Appendf(nil, "%d 0x0 ", unix.SYS_READ))
	})
}

// answerAsMetadata answers like a metadata server with one account.
func answerAsMetadata(w http.ResponseWriter, r *http.Request) {
	const accounts = "/computeMetadata/v1/instance/service-accounts/"
	switch {
	case r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != "":
		w.WriteHeader(http.StatusForbidden)
	case r.URL.Path == accounts+"default/email":
		_, _ = w.Write([]byte("robot@project.iam.gserviceaccount.com"))
	case strings.HasSuffix(r.URL.Path, "/token"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"ya29.toy-token-of-nobody","expires_in":3599,"token_type":"Bearer"}`))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestInterruptedAfterTheRun: an interrupt while nobody reads the report ends the command, which says where the record
// is.
func TestInterruptedAfterTheRun(t *testing.T) {
	needsAreas(t, "identity")
	hosttest.SkipIfShort(t)
	srv := httptest.NewServer(http.HandlerFunc(answerAsMetadata))
	defer srv.Close()
	dir := folderWith(t, "name: blink\narea: identity\nquestion: capacity\n"+
		"target: {adapter: gce-metadata, url: "+srv.URL+"}\nload: {rates: [50/s], duration: 1s}\n")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = reader.Close(), writer.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, tareBinary(t), "run", "x.yaml", "-o", "html") // a page is larger than a pipe's buffer
	run.Dir, run.Stdout = dir, writer
	var out bytes.Buffer
	run.Stderr = &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run.Wait()
	}()
	finished := func() bool {
		records, _ := filepath.Glob(filepath.Join(dir, "results", "*", "record.jsonl"))
		return len(records) > 0 && bytes.Contains(readAll(records[0]), []byte(`"finish"`))
	}
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-time.After(100 * time.Millisecond):
			if finished() { // the first interrupt may still find the end of the run, the second one does not
				_ = run.Process.Signal(os.Interrupt)
			}
		}
	}
	const told = "stopped after the run. Next: tare report"
	if code := run.ProcessState.ExitCode(); code != cli.ExitInterrupted || !strings.Contains(out.String(), told) {
		t.Errorf("exit %d, want %d\n%s", code, cli.ExitInterrupted, &out)
	}
}

// TestRunningRecordIsLocked: no other process may undo or resume a run that is in progress. An interrupt then ends that
// run in order.
func TestRunningRecordIsLocked(t *testing.T) {
	needsAreas(t, "sandbox")
	hosttest.SkipIfShort(t)
	t.Setenv("TMPDIR", t.TempDir())
	bin := tareBinary(t)
	leftovers := watchLeftovers(t, bin)
	dir := t.TempDir()
	run, name := startRun(t, bin, dir, filepath.Join(dir, "results"))
	for _, args := range [][]string{{"undo", name}, {"run", "--resume", name}} {
		if text, code := execTare(t, bin, dir, args...); code != cli.ExitError || !strings.Contains(text,
			"is in use by run") {
			t.Errorf("tare %v during the run: exit %d\n%s", args, code, text)
		}
	}
	_ = run.Process.Signal(os.Interrupt)
	_ = run.Wait()
	if code := run.ProcessState.ExitCode(); code != cli.ExitInterrupted ||
		!strings.Contains(run.out.String(), "interrupted") {
		t.Errorf("exit %d, want %d\n%s", code, cli.ExitInterrupted, &run.out)
	}
	if text, code := execTare(t, bin, dir, "undo", name); code != cli.ExitPass || !strings.Contains(text,
		"nothing to undo") {
		t.Errorf("undo after an interrupt: exit %d\n%s", code, text)
	}
	if left := leftovers(); left != "" {
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
