package workload

import "golang.org/x/sys/unix"

// ownSyscalls returns the system calls that only this architecture has.
func ownSyscalls() map[string]harmless {
	return map[string]harmless{
		"_sysctl":       {unix.SYS__SYSCTL, [4]uintptr{}},
		"ioperm":        {unix.SYS_IOPERM, [4]uintptr{none, 0, 0}},
		"iopl":          {unix.SYS_IOPL, [4]uintptr{none}},
		"kexec_load":    {unix.SYS_KEXEC_LOAD, [4]uintptr{0, none, 0, none}},
		"mknod":         {unix.SYS_MKNOD, [4]uintptr{}},
		"modify_ldt":    {unix.SYS_MODIFY_LDT, [4]uintptr{none, 0, 0}},
		"uselib":        {unix.SYS_USELIB, [4]uintptr{}},
		"ustat":         {unix.SYS_USTAT, [4]uintptr{}},
		"sysfs":         {unix.SYS_SYSFS, [4]uintptr{none}},
		"create_module": {unix.SYS_CREATE_MODULE, [4]uintptr{}},
	}
}
