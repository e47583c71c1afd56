package sandbox

import (
	"fmt"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// dockerCapabilities are those of a container that was started without options. They determine which parts of the
// profile apply (github.com/moby/moby, oci/caps/defaults.go).
var dockerCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
}

// dockerDefault returns Docker's default profile for this architecture. It omits system calls that the architecture
// lacks. Entries with conditions or refusals come first, since libseccomp gives them precedence; all calls that are
// simply allowed form one group at the end.
func dockerDefault() (*sec.Policy, error) {
	profile, err := moby.GetDefaultProfile(&specs.Spec{Process: &specs.Process{
		Capabilities: &specs.LinuxCapabilities{Bounding: dockerCapabilities},
	}})
	if err != nil {
		return nil, fmt.Errorf("read Docker's default profile: %w", err)
	}
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("seccomp on this architecture: %w", err)
	}
	t := translation{known: info.SyscallNames, seen: map[string]bool{}}
	if t.policy.DefaultAction, err = action(profile.DefaultAction, profile.DefaultErrnoRet); err != nil {
		return nil, err
	}
	t.allowed.Action = sec.ActionAllow
	for _, entry := range profile.Syscalls {
		if err := t.entry(entry); err != nil {
			return nil, fmt.Errorf("translate Docker's default profile: %w", err)
		}
	}
	t.policy.Syscalls = append(t.policy.Syscalls, t.allowed)
	return &t.policy, nil
}

// translation is the state of translating a profile into a policy.
type translation struct {
	policy  sec.Policy
	allowed sec.SyscallGroup // without conditions
	known   map[string]int
	seen    map[string]bool // in allowed
}

func (t *translation) entry(e specs.LinuxSyscall) error {
	act, err := action(e.Action, e.ErrnoRet)
	if err != nil {
		return err
	}
	when, err := conditions(e.Args)
	if err != nil {
		return err
	}
	group := sec.SyscallGroup{Action: act}
	for _, name := range e.Names {
		_, native := t.known[name]
		switch {
		case !native:
		case len(when) > 0:
			group.NamesWithCondtions = append(group.NamesWithCondtions, sec.NameWithConditions{Name: name, Conditions: when})
		case act != sec.ActionAllow:
			group.Names = append(group.Names, name)
		case !t.seen[name]:
			t.seen[name] = true
			t.allowed.Names = append(t.allowed.Names, name)
		}
	}
	if len(group.Names)+len(group.NamesWithCondtions) > 0 {
		t.policy.Syscalls = append(t.policy.Syscalls, group)
	}
	return nil
}

// action translates the action for a matching call. The errno of a refusal is in the action's lower 16 bits
// (seccomp(2)).
func action(a specs.LinuxSeccompAction, ret *uint) (sec.Action, error) {
	switch {
	case a == specs.ActAllow:
		return sec.ActionAllow, nil
	case a != specs.ActErrno:
		return 0, fmt.Errorf("action %q has no translation", a)
	case ret == nil || *ret == uint(unix.EPERM):
		return sec.ActionErrno, nil // EPERM
	}
	return sec.ActionErrno | sec.Action(*ret&0xffff), nil
}

// conditions translates the conditions of an entry, which must all hold.
func conditions(args []specs.LinuxSeccompArg) (sec.ArgumentConditions, error) {
	operations := map[specs.LinuxSeccompOperator]sec.Operation{
		specs.OpEqualTo: sec.Equal, specs.OpNotEqual: sec.NotEqual, specs.OpLessThan: sec.LessThan,
		specs.OpLessEqual:   sec.LessOrEqual,
		specs.OpGreaterThan: sec.GreaterThan, specs.OpGreaterEqual: sec.GreaterOrEqual,
	}
	var out sec.ArgumentConditions
	for _, a := range args {
		op, ok := operations[a.Op]
		if a.Op == specs.OpMaskedEqual && a.ValueTwo == 0 { // (argument & mask) == 0
			op, ok = sec.BitsNotSet, true
		}
		if !ok {
			return nil, fmt.Errorf("condition %s %d %d has no translation", a.Op, a.Value, a.ValueTwo)
		}
		out = append(out, sec.Condition{Argument: uint32(a.Index), Operation: op, Value: a.Value})
	}
	return out, nil
}
