package workload

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
)

// shells is how many scripts one call runs concurrently.
const shells = 8

// shell is the routine "shell".
type shell struct {
	plain

	path   string
	argv   [shells][]string
	attr   syscall.ProcAttr
	pids   [shells]int
	status uint32
	made   int // scripts in total
	null   int
}

func newShell(dir string) (*shell, error) {
	path, err := exec.LookPath("sh")
	if err != nil {
		return nil, &Missing{Program: "sh", Package: "dash"}
	}
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, asFailure("shell", "openat", err)
	}
	s := &shell{path: path, null: null}
	for i := range s.argv {
		s.argv[i] = []string{"sh", filepath.Join(dir, scriptFile), "out." + strconv.Itoa(i)}
	}
	n := uintptr(null)
	s.attr = syscall.ProcAttr{Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, Files: []uintptr{n, n, n}}
	return s, nil
}

func (s *shell) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if err := s.once(); err != nil {
			return err
		}
	}
	return nil
}

// once waits for all that it started, even after an error.
func (s *shell) once() (err error) {
	started := 0
	for ; started < shells; started++ {
		if s.pids[started], err = syscall.ForkExec(s.path, s.argv[started], &s.attr); err != nil {
			err = asFailure("shell", "execve", err)
			break
		}
	}
	for _, pid := range s.pids[:started] {
		switch e := wait("shell", uintptr(pid), &s.status); {
		case err != nil:
		case e != nil:
			err = e
		case s.status != 0:
			err = scriptEnded(s.status)
		default:
			s.made++
		}
	}
	return err
}

// scriptEnded returns an error if a script failed; its status is no errno.
func scriptEnded(status uint32) error {
	ws := syscall.WaitStatus(status)
	if ws.Exited() {
		return &Failure{Op: "shell", Call: "execve", Detail: fmt.Sprintf("the script ended with status %d", ws.ExitStatus())}
	}
	return ended("shell", "execve", status)
}

func (s *shell) close() { _ = syscall.Close(s.null) }
