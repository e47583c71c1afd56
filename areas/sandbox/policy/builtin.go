package policy

import "slices"

// A Rule is a named policy.
type Rule struct {
	Name   string
	Help   string
	Policy Policy
}

var readWrite = []Access{Read, Write}

// RuntimeDefault is what containerd's default AppArmor profile refuses (github.com/containerd/containerd,
// contrib/apparmor/template.go), with one wildcard in a path.
func RuntimeDefault() Policy {
	return Policy{
		Files: []File{
			{"/proc/sysrq-trigger", readWrite},
			{"/proc/**/mem", readWrite},
			{"/proc/kmem", readWrite},
			{"/proc/kcore", readWrite},
			{"/sys/firmware/**", readWrite},
			{"/sys/devices/virtual/powercap/**", readWrite},
			{"/sys/kernel/security/**", readWrite},
		},
		Mounts: []Mount{{}},
		Ptrace: true,
	}
}

// EnhanceProtect returns the ten rules of vArmor's published test, which it adds to RuntimeDefault
// (github.com/bytedance/vArmor, internal/profile).
func EnhanceProtect() []Rule {
	read, write := []Access{Read}, []Access{Write}
	files := func(access []Access, paths ...Path) (p Policy) {
		for _, path := range paths {
			p.Files = append(p.Files, File{path, access})
		}
		return p
	}
	return []Rule{
		{"disable-cap-privileged", "the capabilities that only a privileged container has", Policy{
			Capabilities: privileged(),
		}},
		{"disallow-umount", "unmounting", Policy{Umount: true}},
		{"disallow-access-procfs-root", "other processes' files by way of /proc/PID/root, which takes the right to trace " +
			"them", Policy{Ptrace: true}},
		{"mitigate-disk-device-number-leak", "the numbers of disks", files(read, "/proc/partitions", "/proc/**/mountinfo")},
		{"mitigate-sa-leak", "the service account's token", files(read, "/run/secrets/kubernetes.io/serviceaccount/**",
			"/var/run/secrets/kubernetes.io/serviceaccount/**")},
		{"mitigate-overlayfs-leak", "where the container's files lie on the host", files(read, "/proc/**/mounts",
			"/proc/**/mountinfo")},
		{"mitigate-host-ip-leak", "the addresses of neighbours", files(read, "/proc/**/net/arp")},
		{"disallow-metadata-service", "the cloud's metadata service", Policy{
			Connects: []Address{"169.254.169.254", "100.96.0.96"},
		}},
		{"cgroups-lxcfs-escape-mitigation", "control files of cgroups that lead out of a container", files(write,
			"/**/release_agent", "/**/devices.allow", "/**/devices/cgroup.procs", "/**/devices/tasks",
			"/sys/fs/cgroup/devices/**/cgroup.procs", "/sys/fs/cgroup/devices/**/tasks")},
		{"runc-override-mitigation", "overwriting the container runtime", files(write, "/**/runc")},
	}
}

// privileged lists the capabilities that Docker does not give to a container by default
// (github.com/moby/moby, oci/caps/defaults.go).
func privileged() []string {
	usual := []string{
		"chown", "dac_override", "fsetid", "fowner", "mknod", "net_raw", "setgid", "setuid", "setfcap", "setpcap",
		"net_bind_service", "sys_chroot", "kill", "audit_write",
	}
	return slices.DeleteFunc(slices.Clone(capabilities), func(c string) bool { return slices.Contains(usual, c) })
}
