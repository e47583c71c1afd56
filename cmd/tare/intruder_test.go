package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// stoppable is the name of a command that this test binary is: it runs another one, which stops before each of its
// calls that name a path, until the test lets it go on.
const stoppable = "stoppable"

// pathCalls are the system calls at which a stoppable program stops, and which of their arguments are the folder from
// which a path counts (-1: none) and the path.
var pathCalls = map[uint32]struct {
	name         string
	folder, path int
}{
	unix.SYS_OPENAT:     {"open", 0, 1},
	unix.SYS_OPENAT2:    {"open", 0, 1},
	unix.SYS_MKDIRAT:    {"mkdir", 0, 1},
	unix.SYS_UNLINKAT:   {"unlink", 0, 1},
	unix.SYS_READLINKAT: {"readlink", 0, 1},
	unix.SYS_FCHMODAT:   {"chmod", 0, 1},
	unix.SYS_FCHOWNAT:   {"chown", 0, 1},
	unix.SYS_TRUNCATE:   {"truncate", -1, 0},
	unix.SYS_EXECVE:     {"exec", -1, 0},
	unix.SYS_RENAMEAT:   {"rename", 2, 3},
	unix.SYS_RENAMEAT2:  {"rename", 2, 3},
	unix.SYS_LINKAT:     {"link", 2, 3},
	unix.SYS_SYMLINKAT:  {"symlink", 1, 2},
	unix.SYS_CONNECT:    {"connect", -1, 1},
	unix.SYS_BIND:       {"bind", -1, 1},
}

// A notice is the kernel's struct seccomp_notif, and an answer its struct seccomp_notif_resp.
type (
	notice struct {
		id        uint64
		thread, _ uint32
		call, _   uint32
		_         uint64
		args      [6]uint64
	}
	answer struct {
		id    uint64
		_     int64
		_     int32
		flags uint32
	}
)

const (
	receiveNotice = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	sendAnswer    = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	goOn          = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

// runStoppable sends whoever started it the descriptor by which its calls are answered, over the socket that is its
// fourth descriptor, and becomes the program that its arguments name.
func runStoppable() {
	runtime.LockOSThread()
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	left := len(pathCalls)
	for call := range pathCalls {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(left), K: call})
		left--
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF})
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	path, args, env := os.Args[1], os.Args[1:], os.Environ() // nothing is opened from here on
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		fmt.Fprintln(os.Stderr, "no calls can be stopped:", errno)
		os.Exit(99)
	}
	err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(listener)), nil, 0)
	_ = unix.Close(int(listener))
	_ = unix.Close(3)
	if err == nil {
		err = syscall.Exec(path, args, env)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(99)
}

// A pathCall is a system call that names a path, before the kernel carries it out.
type pathCall struct {
	thread int
	name   string
	path   string // absolute
}

// runStopping runs a command and calls before at each of its path calls, and those of its children. It returns what the
// command printed, and its exit code.
func runStopping(t *testing.T, cmd *exec.Cmd, before func(pathCall)) (out string, code int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	var text bytes.Buffer
	cmd.Args = append([]string{stoppable}, cmd.Args...)
	cmd.Args[1] = cmd.Path
	cmd.Path = filepath.Join(filepath.Dir(tarePath), stoppable)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.WaitDelay = &text, &text, []*os.File{theirs}, 10*time.Second
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := receiveDescriptor(int(ours.Fd()))
	_ = ours.Close()
	if err != nil {
		_ = cmd.Wait()
		hosttest.Missing(t, fmt.Sprintf("no system calls can be stopped: %v; %s", err, text.String()), hosttest.Root)
	}
	end, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- serveCalls(listener, end, before) }()
	err = cmd.Wait()
	close(end)
	if serveErr := <-served; serveErr != nil {
		t.Errorf("system calls that stop: %v", serveErr)
	}
	_ = unix.Close(listener)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("%v: %v", cmd.Args, err)
	}
	return text.String(), cmd.ProcessState.ExitCode()
}

