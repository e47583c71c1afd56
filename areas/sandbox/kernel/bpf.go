package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/area"
)

// bpf loads the smallest socket filter, "return 0", and closes it again (bpf(2)).
func (h host) bpf() area.Check {
	c := area.Check{
		Group: area.KernelFeatures, Name: "BPF", State: area.CheckOK, Found: "a program was loaded (a socket filter)",
	}
	err := loadBPF(unix.BPF_PROG_TYPE_SOCKET_FILTER, 0, 0)
	if err == nil {
		return c
	}
	c.State, c.Found, c.Cause = area.CheckMissing, "no program could be loaded", err.Error()
	if v := h.read("proc/sys/kernel/unprivileged_bpf_disabled"); errors.Is(err, unix.EPERM) && v != "" {
		c.Cause += "; kernel.unprivileged_bpf_disabled=" + v
	}
	c.Next = "experiments with BPF need root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and a container that allows " +
		"bpf(2)"
	return c
}

// lsmHook is the hook that the trial is loaded for. It is never attached.
const lsmHook = "bpf_lsm_file_open"

// bpfLSM loads a program for an LSM hook, and checks whether such programs would be called. A kernel may have every
// prerequisite and still refuse to load them.
func (h host) bpfLSM() area.Check {
	c := area.Check{Group: area.KernelFeatures, Name: "BPF LSM", State: area.CheckMissing}
	raw, err := fs.ReadFile(h.root, "sys/kernel/btf/vmlinux")
	if err != nil {
		c.Found, c.Cause = "no kernel types (BTF)", err.Error()
		c.Next = "experiments with BPF enforcers need a kernel with CONFIG_DEBUG_INFO_BTF"
		return c
	}
	hook, ok := btfFunction(raw, lsmHook)
	if !ok {
		c.Found, c.Cause = "the kernel has no such hooks", "its types have no "+lsmHook
		c.Next = "experiments with BPF enforcers need a kernel with CONFIG_BPF_LSM"
		return c
	}
	if err := loadBPF(unix.BPF_PROG_TYPE_LSM, unix.BPF_LSM_MAC, hook); err != nil {
		c.Found, c.Cause = "no LSM program could be loaded", err.Error()
		if active, known := h.modules(); known {
			c.Cause += "; active modules are " + strings.Join(active, ", ")
		}
		c.Next = "run as root, or with CAP_BPF, CAP_PERFMON and CAP_MAC_ADMIN"
		if unix.Geteuid() == 0 {
			c.Next = "root is refused: the container's profile, a lockdown of the kernel or the host above forbids it; use " +
				"another host, or a virtual machine with a stock kernel"
		}
		return c
	}
	active, known := h.modules()
	switch {
	case !known:
		c.State, c.Found = area.CheckLimited, "a program was loaded, not attached"
		c.Cause = "whether the kernel calls such programs is not known: it lists no active modules"
		c.Next = "mount -t securityfs none /sys/kernel/security, and see whether lsm there has bpf"
	case !slices.Contains(active, "bpf"):
		c.Found = "a program was loaded, and would not be called: active modules are " + strings.Join(active, ", ")
		c.Cause, c.Next = "bpf is not among the active modules", "boot with bpf in the parameter lsm="
	default:
		c.State, c.Found = area.CheckOK, "a program was loaded, not attached; active modules are "+strings.Join(active, ", ")
	}
	return c
}

// loadBPF loads "return 0" and closes it. attach is the kind of attachment and function the kernel's function; 0: none.
func loadBPF(kind, attach, function uint32) error {
	insns := []uint64{0xb7, 0x95} // r0 = 0; exit
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		insns = []uint64{0xb7 << 56, 0x95 << 56}
	}
	license := []byte("GPL\x00")
	// union bpf_attr for BPF_PROG_LOAD, linux/bpf.h.
	attr := struct {
		kind, count    uint32
		insns, license uint64
		_              [11]uint32
		attach         uint32
		_              [9]uint32
		function       uint32
		_              [2]uint32
	}{kind: kind, count: uint32(len(insns)), attach: attach, function: function}
	attr.insns, attr.license = uint64(uintptr(unsafe.Pointer(&insns[0]))), uint64(uintptr(unsafe.Pointer(&license[0])))
	fd, _, e := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(insns)
	runtime.KeepAlive(license)
	if e != 0 {
		return e
	}
	return unix.Close(int(fd))
}

// moduleNames are the security modules, by their numbers from 100 (linux/lsm.h).
var moduleNames = []string{
	"capability", "selinux", "smack", "tomoyo", "apparmor", "yama", "loadpin", "safesetid", "lockdown", "bpf", "landlock",
	"ima", "evm", "ipe",
}

// modules returns the active security modules: by lsm_list_modules(2), which needs Linux 6.8, or by securityfs.
func (h host) modules() (names []string, known bool) {
	if s := h.read("sys/kernel/security/lsm"); s != "" {
		return strings.Split(s, ","), true
	}
	var ids [64]uint64
	size := uint32(unsafe.Sizeof(ids))
	n, _, e := unix.Syscall(unix.SYS_LSM_LIST_MODULES, uintptr(unsafe.Pointer(&ids)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 || int(n) > len(ids) {
		return nil, false
	}
	for _, id := range ids[:n] {
		name := "module " + strconv.FormatUint(id, 10)
		if id >= 100 && id-100 < uint64(len(moduleNames)) {
			name = moduleNames[id-100]
		}
		names = append(names, name)
	}
	return names, true
}

// The parts of BTF that are needed to walk over it (btf.rst): the header, and how much follows a type of each kind.
const (
	btfMagic    = 0xeb9f
	btfHeader   = 24
	btfType     = 12
	btfKindFunc = 12
)

// btfTail returns how many bytes follow a type of this kind with vlen members; ok is false for an unknown kind.
func btfTail(kind, vlen int) (n int, ok bool) {
	switch kind {
	// pointer, forward, typedef, volatile, const, restrict, function, float, type tag
	case 2, 7, 8, 9, 10, 11, btfKindFunc, 16, 18:
		return 0, true
	case 1, 14, 17: // integer, variable, declaration tag
		return 4, true
	case 3: // array
		return 12, true
	case 4, 5, 15, 19: // struct, union, data section, enum of 64 bits
		return 12 * vlen, true
	case 6, 13: // enum, function prototype
		return 8 * vlen, true
	}
	return 0, false
}

// btfFunction finds the number of a function's type in the kernel's BTF.
func btfFunction(raw []byte, name string) (id uint32, ok bool) {
	order := binary.NativeEndian
	if len(raw) < btfHeader || order.Uint16(raw) != btfMagic {
		return 0, false
	}
	at := func(off int) int { return int(order.Uint32(raw[off:])) }
	head := at(4)
	types, strs := section(raw, head+at(8), at(12)), section(raw, head+at(16), at(20))
	want := append([]byte(name), 0)
	for id := uint32(1); len(types) >= btfType; id++ {
		off, info := order.Uint32(types), order.Uint32(types[4:])
		kind, vlen := int(info>>24&0x1f), int(info&0xffff)
		if kind == btfKindFunc && int64(off) < int64(len(strs)) && bytes.HasPrefix(strs[off:], want) {
			return id, true
		}
		n, known := btfTail(kind, vlen)
		if !known || btfType+n > len(types) {
			return 0, false
		}
		types = types[btfType+n:]
	}
	return 0, false
}

// section returns a part of raw; it is empty unless all of it lies within raw.
func section(raw []byte, off, size int) []byte {
	if off < 0 || size < 0 || off > len(raw) || size > len(raw)-off {
		return nil
	}
	return raw[off : off+size]
}
