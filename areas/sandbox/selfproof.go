package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/workload"
)

// A selfProof is the system calls that a process tries under its policy right before it executes a server. So a
// profile is proved in the server's own process, and need not allow what a worker of tare's needs. The results are in
// memory that the process shares with this one, since the profile may refuse any call that would report them.
type selfProof struct {
	pid    int
	memory *os.File
}

var _ Attempts = (*selfProof)(nil)

// resultSize is the size of a result: 0 if the call was not made, otherwise its errno + 1.
const resultSize = 4

// newSelfProof makes the memory for a result of each of workload.Syscalls.
func newSelfProof() (*selfProof, error) {
	fd, err := unix.MemfdCreate("tare-proof", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory for a proof: %w", err)
	}
	s := &selfProof{memory: os.NewFile(uintptr(fd), "proof")}
	if err := s.memory.Truncate(int64(resultSize * len(workload.Syscalls()))); err != nil {
		_ = s.close()
		return nil, fmt.Errorf("make memory for a proof: %w", err)
	}
	return s, nil
}

func (s *selfProof) close() error { return s.memory.Close() }

// Try implements Attempts: it returns what the process got.
func (s *selfProof) Try(_ context.Context, what string, args ...string) (syscall.Errno, error) {
	i := -1
	if what == trySyscall && len(args) == 1 {
		i = slices.Index(workload.Syscalls(), args[0])
	}
	if i < 0 {
		return 0, fmt.Errorf("a server cannot try %s", attempt(what, args))
	}
	var b [resultSize]byte
	if _, err := s.memory.ReadAt(b[:], int64(resultSize*i)); err != nil {
		return 0, fmt.Errorf("read the result of %s: %w", args[0], err)
	}
	n := binary.NativeEndian.Uint32(b[:])
	if n == 0 {
		return 0, fmt.Errorf("the process did not try %s before it became a server", args[0])
	}
	return syscall.Errno(n - 1), nil
}

// Status implements Attempts.
func (s *selfProof) Status(context.Context) (workload.Status, error) {
	return workload.StatusOf(s.pid)
}

// A plannedTry is a system call that tryAll makes, and where its result belongs.
type plannedTry struct {
	number uintptr
	args   [6]uintptr
	index  int
}

// planTries lists the calls that the policy refuses with an errno.
func planTries(p Policy) ([]plannedTry, error) {
	program, err := filterProgram(p)
	if err != nil {
		return nil, err
	}
	refused, err := refusedByProfile(program)
	if err != nil {
		return nil, err
	}
	all := workload.Syscalls()
	var out []plannedTry
	for _, r := range refused {
		number, args := workload.Harmless(r.name)
		t := plannedTry{number: uintptr(number), index: slices.Index(all, r.name)}
		for i, a := range args {
			t.args[i] = uintptr(a)
		}
		out = append(out, t)
	}
	return out, nil
}

// shareResults maps the memory of a selfProof, which this process got as a descriptor.
func shareResults() ([]byte, error) {
	size := resultSize * len(workload.Syscalls())
	memory, err := unix.Mmap(resultsFD, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the memory of the proof: %w", err)
	}
	unix.CloseOnExec(resultsFD)
	return memory, nil
}

// tryAll makes the calls on this thread, which is under the policy already, and makes no other call.
func tryAll(tries []plannedTry, results []byte) {
	for i := range tries {
		t := &tries[i]
		_, _, errno := syscall.RawSyscall6(t.number, t.args[0], t.args[1], t.args[2], t.args[3], t.args[4], t.args[5])
		binary.NativeEndian.PutUint32(results[resultSize*t.index:], uint32(errno)+1)
	}
}
