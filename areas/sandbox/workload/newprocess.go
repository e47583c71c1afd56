package workload

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TryNew is the attempt that a new process makes with its first system call.
const TryNew = "new"

// CanTryNew reports whether a new process can make an attempt with one system call, on this architecture.
func CanTryNew(what string, args ...string) bool {
	_, ok := newCall(what, args)
	return ok && runtime.GOARCH == "amd64"
}

// firstCall is a system call with up to two texts among its arguments.
type firstCall struct {
	harmless

	texts map[int]string // by argument
}

// newCall returns the system call of an attempt.
func newCall(what string, args []string) (firstCall, bool) {
	current := unix.AT_FDCWD
	here := uintptr(current)
	const open = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	c := firstCall{texts: map[int]string{}}
	switch {
	case what == TryUmount && len(args) == 0:
		c.harmless = harmless{unix.SYS_UMOUNT2, [4]uintptr{0, unix.MNT_EXPIRE}}
		c.texts[0] = "/"
		return c, true
	case what == TryAlarm && len(args) == 0:
		c.harmless = harmless{unix.SYS_TIMERFD_CREATE, [4]uintptr{unix.CLOCK_BOOTTIME_ALARM, unix.TFD_CLOEXEC}}
		return c, true
	case len(args) != 1:
		return c, false
	}
	c.texts[1] = args[0]
	switch what {
	case "open":
		c.harmless = harmless{unix.SYS_OPENAT, [4]uintptr{here, 0, unix.O_RDONLY | open}}
	case "write":
		c.harmless = harmless{unix.SYS_OPENAT, [4]uintptr{here, 0, unix.O_WRONLY | open}}
	case "fifo":
		c.harmless = harmless{unix.SYS_MKNODAT, [4]uintptr{here, 0, unix.S_IFIFO | 0o600}}
	case "exec":
		c.harmless, c.texts = harmless{unix.SYS_EXECVE, [4]uintptr{}}, map[int]string{0: args[0]}
	case "syscall":
		var ok bool
		c.harmless, ok = syscalls()[args[0]]
		c.texts = nil
		return c, ok
	default:
		return c, false
	}
	return c, true
}

// attempted is in the status of a new process beside the errno of its attempt: without it, it was not executed.
const attempted = 0x80

// MostNewErrno is the largest errno that the status of a new process can hold.
const MostNewErrno = attempted - 1

// code returns the machine code of the call and of an exit with its errno. Its texts follow it.
func (c firstCall) code() []byte {
	registers := [4][2]byte{{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba}, {0x49, 0xba}} // rdi, rsi, rdx, r10
	end := []byte{
		0x45, 0x31, 0xc0, // xor r8d, r8d
		0x45, 0x31, 0xc9, // xor r9d, r9d
		0x0f, 0x05, // syscall
		0x31, 0xff, // xor edi, edi
		0x48, 0x85, 0xc0, // test rax, rax
		0x79, 0x04, // jns ended
		0xf7, 0xd8, // neg eax
		0x89, 0xc7, // mov edi, eax
		0x81, 0xcf, attempted, 0x00, 0x00, 0x00, // ended: or edi, 0x80
		0xb8, 0x3c, 0x00, 0x00, 0x00, // mov eax, 60                       exit
		0x0f, 0x05, // syscall
	}
	const move = 10 // bytes of an instruction that loads a register
	at := codeAt + move*(len(registers)+1) + len(end)
	var texts strings.Builder
	b := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, uint64(c.number)) // mov rax
	for i, r := range registers {
		v := uint64(c.args[i])
		if text, ok := c.texts[i]; ok {
			v = uint64(at + texts.Len())
			texts.WriteString(text + "\x00")
		}
		b = binary.LittleEndian.AppendUint64(append(b, r[:]...), v)
	}
	return append(append(b, end...), texts.String()...)
}

// tryNew makes an attempt in a new process.
func (w *worker) tryNew(args []string) (syscall.Errno, error) {
	if len(args) == 0 || !CanTryNew(args[0], args[1:]...) {
		return 0, fmt.Errorf("a new process cannot try %.80q", strings.Join(args, " "))
	}
	key := strings.Join(args, "\x00")
	path, ok := w.programs[key]
	if !ok {
		call, _ := newCall(args[0], args[1:])
		path = filepath.Join(w.dir, fmt.Sprintf("new-%d", len(w.programs)))
		const x8664 = 62                                                                  // EM_X86_64
		if err := os.WriteFile(path, executable(x8664, call.code()), 0o700); err != nil { //nolint:gosec // it is executed
			errno, err := errnoOf(err)
			return 0, cmp.Or(err, failed(TryNew, "write", errno))
		}
		w.programs[key] = path
	}
	status, err := tryExec(path)
	switch {
	case err != nil || status == 0: // an exec that was allowed ends as the program that it executed
		return 0, err
	case status&attempted == 0:
		return 0, failed(TryNew, "execve", status)
	case args[0] == "fifo" && status == attempted:
		err = os.Remove(args[1])
	}
	return status &^ attempted, err
}

// A child of a raw clone has a copy of the Go runtime's memory and nothing else: one thread, no scheduler, and locks
// that other threads held and will never release. So between clone and exit or execve there may only be system calls:
// no call that could grow the stack (nosplit) or that the race detector instruments (norace), and no write barrier. The
// caller blocks signals, so that none can enter the runtime's handler.

// wait waits for a child and returns its status.
func wait(op string, pid uintptr, status *uint32) error {
	for {
		got, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, pid, uintptr(unsafe.Pointer(status)), 0, 0, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return failed(op, "wait4", errno)
		case got != pid:
			return &Failure{Op: op, Call: "wait4", Detail: fmt.Sprintf("returned process %d instead of %d", got, pid)}
		default:
			return nil
		}
	}
}

// ended returns an error if a child did not exit with status 0.
func ended(op, call string, status uint32) error {
	ws := syscall.WaitStatus(status)
	switch {
	case ws.Exited() && ws.ExitStatus() == 0:
		return nil
	case ws.Signaled():
		return &Failure{Op: op, Call: call, Detail: fmt.Sprintf("the child was killed by signal %d (%v)",
			int(ws.Signal()), ws.Signal())}
	}
	return &Failure{Op: op, Call: call, Errno: syscall.Errno(ws.ExitStatus())}
}
