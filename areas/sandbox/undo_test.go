package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestParent is no test: TestUndoAfterKill runs it in a process of its own.
func TestParent(t *testing.T) {
	journal, _ := areatest.ParentJournal(t)
	opened, err := Area{}.Open(t.Context(), &Spec{
		Workloads: []string{"open"}, SetUp: []string{"confine"}, Real: installedDaemons(),
	}, areatest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []design.Treatment{
		baseline(), treatment("enforcer", "seccomp"), treatment("enforcer", "landlock", "rules", "2", "others", "20"),
	} {
		if err := opened.Prepare(t.Context(), a, journal); err != nil {
			t.Fatal(err)
		}
		if err := opened.Can().Enter(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if err := opened.Verify(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		ops, err := opened.Operations(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ops[0].Batch(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	areatest.AwaitKill(t)
}

func installedDaemons() []string {
	var out []string
	for _, name := range workload.Daemons() {
		if len((&Spec{Real: []string{name}}).missing()) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// TestUndoAfterKill kills a run whose workers and daemons are running, with SIGKILL, and undoes it from the journal
// alone.
func TestUndoAfterKill(t *testing.T) {
	requireEnforcer(t, enforcerLandlock)
	journal := filepath.Join(t.TempDir(), "journal")
	output, kill := areatest.StartParent(t, journal)
	changes := areatest.ReadJournal(t, journal)
	kill()
	if want := 1 + 3*(2+len(installedDaemons())) + 1; len(changes) != want {
		t.Fatalf("%d changes in the journal, want %d; the run printed\n%s", len(changes), want, output)
	}
	areatest.UndoTwice(t, Area{}, changes, area.Env{})
	for _, c := range changes {
		if path := c.Data["path"]; c.Kind == changeFolder {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", path, err)
			}
			if left := processesIn(t, path); len(left) > 0 {
				t.Errorf("processes %v still work in %s", left, path)
			}
			continue
		}
		if state := stateOf(c.Data["pid"]); state != "" && state != "Z" {
			t.Errorf("%s, process %s, is in state %s", c.ID, c.Data["pid"], state)
		}
	}
}

// processesIn returns the live processes that work below path.
func processesIn(t *testing.T, path string) (out []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, path) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			out = append(out, pid)
		}
	}
	return out
}

// stateOf returns a process's state, empty if there is no such process.
func stateOf(pid string) string {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}

// TestUndoWhileRunning undoes workers that still run, as another process may.
func TestUndoWhileRunning(t *testing.T) {
	tg, j := prepared(t, &Spec{Workloads: []string{"open"}, Real: installedDaemons()}, baseline())
	enter(t, tg, baseline())
	child := tg.arms[baseline().ID].sample.worker.child
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{})
	if err := child.Wait(t.Context()); err == nil {
		t.Error("the worker was not killed")
	}
	if _, err := operationOf(t, tg, baseline(), "open").Batch(t.Context(), 1); err == nil {
		t.Error("a batch after undo")
	}
}

func TestUndoRejectsForeignChanges(t *testing.T) {
	keep := t.TempDir()
	for _, c := range []area.Change{
		{Kind: "namespace"},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "x", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "1", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "99999999"}},
		{Kind: changeFolder},
		{Kind: changeFolder, Data: map[string]string{"path": "/"}},
		{Kind: changeFolder, Data: map[string]string{"path": "tare-sandbox-1"}},
		{Kind: changeFolder, Data: map[string]string{"path": keep}},
		{Kind: changeFolder, Data: map[string]string{"path": keep + "/tare-sandbox-1/.."}},
	} {
		if err := (Area{}).Undo(t.Context(), []area.Change{c}, area.Env{}); err == nil {
			t.Errorf("%v was undone", c)
		}
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}

// TestPrepareNeedsAJournal: nothing is created that cannot be journaled.
func TestPrepareNeedsAJournal(t *testing.T) {
	full := errors.New("disk full")
	for _, kind := range []string{changeFolder, kit.ProcessKind} {
		tg, j := prepared(t, &Spec{Workloads: []string{"open"}})
		j.Deny = func(c area.Change) error {
			if c.Kind == kind {
				return full
			}
			return nil
		}
		err := tg.Prepare(t.Context(), baseline(), j)
		if err == nil {
			err = tg.Enter(t.Context(), baseline())
		}
		if !errors.Is(err, full) {
			t.Errorf("without a journal for a %s: %v", kind, err)
		}
		if kind == changeFolder {
			if _, err := os.Lstat(tg.folder); tg.folder != "" && err == nil {
				t.Errorf("%s was made", tg.folder)
			}
		}
	}
}

// TestSweepRemovesFoldersOfDeadProcesses: trial folders that nobody has locked are removed; locked ones and other
// folders stay.
func TestSweepRemovesFoldersOfDeadProcesses(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := trialFolder()
	if err != nil {
		t.Fatal(err)
	}
	named := func(rest string) string { return filepath.Join(os.TempDir(), folderPrefix+rest) }
	ours, left := used.Path(), named("trial-8899aabbccddeeff")
	run, odd := named("0011223344556677"), named("trial-x")
	for _, dir := range []string{ours, left, run, odd} {
		if err := os.MkdirAll(filepath.Join(dir, "s00000"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	theirs := named("trial-8899aabbccddee00") // nobody has locked it, and yet it is not ours to remove
	there := os.Geteuid() == 0
	if there {
		if err := errors.Join(os.MkdirAll(theirs, 0o700), os.Chown(theirs, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	} else {
		hosttest.Untried(t, "no folder of another user can be made", hosttest.Root)
	}
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{ours: true, left: false, run: true, odd: true, theirs: there} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
	if err := errors.Join(removeFolder(ours), used.Close()); err != nil {
		t.Error(err)
	}
}

// TestTrialsBesideSweeps: no sweep removes a folder between the moment when it is made and that when it is locked.
func TestTrialsBesideSweeps(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	over := make(chan struct{})
	var sweeping sync.WaitGroup
	for range 2 {
		sweeping.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if err := sweep(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 {
		if err := inTrialFolder(func(dir string) error { return os.Mkdir(filepath.Join(dir, "s00000"), 0o700) }); err != nil {
			t.Error(err)
		}
	}
	close(over)
	sweeping.Wait()
	if left := filesIn(t, os.TempDir()); left != "" {
		t.Errorf("%s is left", left)
	}
}

// trialVariable has the test binary hold a trial until its standard input ends.
const trialVariable = "TARE_TEST_TRIAL"

// holdTrial lets the test binary be another tare in a trial: it prints the trial's folder, and what it would load
// profiles under.
func holdTrial() {
	if os.Getenv(trialVariable) == "" {
		return
	}
	var err error
	if os.Getpid() == 1 { // of a namespace: this process sees itself in /proc under that number
		err = errors.Join(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("proc", "/proc", "proc", 0, ""))
	}
	err = errors.Join(err, inTrialFolder(func(dir string) error {
		fmt.Println(dir, apparmor.Namespace(trialRun()))
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestTrialsOfOthersAreLeftAlone: what another tare uses is not swept, also if that is in another PID namespace, as in
// a container, where its number means another process or none. When it has been killed, its folder is swept.
func TestTrialsOfOthersAreLeftAlone(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for title, flags := range map[string]uintptr{
		"in this PID namespace": 0, "in another PID namespace": unix.CLONE_NEWPID | unix.CLONE_NEWNS,
	} {
		t.Run(title, func(t *testing.T) {
			other := exec.Command(os.Args[0])
			other.Env = append(os.Environ(), trialVariable+"=1")
			other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
			var wrong strings.Builder
			other.Stderr = &wrong
			in, err1 := other.StdinPipe()
			out, err2 := other.StdoutPipe()
			if err := errors.Join(err1, err2, other.Start()); errors.Is(err, os.ErrPermission) {
				hosttest.Missing(t, err.Error(), hosttest.Root)
			} else if err != nil {
				t.Fatal(err)
			}
			var dir, namespace string
			if _, err := fmt.Fscan(out, &dir, &namespace); err != nil {
				_ = other.Wait()
				t.Fatalf("the other tare prints nothing: %v, %s", err, wrong.String())
			}
			if err := sweep(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(dir); err != nil || isLeftTrial(namespace) {
				t.Errorf("while it lives: %v, %s is left over: %t", err, namespace, isLeftTrial(namespace))
			}
			_ = other.Process.Kill()
			_ = other.Wait()
			_ = in.Close()
			if err := sweep(); err != nil {
				t.Error(err)
			}
			// Nobody here can know whether a process of another namespace has ended.
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || isLeftTrial(namespace) != (flags == 0) {
				t.Errorf("when it was killed: %v, %s is left over: %t", err, namespace, isLeftTrial(namespace))
			}
		})
	}
}
