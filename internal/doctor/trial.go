package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TrialCommand is the command under which a program must call Trial.
const TrialCommand = "doctor-trial"

// The trials that run in children: a process cannot undo what they do to it, or they need another kind of process.
const (
	trialNothing  = "nothing"
	trialSeccomp  = "seccomp"
	trialLandlock = "landlock"
	trialUserNS   = "user-namespace"
	trialOrdinary = "ordinary-user"
)

// trialWithin bounds a child's life.
const trialWithin = 10 * time.Second

// nobody is the unprivileged user and group (nobody, nogroup).
const nobody = 65534

// An outcome is the result of a trial, as the child's line on standard output.
type outcome struct {
	OK    bool   `json:"ok"`
	Found string `json:"found"`
}

// Trial is the child's side: it carries out one trial in this process, which must do nothing else and then end, and
// writes the outcome.
func Trial(ctx context.Context, name string, w io.Writer) error {
	trials := map[string]func(context.Context) (string, error){
		trialNothing:  func(context.Context) (string, error) { return "", nil },
		trialSeccomp:  func(context.Context) (string, error) { return trySeccomp() },
		trialLandlock: func(context.Context) (string, error) { return tryLandlock() },
		trialUserNS:   func(context.Context) (string, error) { return tryNamespaceRights() },
		trialOrdinary: func(ctx context.Context) (string, error) { return "", tryUserNamespace(ctx, "/proc/self/exe") },
	}
	do, ok := trials[name]
	if !ok {
		return fmt.Errorf("there is no trial %q; tare doctor starts these itself", name)
	}
	runtime.LockOSThread() // privileges belong to threads
	found, err := do(ctx)
	o := outcome{OK: err == nil, Found: found}
	if err != nil {
		o.Found = err.Error()
	}
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// runTrial runs one of the trials in a child and returns what it found. The error is either the trial's own, or that of
// starting the child.
func runTrial(ctx context.Context, self, name string, attr *syscall.SysProcAttr) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, trialWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, TrialCommand, name)
	cmd.SysProcAttr = attr
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var o outcome
	if jsonErr := json.Unmarshal(out, &o); jsonErr == nil && err == nil {
		if !o.OK {
			return "", errors.New(o.Found)
		}
		return o.Found, nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "", fmt.Errorf("%w: %.200s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err == nil {
		err = fmt.Errorf("the child said %.100q", out)
	}
	return "", err
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

// tryUserNamespace starts a child of self in its own user and UTS namespaces, which end with it.
func tryUserNamespace(ctx context.Context, self string) error {
	_, err := runTrial(ctx, self, trialUserNS, &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: unix.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: unix.Getgid(), Size: 1}},
	})
	return err
}

// tryNamespaceRights uses a right that only the namespace's root has. Some systems let any user create a namespace and
// grant no rights in it.
func tryNamespaceRights() (string, error) {
	if uid := unix.Getuid(); uid != 0 {
		return "", fmt.Errorf("user %d in a user name space of its own, want 0", uid)
	}
	if err := unix.Sethostname([]byte("tare-doctor")); err != nil {
		return "", fmt.Errorf("root of a user name space has no rights in it: %w", err)
	}
	return "", nil
}
