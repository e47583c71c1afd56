// Package workload holds what is timed under a kernel enforcer: micro-workloads of system calls, command lines, and
// daemons.
//
// A micro-workload or a command line runs in a worker (Serve), a process that an enforcer has confined; its other side
// (Client) is not confined. They speak a line protocol over a pair of pipes. The worker times itself: wall time by
// CLOCK_MONOTONIC, CPU time by the clock of the thread that does the work and by the children that it has reaped, so
// that the rest of the Go runtime does not count. A daemon (Daemon) is confined as a whole and loaded from outside.
package workload

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Kind is a micro-workload.
type Kind struct {
	Name string // "exec"
	// UnixBench is the name of the nearest test of UnixBench 5; empty: there is none.
	UnixBench string
	// Help says what one call does.
	Help string
	// SystemCalls are the calls that every iteration makes in the worker or its children, in order: what an enforcer can
	// affect.
	SystemCalls []string
	// Span is how long a batch should last for an exact cost: 5 ms, more if one call takes long.
	Span time.Duration
}

// Find returns the kind of that name.
func Find(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Cost is the total cost of N calls.
type Cost struct {
	N    int           `json:"n"`
	Wall time.Duration `json:"wall_ns"`
	// CPU is user and system time of the worker's thread and of the children that the calls made. With children its
	// resolution is 2 µs.
	CPU time.Duration `json:"cpu_ns"`
	// Instructions in user space and kernel, if Counted: only if a test showed a working counter for both.
	Instructions uint64 `json:"instructions,omitempty"`
	Counted      bool   `json:"counted,omitempty"`
	// Memory is what the calls took in bytes, where that is measured instead of time. No worker sends it.
	Memory int64 `json:"-"`
}

// Failure is a call of a workload that failed or returned a wrong result. It unwraps to its errno, so errors.Is(err,
// syscall.EACCES) holds when an enforcer denied the call.
type Failure struct {
	Op     string        // the kind: "open"
	Call   string        // the system call: "openat"
	Errno  syscall.Errno // 0: the call succeeded with a wrong result
	Detail string        // the wrong result, or the last line of a command's stderr
}

// Error implements error.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Op, f.Call)
	if f.Errno != 0 {
		fmt.Fprintf(&b, ": %v", f.Errno)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ": %s", f.Detail)
	}
	return b.String()
}

// Unwrap returns the errno, if there is one.
func (f *Failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

// Missing is the error for a program that a workload needs and that is not installed.
type Missing struct {
	Program string // "redis-server"
	Package string // Debian's package: "redis-server"
}

// Error implements error.
func (m *Missing) Error() string {
	return fmt.Sprintf("%s is not installed: apt-get install %s", m.Program, m.Package)
}
