package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onOwnThread runs a trial on a thread that ends with it: what a thread has enforced upon itself cannot be undone. The
// main thread never ends, so another one is taken.
func onOwnThread(try func() (string, error)) (found string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			found, err = try() // the thread stays locked, so the runtime ends it
			return
		}
		found, err = onOwnThread(try)
		runtime.UnlockOSThread()
	}()
	<-done
	return found, err
}

// refusedErrno is an error that getppid(2) never gives by itself.
const refusedErrno = unix.EDOM

// trySeccomp loads a filter and checks that it is enforced (seccomp(2)).
func trySeccomp() (string, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", fmt.Errorf("set no_new_privs: %w", err)
	}
	const retAllow, retErrno = 0x7fff0000, 0x00050000
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_GETPPID, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: retErrno | uint32(refusedErrno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: retAllow},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const setModeFilter = 1
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return "", fmt.Errorf("load filter: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); e != refusedErrno {
		return "", fmt.Errorf("the filter was loaded, and yet the system call that it refuses gave %w", e)
	}
	return "a filter was loaded and refused a system call", nil
}

// tryLandlock restricts this thread and checks that a file is then refused (landlock(7)).
func tryLandlock() (string, error) {
	const file = "/proc/self/status"
	if err := tryOpen(file); err != nil {
		return "", err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_READ_FILE}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if e != 0 {
		return "", fmt.Errorf("create ruleset: %w", e)
	}
	defer unix.Close(int(fd)) //nolint:errcheck // nothing to lose
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "", fmt.Errorf("set no_new_privs: %w", err)
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return "", fmt.Errorf("restrict: %w", e)
	}
	if err := tryOpen(file); !errors.Is(err, unix.EACCES) {
		return "", fmt.Errorf("the rules were accepted, and yet the file that they refuse gave: %w",
			errors.Join(err, errNotRefused))
	}
	return "rules were enforced and refused a file", nil
}

var errNotRefused = errors.New("not refused")

// tryOpen opens a file in the calling thread.
func tryOpen(file string) error {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	return unix.Close(fd)
}
