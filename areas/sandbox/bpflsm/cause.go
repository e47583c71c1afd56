package bpflsm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/files"
)

// Where the kernel says what it has.
const (
	lsmFile = "/sys/kernel/security/lsm"
	btfFile = "/sys/kernel/btf/vmlinux"
)

// oldest is the first version of Linux that has all that the programs use.
const oldest = "5.13"

// requireLSM fails where the kernel's list of LSMs lacks bpf: programs would load, attach and never run. Where the list
// cannot be read, only the proof of a refusal tells.
func requireLSM() error {
	list, err := files.Kernel(lsmFile)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
	case err != nil:
		return fmt.Errorf("read the kernel's list of LSMs: %w", err)
	default:
		if err := checkList(string(list)); err != nil {
			return err
		}
	}
	if _, err := os.Stat(btfFile); errors.Is(err, fs.ErrNotExist) {
		return area.WithHint(fmt.Errorf("the kernel does not describe its types: %s is missing", btfFile),
			"use a kernel built with CONFIG_DEBUG_INFO_BTF, as those of the distributions are, or leave bpf out")
	}
	return nil
}

func checkList(list string) error {
	active := strings.Split(strings.TrimSpace(list), ",")
	if slices.Contains(active, "bpf") {
		return nil
	}
	active = append(active, "bpf")
	return area.WithHint(fmt.Errorf("the BPF LSM is not active: %s lists %s", lsmFile, strings.TrimSpace(list)),
		fmt.Sprintf("boot with lsm=%s, or leave bpf out", strings.Join(active, ",")))
}

func noMemlock(err error) error {
	if os.Geteuid() != 0 {
		return noPrograms(unix.EPERM)
	}
	return area.WithHint(fmt.Errorf("lift the limit of locked memory (RLIMIT_MEMLOCK) for BPF maps: %w", err),
		"run tare as root, or with \"ulimit -l unlimited\"")
}

// noPrograms explains why the kernel does not load the programs.
func noPrograms(err error) error {
	var rejected *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM) && os.Geteuid() != 0:
		return area.WithHint(fmt.Errorf("load BPF programs for the LSM without root: %w", unix.EPERM), "run tare as root")
	case errors.Is(err, unix.EPERM): // the library's words would add advice on RLIMIT_MEMLOCK, which is lifted
		return area.WithHint(fmt.Errorf("the kernel does not let root load BPF programs for the LSM: %w", unix.EPERM),
			"a container, kernel lockdown or the makers of the kernel may forbid it: run tare outside of the container or "+
				"under another kernel, or leave bpf out")
	case errors.Is(err, unix.ENOSYS):
		return area.WithHint(fmt.Errorf("the kernel has no bpf(2): %w", err),
			"use a kernel built with CONFIG_BPF_SYSCALL and CONFIG_BPF_LSM, or leave bpf out")
	case errors.Is(err, unix.ENOMEM):
		return area.WithHint(fmt.Errorf("the kernel has no memory for BPF programs and maps: %w", err),
			"free memory, raise the control group's memory.max, or leave bpf out")
	case errors.Is(err, ebpf.ErrNotSupported), errors.As(err, &rejected):
		return area.WithHint(fmt.Errorf("the kernel cannot run our BPF programs: %w", err),
			"use Linux "+oldest+" or later built with CONFIG_BPF_LSM, or leave bpf out")
	}
	return area.WithHint(fmt.Errorf("load BPF programs for the LSM: %w", err),
		"they need Linux "+oldest+" or later built with CONFIG_BPF_LSM; else leave bpf out")
}

// noAttachment explains why the kernel does not attach a program that it has loaded.
func noAttachment(hook Hook, err error) error {
	hint := "they need Linux " + oldest + " or later built with CONFIG_BPF_LSM; else leave bpf out"
	switch {
	case errors.Is(err, unix.EPERM):
		hint = "run tare as root and outside of a container, or leave bpf out"
	case errors.Is(err, unix.E2BIG):
		hint = "other software has attached as many programs as a hook takes: stop it, or leave bpf out"
	case errors.Is(err, unix.EBUSY), errors.Is(err, ebpf.ErrNotSupported):
		hint = "this kernel or processor has no BPF trampolines (arm64: since Linux 6.4), or live patching uses the hook; " +
			"leave bpf out"
	}
	return area.WithHint(fmt.Errorf("attach a BPF program to %s: %w", hook, err), hint)
}
