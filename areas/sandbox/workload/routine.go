package workload

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A routine is a micro-workload in the worker. Only batch is timed.
type routine interface {
	// begin prepares a batch.
	begin() error
	// batch makes n calls, each checked. It does not allocate, and returns errHalted soon after halt is set.
	batch(n int, halt *atomic.Bool) error
	// end undoes begin.
	end() error
	// close releases what is kept between batches. It may be called at any time.
	close()
}

// A companion is a routine that delegates part of the work to another process, started by begin. Either it survives the
// batch, or the batch waits for its end.
type companion interface {
	companion() (pid int, survives bool)
}

// errHalted means that no client waits for the batch any more.
var errHalted = errors.New("halted: the client is gone")

// plain is a routine with nothing to prepare.
type plain struct{}

func (plain) begin() error { return nil }
func (plain) end() error   { return nil }
func (plain) close()       {}

// newRoutine makes the routine of a kind. It uses the files of Setup below dir, and the TCP port, unless that is 0.
func newRoutine(kind, dir string, port int) (routine, error) {
	switch kind {
	case "exec":
		return newTiny(kind, filepath.Join(dir, programFile), doExecute, "execve")
	case "spawn":
		return newTiny(kind, filepath.Join(dir, programFile), doSpawn, "execve")
	case "fork":
		return newTiny(kind, filepath.Join(dir, programFile), doFork, "exit_group")
	case "open":
		return newOpen(filepath.Join(dir, plainFile))
	case "stat":
		return newStat(filepath.Join(dir, plainFile))
	case "create":
		return newCreate(filepath.Join(dir, "created"))
	case "read":
		return newRead(filepath.Join(dir, plainFile))
	case "connect":
		return newConnect(port)
	case "udpconnect":
		return newUDPConnect()
	case "pipe":
		return newPipe()
	case "switch":
		return &pingpong{}, nil
	case "copy":
		return newCopy(dir, 4096, fileSize/4096)
	case "copy1024":
		return newCopy(dir, 1024, fileSize/1024)
	case "copy256":
		return newCopy(dir, 256, fileSize/256)
	case "syscall":
		return &getppid{}, nil
	case "shell":
		return newShell(dir)
	case "compute":
		return &compute{}, nil
	}
	return nil, fmt.Errorf("unknown workload %.40q", kind)
}

// run performs a batch of n calls and measures it. It begins at the time at, or at once if that is 0.
func (w *worker) run(kind string, n int, at time.Duration) (cost Cost, err error) {
	if batch := w.own.Batches[kind]; batch != nil {
		return batch(n, w.halt.Load)
	}
	r, ok := w.routines[kind]
	if !ok {
		if r, err = newRoutine(kind, w.dir, w.own.Port); err != nil {
			return Cost{}, err
		}
		w.routines[kind] = r
	}
	release, err := bind()
	if err != nil {
		return Cost{}, fmt.Errorf("%s: %w", kind, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	// A signal during a batch could be the runtime's preemption, cause an EINTR, or reach a forked child.
	unblock, err := blockSignals()
	if err != nil {
		return Cost{}, fmt.Errorf("%s: %w", kind, err)
	}
	defer unblock()
	if err := r.begin(); err != nil {
		return Cost{}, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	if at > 0 {
		if err := w.await(kind, at); err != nil {
			return Cost{}, err
		}
	}
	return w.timed(r, n, at)
}

// timed performs the batch between two readings of the clocks. Its wall time counts from the time at, if that is not 0.
func (w *worker) timed(r routine, n int, at time.Duration) (Cost, error) {
	pid, survives := 0, false
	if c, ok := r.(companion); ok {
		pid, survives = c.companion()
	}
	if err := w.meter.start(pid, survives); err != nil {
		return Cost{}, err
	}
	if at > 0 {
		w.meter.from.wall = at
	}
	if err := r.batch(n, w.halt); err != nil {
		return Cost{}, err
	}
	cost, err := w.meter.stop()
	cost.N = n
	return cost, err
}

// blockSignals blocks all signals for this thread until the returned function is called.
func blockSignals() (func(), error) {
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return nil, fmt.Errorf("block signals: %w", err)
	}
	return func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }, nil
}

// failed returns a Failure for a system call's errno.
func failed(op, call string, errno unix.Errno) error {
	return &Failure{Op: op, Call: call, Errno: errno}
}
