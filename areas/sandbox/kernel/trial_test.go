package kernel

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTrialsEndWithTheirThreads: what a trial enforces is in force nowhere else in this process.
func TestTrialsEndWithTheirThreads(t *testing.T) {
	for name, trial := range map[string]struct {
		try     func() (string, error)
		refused func() error
	}{
		"seccomp": {trySeccomp, func() error {
			if _, _, e := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); e != 0 {
				return e
			}
			return nil
		}},
		"landlock": {tryLandlock, func() error { return tryOpen("/proc/self/status") }},
	} {
		for range 20 {
			found, err := onOwnThread(trial.try)
			if err == nil && !strings.Contains(found, "refused") || err != nil && found != "" {
				t.Errorf("%s found %q, %v", name, found, err)
			}
			if err := trial.refused(); err != nil {
				t.Errorf("%s is in force in this process: %v", name, err)
			}
			for i, err := range onAllThreads(trial.refused) {
				if err != nil {
					t.Errorf("%s is in force in thread %d of 8: %v", name, i, err)
				}
			}
		}
	}
}

// onAllThreads calls do on several threads at the same time.
func onAllThreads(do func() error) (errs [8]error) {
	var all sync.WaitGroup
	locked := make(chan struct{}, len(errs))
	release := make(chan struct{})
	for i := range errs {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked <- struct{}{}
			<-release // so that no two have the same thread
			errs[i] = do()
		})
	}
	for range errs {
		<-locked
	}
	close(release)
	all.Wait()
	return errs
}

func TestOwnThreadIsNotTheMainThread(t *testing.T) {
	for range 100 {
		if _, err := onOwnThread(func() (string, error) {
			if unix.Gettid() == unix.Getpid() {
				t.Error("a trial ran on the main thread")
			}
			return "", nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChecks(t *testing.T) {
	for _, c := range Checks() {
		t.Logf("here: %+v", c)
		if c.Group == "" || c.Name == "" || c.State == "" || c.Found == "" {
			t.Errorf("check lacks its group, name, state or finding: %+v", c)
		}
		if c.State != "ok" && (c.Cause == "" || c.Next == "") {
			t.Errorf("neither cause nor next step: %+v", c)
		}
	}
}
