package bpflsm

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

func TestListOfLSMs(t *testing.T) {
	err := checkList("lockdown,capability,landlock\n")
	if err == nil || !strings.Contains(err.Error(), "lists lockdown,capability,landlock") ||
		!strings.Contains(hintOf(err), "lsm=lockdown,capability,landlock,bpf,") {
		t.Errorf("got %v: %s", err, hintOf(err))
	}
	if err := checkList("lockdown,capability,bpf,landlock"); err != nil {
		t.Error(err)
	}
}

func TestCauses(t *testing.T) {
	hosttest.NeedsRoot(t)
	advice := fmt.Errorf("program x: load program: %w (MEMLOCK may be too low)", unix.EPERM)
	for _, c := range []struct {
		err                error
		want, hint, hideme string
	}{
		{noPrograms(advice), "does not let root load BPF programs for the LSM: oper", "container", "MEMLOCK"},
		{noPrograms(unix.ENOSYS), "no bpf(2)", "CONFIG_BPF_SYSCALL", "-"},
		{noPrograms(unix.ENOMEM), "no memory", "memory.max", "-"},
		{noPrograms(ebpf.ErrNotSupported), "cannot run our BPF programs", "Linux " + oldest, "-"},
		{noPrograms(&ebpf.VerifierError{Cause: unix.EACCES}), "cannot run our BPF programs", "CONFIG_BPF_LSM", "-"},
		{noPrograms(unix.EINVAL), "invalid argument", "Linux " + oldest, "-"},
		{noMemlock(unix.EPERM), "RLIMIT_MEMLOCK", "ulimit -l", "-"},
		{noAttachment(Mount, unix.EPERM), "attach a BPF program to sb_mount", "as root", "-"},
		{noAttachment(Mount, unix.E2BIG), "too long", "other software", "-"},
		{noAttachment(Mount, unix.EBUSY), "busy", "trampolines", "-"},
	} {
		if !strings.Contains(c.err.Error(), c.want) || !strings.Contains(hintOf(c.err), c.hint) ||
			strings.Contains(c.err.Error(), c.hideme) {
			t.Errorf("got %q with the hint %q, want %q with %q", c.err, hintOf(c.err), c.want, c.hint)
		}
	}
}

// TestLoadWithoutRoot: another user is told to run tare as root.
func TestLoadWithoutRoot(t *testing.T) {
	hosttest.NeedsRoot(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + roleLoader}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		hosttest.Missing(t, fmt.Sprintf("another user may not execute this program: %v", err),
			"have TMPDIR in a folder that all users may enter")
	}
	if want := "load BPF programs for the LSM without root: operation not permitted: run tare as root\n"; err != nil ||
		!strings.HasSuffix(string(out), want) {
		t.Errorf("got %v, %q, want %q", err, out, want)
	}
}

// TestLoadSaysWhatTheKernelLacks shows, where the kernel refuses, that the error says why.
func TestLoadSaysWhatTheKernelLacks(t *testing.T) {
	p, err := Load(Options{})
	if err == nil {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	t.Logf("%v: %s", err, hintOf(err))
	if hintOf(err) == "" {
		t.Errorf("no hint says what to do: %v", err)
	}
}