// receiveDescriptor receives a descriptor that runStoppable sends.
func receiveDescriptor(socket int) (int, error) {
	b, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, b, control, 0)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("it sends no descriptor: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

// serveCalls answers the calls that stop until end is closed and no more of them come.
func serveCalls(listener int, end <-chan struct{}, before func(pathCall)) error {
	for {
		fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 20)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			select {
			case <-end:
				return nil
			default:
				continue
			}
		case fds[0].Revents&unix.POLLIN == 0: // nobody is left
			return nil
		}
		var from notice
		errno := control(listener, receiveNotice, unsafe.Pointer(&from))
		if errno == unix.ENOENT || errno == unix.EINTR { // its thread has ended
			continue
		}
		if errno != 0 {
			return errno
		}
		if call, ok := from.read(); ok {
			before(call)
		}
		to := answer{id: from.id, flags: goOn}
		if errno := control(listener, sendAnswer, unsafe.Pointer(&to)); errno != 0 && errno != unix.ENOENT {
			return errno
		}
	}
}

func control(fd int, request uintptr, with unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(with))
	return errno
}

// read reads the path of a call out of the process that waits.
func (n *notice) read() (pathCall, bool) {
	known := pathCalls[n.call]
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.thread))
	if err != nil {
		return pathCall{}, false
	}
	defer func() { _ = memory.Close() }()
	b := make([]byte, 4096)
	at := n.args[known.path]
	got, _ := memory.ReadAt(b[:4096-at%4096], int64(at)) // the next page may not be there
	if rest := 4096 - got; got > 0 && rest > 0 && !bytes.Contains(b[:got], []byte{0}) {
		more, _ := memory.ReadAt(b[got:], int64(at)+int64(got))
		got += more
	}
	text := b[:got]
	if known.name == "connect" || known.name == "bind" {
		if len(text) < 4 || binary.NativeEndian.Uint16(text) != unix.AF_UNIX || text[2] == 0 {
			return pathCall{}, false
		}
		text = text[2:]
	}
	name, _, found := bytes.Cut(text, []byte{0})
	if !found {
		return pathCall{}, false
	}
	path := string(name)
	if !filepath.IsAbs(path) {
		folder := fmt.Sprintf("/proc/%d/cwd", n.thread)
		if fd := int32(n.args[max(0, known.folder)]); known.folder >= 0 && fd != unix.AT_FDCWD {
			folder = fmt.Sprintf("/proc/%d/fd/%d", n.thread, fd)
		}
		base, err := os.Readlink(folder)
		if err != nil {
			return pathCall{}, false
		}
		path = filepath.Join(base, path)
	}
	return pathCall{int(n.thread), known.name, filepath.Clean(path)}, true
}

// A stranger does things in the file system as another user, with no rights of root.
type stranger struct {
	do  chan func()
	end sync.WaitGroup
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	s := &stranger{do: make(chan func())}
	s.end.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		_ = unix.Setfsgid(strangerID)
		_ = unix.Setfsuid(strangerID)
		for do := range s.do {
			do()
		}
	})
	t.Cleanup(func() {
		close(s.do)
		s.end.Wait()
	})
	return s
}

// as has the stranger do something.
func (s *stranger) as(do func() error) (err error) {
	done := make(chan struct{})
	s.do <- func() {
		err = do()
		close(done)
	}
	<-done
	return err
}

// may reports whether the stranger may put a link in the place of path, whether or not something is there.
func (s *stranger) may(path string) bool {
	parent := filepath.Dir(path)
	if parent == path || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") {
		return false
	}
	if s.as(func() error { return unix.Faccessat(unix.AT_FDCWD, parent, unix.W_OK|unix.X_OK, unix.AT_EACCESS) }) != nil {
		return false
	}
	var of, entry unix.Stat_t
	if unix.Stat(parent, &of) != nil {
		return false
	}
	if of.Mode&unix.S_ISVTX == 0 || of.Uid == strangerID || unix.Lstat(path, &entry) != nil {
		return true
	}
	return entry.Uid == strangerID
}
