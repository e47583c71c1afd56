package sandbox

import (
	"fmt"

	sec "github.com/elastic/go-seccomp-bpf"
	moby "github.com/moby/profiles/seccomp"
)

// dockerCapabilities are those of a container that was started without options. They determine which parts of a
// profile apply (github.com/moby/moby, oci/caps/defaults.go).
var dockerCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
}

// dockerDefault returns Docker's default profile for this architecture.
func dockerDefault() (*sec.Policy, error) {
	profile, err := moby.GetDefaultProfile(containerSpec())
	if err != nil {
		return nil, fmt.Errorf("read Docker's default profile: %w", err)
	}
	policy, err := translate(profile)
	if err != nil {
		return nil, fmt.Errorf("translate Docker's default profile: %w", err)
	}
	return policy, nil
}
