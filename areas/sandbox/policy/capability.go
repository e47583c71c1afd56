package policy

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/spelling"
)

// capabilities lists the names of capabilities in lower case without CAP_, by number (linux/capability.h, 6.12).
var capabilities = []string{
	"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
	"linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner", "sys_module",
	"sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time",
	"sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap", "mac_override", "mac_admin", "syslog",
	"wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf", "checkpoint_restore",
}

// CapabilityNames returns the names of all capabilities, by number.
func CapabilityNames() []string { return slices.Clone(capabilities) }

// CapabilityNumber returns the number of a capability, whose name is in lower case without CAP_.
func CapabilityNumber(name string) (int, error) {
	if i := slices.Index(capabilities, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("there is no capability %q%s", name,
		spelling.DidYouMean(strings.TrimPrefix(strings.ToLower(name), "cap_"), capabilities))
}

// CapabilityName returns the name of a capability.
func CapabilityName(number int) string {
	if number < 0 || number >= len(capabilities) {
		return fmt.Sprint(number)
	}
	return capabilities[number]
}
