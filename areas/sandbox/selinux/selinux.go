// Package selinux confines processes by domains of a policy of its own. It loads that policy only into a kernel that
// has none, since a policy cannot be unloaded: so only in a disposable machine.
package selinux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/compiler"
	"tare/internal/files"
)

// selinuxFS is where the kernel offers SELinux.
const selinuxFS = "/sys/fs/selinux"

// secilc compiles CIL.
var secilc = compiler.Compiler{Program: "secilc", Package: "secilc"}

// Compile translates the text of a policy.
func Compile(ctx context.Context, text string) (binary []byte, err error) {
	binary, _, err = secilc.Run(ctx, "the SELinux policy", text, "--mls", "false", "--policyvers", policyVersion(),
		"--filecontext", os.DevNull, "--output", compiler.ResultFile, compiler.SourceFile)
	if err == nil && len(binary) == 0 {
		err = errors.New("compile the SELinux policy: secilc wrote nothing")
	}
	return binary, err
}

// policyVersion returns the newest version of the binary format that the kernel and secilc know.
func policyVersion() string {
	const newest = "33" // of secilc 3.4 and of Linux 6.12; since Linux 5.5
	text, err := files.Kernel(selinuxFS + "/policyvers")
	if err != nil || len(text) == 0 || string(text) > newest {
		return newest
	}
	return string(text)
}

// Probe tells whether a policy of tare's can be loaded here, or is loaded. It cannot try it, since that cannot be
// undone. The error holds the cause and a next step.
func Probe() error {
	const leave = ", or leave selinux out"
	var at unix.Statfs_t
	err := unix.Statfs(selinuxFS, &at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return area.WithHint(errors.New("the kernel has no SELinux, or it is switched off ("+selinuxFS+" does not exist)"),
			"boot a disposable machine with selinux in lsm=…, and without a policy"+leave)
	case err != nil:
		return fmt.Errorf("look for SELinux: %w", err)
	case at.Type != unix.SELINUX_MAGIC:
		return area.WithHint(errors.New("selinuxfs is not mounted on "+selinuxFS),
			"mount it: mount -t selinuxfs selinuxfs "+selinuxFS+"; in a container, run tare on the host"+leave)
	}
	isOurs, loaded, err := state()
	if err != nil {
		return err
	}
	if loaded && !isOurs {
		return area.WithHint(errors.New("an SELinux policy is loaded: tare does not replace it, since a policy cannot be "+
			"unloaded, and labels files of the host"),
			"use a disposable machine that boots with selinux in lsm=… and has no policy"+leave)
	}
	if _, err := secilc.Find(); err != nil {
		return err
	}
	return unix.Access(selinuxFS+"/load", unix.W_OK)
}

// state reports whether a policy is loaded, and whether it is one of tare's.
func state() (isOurs, loaded bool, err error) {
	classes, err := os.ReadDir(selinuxFS + "/class") // empty until there is a policy
	if err != nil {
		return false, false, fmt.Errorf("look for an SELinux policy: %w", err)
	}
	own, err := Current(os.Getpid())
	if err != nil {
		return false, false, err
	}
	return strings.HasPrefix(own, user+":"), len(classes) > 0, nil
}

// Load loads a compiled policy and enforces it for the whole machine, until that is switched off. The caller must know
// that the machine is disposable.
func Load(binary []byte, disposable bool) error {
	if err := Probe(); err != nil {
		return err
	}
	if !disposable {
		return area.WithHint(errors.New("load an SELinux policy: this cannot be undone, and confines the whole machine"),
			"say that this machine is disposable, such as a virtual machine for this run, or leave selinux out")
	}
	if err := files.SetKernel(selinuxFS+"/load", string(binary)); err != nil {
		return fmt.Errorf("load the SELinux policy: %w", err)
	}
	if err := files.SetKernel(selinuxFS+"/enforce", "1"); err != nil {
		return fmt.Errorf("enforce the SELinux policy: %w", err)
	}
	return nil
}

// Context returns the security context of the processes of a domain.
func (d Domain) Context() string { return user + ":" + role + ":" + d.typeName() }

// Enter makes a domain confine the calling thread from its next execve on. The thread must be locked and outside of
// domains; it may have no_new_privs, since the policy gives the permission nnp_transition.
func Enter(d Domain) error {
	f, err := os.OpenFile("/proc/thread-self/attr/exec", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("confine this thread by SELinux's %s: %w", d.Context(), err)
	}
	defer f.Close() //nolint:errcheck // the kernel acts on the write
	if _, err := f.WriteString(d.Context()); err != nil {
		if errors.Is(err, unix.EINVAL) {
			err = errors.New("the policy that is loaded has no such domain: a policy with it must be loaded first")
		}
		return fmt.Errorf("confine this thread by SELinux's %s: %w", d.Context(), err)
	}
	return nil
}

// Current returns the security context of a process.
func Current(pid int) (string, error) {
	text, err := files.Kernel(fmt.Sprintf("/proc/%d/attr/current", pid))
	if err != nil {
		return "", fmt.Errorf("read the SELinux context of process %d: %w", pid, err)
	}
	return strings.TrimRight(string(text), "\x00\n"), nil
}

// Enforces reports whether the kernel enforces the policy.
func Enforces() (bool, error) {
	text, err := files.Kernel(selinuxFS + "/enforce")
	if err != nil {
		return false, fmt.Errorf("ask whether SELinux enforces: %w", err)
	}
	return string(text) == "1", nil
}
