package workload

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// harmless is a system call with arguments that change nothing for any caller: the kernel rejects them as invalid, or
// they request nothing.
type harmless struct {
	number uintptr
	args   [4]uintptr
}

// none is an argument that is no valid descriptor, address or command.
const none = ^uintptr(0)

// Syscalls lists the system calls that Try("syscall", name) can make here, in alphabetical order. Without an enforcer
// most fail too (EFAULT, EINVAL, EBADF; EPERM without privileges), so a proof compares the errno with that of an
// unconfined worker.
func Syscalls() []string { return slices.Sorted(maps.Keys(syscalls())) }

// Harmless returns the number of one of Syscalls and the arguments with which Try makes it.
func Harmless(name string) (number uint32, args [6]uint64) {
	call := syscalls()[name]
	for i, a := range call.args {
		args[i] = uint64(a)
	}
	return uint32(call.number), args
}

func syscalls() map[string]harmless {
	all := map[string]harmless{
		"add_key":           {unix.SYS_ADD_KEY, [4]uintptr{0, 0, 0, 0}},
		"bpf":               {unix.SYS_BPF, [4]uintptr{none, 0, 0, 0}},
		"chroot":            {unix.SYS_CHROOT, [4]uintptr{0}},
		"clone3":            {unix.SYS_CLONE3, [4]uintptr{0, 0}},
		"delete_module":     {unix.SYS_DELETE_MODULE, [4]uintptr{0, 0}},
		"finit_module":      {unix.SYS_FINIT_MODULE, [4]uintptr{none, 0, 0}},
		"getpid":            {unix.SYS_GETPID, [4]uintptr{}},
		"getppid":           {unix.SYS_GETPPID, [4]uintptr{}},
		"init_module":       {unix.SYS_INIT_MODULE, [4]uintptr{0, 0, 0}},
		"io_uring_setup":    {unix.SYS_IO_URING_SETUP, [4]uintptr{0, 0}},
		"keyctl":            {unix.SYS_KEYCTL, [4]uintptr{none, 0, 0, 0}},
		"mknodat":           {unix.SYS_MKNODAT, [4]uintptr{none, 0, 0, 0}},
		"mount":             {unix.SYS_MOUNT, [4]uintptr{0, 0, 0, 0}},
		"open_by_handle_at": {unix.SYS_OPEN_BY_HANDLE_AT, [4]uintptr{none, 0, 0, 0}},
		"perf_event_open":   {unix.SYS_PERF_EVENT_OPEN, [4]uintptr{0, 0, none, none}},
		"personality":       {unix.SYS_PERSONALITY, [4]uintptr{0xffffffff}},
		"pivot_root":        {unix.SYS_PIVOT_ROOT, [4]uintptr{0, 0}},
		"process_vm_readv":  {unix.SYS_PROCESS_VM_READV, [4]uintptr{0, 0, 0, 0}},
		"ptrace":            {unix.SYS_PTRACE, [4]uintptr{0x7fff, 0, 0, 0}},
		"quotactl":          {unix.SYS_QUOTACTL, [4]uintptr{none, 0, 0, 0}},
		"reboot":            {unix.SYS_REBOOT, [4]uintptr{0, 0, 0, 0}},
		"request_key":       {unix.SYS_REQUEST_KEY, [4]uintptr{0, 0, 0, 0}},
		"setns":             {unix.SYS_SETNS, [4]uintptr{none, 0}},
		"swapoff":           {unix.SYS_SWAPOFF, [4]uintptr{0}},
		"swapon":            {unix.SYS_SWAPON, [4]uintptr{0, 0}},
		"umount2":           {unix.SYS_UMOUNT2, [4]uintptr{0, none}},
		"unshare":           {unix.SYS_UNSHARE, [4]uintptr{0}},
		"userfaultfd":       {unix.SYS_USERFAULTFD, [4]uintptr{none}},
	}
	maps.Copy(all, ownSyscalls())
	return all
}
