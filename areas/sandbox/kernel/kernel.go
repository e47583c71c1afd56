// Package kernel checks by trying which enforcers the kernel of this host has.
package kernel

import (
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/files"
)

// Checks tries the enforcers, and leaves nothing changed.
func Checks() []area.Check {
	h := host{files.Host()}
	return []area.Check{seccomp(), landlock(), h.bpf(), h.bpfLSM()}
}

// A host is where /proc and /sys are read.
type host struct{ root fs.FS }

// read returns a file's text without surrounding blanks; "" if it cannot be read.
func (h host) read(name string) string {
	b, err := fs.ReadFile(h.root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func seccomp() area.Check {
	c := area.Check{Group: area.KernelFeatures, Name: "seccomp", State: area.CheckOK}
	found, err := onOwnThread(trySeccomp)
	if c.Found = found; err != nil {
		c.State, c.Found, c.Cause = area.CheckMissing, "no filter could be loaded", err.Error()
		c.Next = "experiments with seccomp need a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp(2)"
	}
	return c
}

func landlock() area.Check {
	c := area.Check{Group: area.KernelFeatures, Name: "Landlock", State: area.CheckOK}
	const versionFlag = 1
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	c.Next = "experiments with Landlock need Linux 5.13 with CONFIG_SECURITY_LANDLOCK and landlock in the boot " +
		"parameter lsm="
	switch {
	case e == unix.EOPNOTSUPP:
		c.State, c.Found, c.Cause = area.CheckMissing, "in the kernel, and off", "the boot parameter lsm= leaves it out"
	case e != 0:
		c.State, c.Found, c.Cause = area.CheckMissing, "not there", e.Error()
	default:
		found, err := onOwnThread(tryLandlock)
		c.Found, c.Values = fmt.Sprintf("ABI %d: %s", abi, found), map[string]float64{"abi": float64(abi)}
		if err == nil {
			c.Next = ""
			return c
		}
		c.State, c.Found, c.Cause = area.CheckMissing, fmt.Sprintf("ABI %d, and rules are not enforced", abi), err.Error()
	}
	return c
}
