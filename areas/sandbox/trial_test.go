package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/apparmor"
	"tare/rigs/hosttest"
)

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
