package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/internal/files"
	"tare/internal/proc"
)

// children checks that this program can start children and limit their CPU time.
func (x *examiner) children(ctx context.Context, d *Diagnosis) {
	c := Check{Group: groupLimits, Name: "child processes", State: OK, Found: "started and ended one"}
	if err := runTrial(ctx, x.Self, trialNothing, nil); err != nil {
		c.State, c.Found, c.Cause = Broken, "this program cannot start itself", err.Error()
		c.Next = "run tare from a file that may be executed (no noexec mount), with room for more processes (ulimit -u, " +
			"pids.max)"
	}
	d.add(c, cgroup(), x.namespaces(ctx))
}

// cgroup creates, limits and removes a control group.
func cgroup() Check {
	c := Check{Group: groupLimits, Name: "control groups", State: OK}
	name := proc.CgroupName("doctor", fmt.Sprint(os.Getpid()))
	undo := keepDelegation(name)
	g, err := proc.NewCgroup(name, proc.Quota{Share: 0.5})
	if err == nil {
		version := "v1"
		if g.V2() {
			version = "v2"
		}
		c.Found = fmt.Sprintf("%s: created %s, limited it to half a CPU, removed it", version, g.Path())
		err = g.Remove()
		if err != nil {
			c.State, c.Found, c.Cause = Limited, "a group was created and could not be removed", err.Error()
			c.Next = "rmdir " + g.Path()
		}
	} else {
		c.State, c.Found, c.Cause = Missing,
			"no group with a CPU limit could be made: embedded targets are held back by a calibrated throttle instead",
			err.Error()
		c.Next = "run as root, or have systemd delegate the cpu controller: \"systemd-run --user --scope -p Delegate=yes " +
			"tare …\""
	}
	if err := undo(); err != nil {
		c.Cause = strings.TrimPrefix(c.Cause+"; the cpu controller stays handed out: "+err.Error(), "; ")
	}
	return c
}

// keepDelegation returns a function that disables the cpu controller for child groups again, unless it was enabled
// before or others use it by then.
func keepDelegation(name string) (undo func() error) {
	nothing := func() error { return nil }
	group, err := proc.PlanCgroup(name)
	if err != nil {
		return nothing
	}
	dir, _ := strings.CutSuffix(group, "/"+name)
	control := dir + "/cgroup.subtree_control"
	handed := func() bool {
		b, err := files.Kernel(control)
		return err == nil && strings.Contains(" "+strings.TrimSpace(string(b))+" ", " cpu ")
	}
	if _, err := os.Stat(control); err != nil || handed() {
		return nothing
	}
	return func() error {
		if !handed() {
			return nil
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), "tare-") {
				return nil // another tare relies on it
			}
		}
		return files.SetKernel(control, "-cpu")
	}
}

// namespaces tries user namespaces as this user and, for root, also as an unprivileged user.
func (x *examiner) namespaces(ctx context.Context) Check {
	c := Check{Group: groupLimits, Name: "user name spaces", State: OK, Found: "made one, with root's rights in it"}
	err := tryUserNamespace(ctx, x.Self)
	if unix.Geteuid() == 0 && err == nil {
		c.Found = "made one as root and one as nobody, with root's rights in them"
		ordinary := runTrial(ctx, "/proc/self/exe", trialOrdinary,
			&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
		if ordinary != nil {
			c.State, c.Found = Limited, "made one as root, and none as nobody"
			err = ordinary
		}
	}
	if err == nil {
		return c
	}
	if c.State == OK {
		c.State, c.Found = Missing, "none could be made"
	}
	c.Cause = err.Error()
	for _, knob := range []string{
		"user/max_user_namespaces", "kernel/unprivileged_userns_clone",
		"kernel/apparmor_restrict_unprivileged_userns",
	} {
		if v := x.read("proc/sys/" + knob); v != "" {
			c.Cause += fmt.Sprintf("; %s=%s", strings.ReplaceAll(knob, "/", "."), v)
		}
	}
	c.Next = "sandboxes without root need them: allow them with the sysctls named above, or run those experiments as root"
	return c
}

// kernelFeatures tries the kernel features that probes need.
func (x *examiner) kernelFeatures(_ context.Context, d *Diagnosis) {
	d.add(x.perf(), x.ioUring())
}

// perf counts instructions of this thread in hardware (perf_event_open(2)).
func (x *examiner) perf() Check {
	c := Check{Group: groupKernel, Name: "instruction counter", State: OK}
	n, err := countInstructions()
	if err == nil && n > 0 {
		c.Found = fmt.Sprintf("counted %d instructions of a short loop", n)
		return c
	}
	c.State, c.Found = Missing, "no hardware counter (perf_event_open)"
	c.Next = "instruction counts need a machine with a PMU: bare metal, or a virtual machine that passes it through"
	switch {
	case err == nil:
		c.Cause = "a counter was opened and counted nothing"
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV):
		c.Cause = "this machine shows no performance monitoring unit: " + err.Error()
	default:
		c.Cause = err.Error()
		if v := x.read("proc/sys/kernel/perf_event_paranoid"); v != "" {
			c.Cause += "; kernel.perf_event_paranoid=" + v
		}
		c.Next = "sysctl -w kernel.perf_event_paranoid=1, or CAP_PERFMON; in a container also a seccomp profile that " +
			"allows perf_event_open(2)"
	}
	return c
}

func countInstructions() (uint64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS,
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	spin(100_000)
	var b [8]byte
	if _, err := unix.Read(fd, b[:]); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// ioUring sets up a ring of one entry and closes it (io_uring_setup(2)).
func (x *examiner) ioUring() Check {
	c := Check{Group: groupKernel, Name: "io_uring", State: OK, Found: "a ring was set up"}
	var params [120]byte
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if e == 0 {
		_ = unix.Close(int(fd))
		return c
	}
	c.State, c.Found, c.Cause = Missing, "no ring could be set up", e.Error()
	if v := x.read("proc/sys/kernel/io_uring_disabled"); v != "" {
		c.Cause += "; kernel.io_uring_disabled=" + v
	}
	c.Next = "nothing needs it yet; the default profiles of container runtimes refuse it"
	return c
}
