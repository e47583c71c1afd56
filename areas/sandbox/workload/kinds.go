package workload

import (
	"maps"
	"slices"
	"time"
)

// span is long enough for the resolution of every clock: the 2 µs of children's CPU time are 0.04 % of it. Calls that
// take milliseconds have longSpan.
const (
	span     = 5 * time.Millisecond
	longSpan = 25 * time.Millisecond
)

// Kinds lists the micro-workloads, in the order of reports.
func Kinds() []Kind {
	return slices.Concat(processKinds(), pathKinds(), socketKinds(), dataKinds(), cpuKinds())
}

// processKinds create processes.
func processKinds() []Kind {
	return []Kind{
		{
			Name: "exec", UnixBench: "Execl Throughput", Span: span, SystemCalls: []string{"execve"},
			Help: "execute a program of one page, which executes itself, and so on: no fork is timed",
		},
		{
			Name: "spawn", Span: span, SystemCalls: []string{"clone", "execve", "exit", "wait4"},
			Help: "fork a process of one page, execute a program of one page that ends at once, wait for it",
		},
		{
			Name: "fork", UnixBench: "Process Creation", Span: span, SystemCalls: []string{"clone", "exit_group", "wait4"},
			Help: "fork a process of one page, whose child ends at once, wait for it",
		},
		{
			Name: "shell", UnixBench: "Shell Scripts (8 concurrent)", Span: longSpan,
			SystemCalls: []string{"clone", "execve", "openat", "read", "write", "wait4"},
			Help:        "run a short script of sh eight times at once; each sorts, filters and counts the lines of a file",
		},
	}
}

// pathKinds look up a path.
func pathKinds() []Kind {
	return []Kind{
		{
			Name: "open", Span: span, SystemCalls: []string{"openat", "close"},
			Help: "open a file for reading and close it",
		},
		{
			Name: "stat", Span: span, SystemCalls: []string{"newfstatat"},
			Help: "ask for a file's attributes by its path",
		},
		{
			Name: "create", Span: span, SystemCalls: []string{"openat", "close", "unlinkat"},
			Help: "create a file, close it, remove it",
		},
	}
}

// socketKinds use sockets on loopback.
func socketKinds() []Kind {
	return []Kind{
		{
			Name: "connect", Span: span, SystemCalls: []string{"socket", "connect", "accept4", "close", "close"},
			Help: "connect to a TCP listener of the worker's own on loopback, accept, close both ends by reset, so that no " +
				"port is used up",
		},
		{
			Name: "udpconnect", Span: span, SystemCalls: []string{"connect"},
			Help: "give an open UDP socket a peer on loopback; nothing is sent",
		},
	}
}

// dataKinds transfer bytes through open descriptors.
func dataKinds() []Kind {
	return []Kind{
		{
			Name: "read", Span: span, SystemCalls: []string{"pread64"},
			Help: "read 512 bytes of an open file",
		},
		{
			Name: "pipe", UnixBench: "Pipe Throughput", Span: span, SystemCalls: []string{"write", "read"},
			Help: "write 512 bytes into a pipe and read them back, in one thread",
		},
		{
			Name: "switch", UnixBench: "Pipe-based Context Switching", Span: span,
			SystemCalls: []string{"write", "read", "read", "write"},
			Help:        "pass a token to another process on the same CPU through a pipe, and get it back: two context switches",
		},
		{
			Name: "copy", UnixBench: "File Copy 4096 bufsize 8000 maxblocks", Span: span, SystemCalls: []string{"read", "write"},
			Help: "copy a block of 4096 bytes from file to file; the files are of 1 MiB, so that they stay in memory",
		},
		{
			Name: "copy1024", UnixBench: "File Copy 1024 bufsize 2000 maxblocks", Span: span,
			SystemCalls: []string{"read", "write"},
			Help:        "copy a block of 1024 bytes from file to file",
		},
		{
			Name: "copy256", UnixBench: "File Copy 256 bufsize 500 maxblocks", Span: span,
			SystemCalls: []string{"read", "write"},
			Help:        "copy a block of 256 bytes from file to file",
		},
	}
}

// cpuKinds make few or no system calls.
func cpuKinds() []Kind {
	return []Kind{
		{
			Name: "syscall", UnixBench: "System Call Overhead", Span: span, SystemCalls: []string{"getppid"},
			Help: "ask for the parent's process id: a system call that does next to nothing",
		},
		{
			Name: "compute", UnixBench: "Whetstone and Dhrystone", Span: span, SystemCalls: nil,
			Help: "integer and floating-point steps of about a microsecond, with no system call: a negative control for " +
				"every enforcer",
		},
	}
}

// Starts lists the installed programs that an operation or a daemon starts.
func Starts(name string) []string {
	switch name {
	case "shell":
		return []string{"sh", "sort", "grep", "od", "wc", "rm", "test"}
	case "redis":
		return []string{"redis-server"}
	case "nginx":
		return []string{"nginx"}
	case "apache":
		return []string{"apache2"}
	case "sysbench-cpu", "sysbench-memory":
		return []string{"sysbench"}
	}
	return nil
}

// Opens lists the installed files beside its programs and their libraries that a daemon needs.
func Opens(daemon string) ([]string, error) {
	if daemon != "apache" {
		return nil, nil
	}
	program, err := installed("apache2", apachePackage)
	if err != nil {
		return nil, err
	}
	modules, err := apacheFiles(program)
	return slices.Sorted(maps.Values(modules)), err
}
