package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/kit"
)

// mostProfile bounds the size of a profile. Docker's default profile has 14 kB.
const mostProfile = 1 << 20

// mostErrno is the largest errno that the kernel returns from a filter.
const mostErrno = 4095

// A Profile is a seccomp profile of the user's, as it was when the experiment was read.
type Profile struct {
	Name string          `json:"name"` // the file's, without its folder
	Text json.RawMessage `json:"text"`
}

// readProfile reads a profile and checks that it can be compiled.
func readProfile(path string) (*Profile, error) {
	text, err := kit.ReadText(path, mostProfile)
	if err != nil {
		return nil, err
	}
	p := &Profile{Name: filepath.Base(path), Text: text}
	policy, err := p.policy()
	if err != nil {
		return nil, err
	}
	if _, err := compile(policy); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return p, nil
}

// sum returns the SHA-256 of the profile in hexadecimal digits.
func (p *Profile) sum() string {
	sum := sha256.Sum256(p.Text)
	return hex.EncodeToString(sum[:])
}

// Contents returns the SHA-256 of the profiles and rules of the treatments, and of the programs and scripts of the
// commands, by their paths.
func (Area) Contents(s area.Spec, treatments []design.Treatment) (map[string]string, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	const content = "content of "
	for _, c := range spec.Commands {
		for _, path := range c.code() {
			if out[content+path], err = files.Sum(path); err != nil {
				return nil, fmt.Errorf("tell command %q from what it may be later: %w", c.Name, err)
			}
		}
	}
	for _, t := range treatments {
		p, err := spec.plan(t)
		if err != nil {
			return nil, fmt.Errorf("treatment %q: %w", t.ID, err)
		}
		if p.policy.Profile != nil {
			out[content+t.Levels[factorProfile]] = p.policy.Profile.sum()
		}
		if p.policy.AppFile != nil {
			out[content+p.policy.AppFile.path] = p.policy.AppFile.sum()
		}
		if p.policy.Own != nil {
			out[content+p.policy.Own.Name] = p.policy.Own.Sum
		}
	}
	if len(out) == 0 {
		return nil, nil //nolint:nilnil // most experiments name no file
	}
	return out, nil
}

// policy translates the profile for this architecture. Conditions on capabilities hold as for a container that Docker
// starts without options.
func (p *Profile) policy() (*sec.Policy, error) {
	if err := checkFields(p.Text); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	profile, err := moby.LoadProfile(string(p.Text), containerSpec())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	if profile == nil {
		return nil, fmt.Errorf("%s: no seccomp profile: defaultAction and syscalls are missing", p.Name)
	}
	policy, err := translate(profile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return policy, nil
}

// checkFields returns an error for a field that no profile has: a misspelt one would be left out in silence, and the
// profile would be another.
func checkFields(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var profile moby.Seccomp
	if err := d.Decode(&profile); err != nil {
		return fmt.Errorf("not a seccomp profile in the format of Docker or OCI: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("not a seccomp profile: something follows its end")
	}
	if profile.ListenerPath != "" {
		return errors.New("listenerPath: tare has no agent that answers notifications")
	}
	return nil
}

// containerSpec describes a container that Docker starts without options.
func containerSpec() *specs.Spec {
	return &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: dockerCapabilities}}}
}

// translate returns the profile for this architecture, with the precedence that libseccomp gives to its entries: an
// entry without conditions overrides those with conditions, and the first of several without conditions holds. It
// omits system calls that the architecture lacks. Entries with conditions or refusals come first; all calls that are
// simply allowed form one group at the end.
func translate(profile *specs.LinuxSeccomp) (*sec.Policy, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("seccomp on this architecture: %w", err)
	}
	t := translation{known: info.SyscallNames, always: unconditional(profile.Syscalls), seen: map[string]bool{}}
	if t.policy.DefaultAction, err = action(profile.DefaultAction, profile.DefaultErrnoRet); err != nil {
		return nil, fmt.Errorf("defaultAction: %w", err)
	}
	t.allowed.Action = sec.ActionAllow
	for i, entry := range profile.Syscalls {
		if err := t.entry(i, entry); err != nil {
			return nil, fmt.Errorf("syscalls[%d]: %w", i, err)
		}
	}
	t.policy.Syscalls = append(t.policy.Syscalls, t.allowed)
	return &t.policy, nil
}

// unconditional returns the number of the first entry without conditions for each system call that has one.
func unconditional(entries []specs.LinuxSyscall) map[string]int {
	first := map[string]int{}
	for i, e := range entries {
		for _, name := range e.Names {
			if _, ok := first[name]; !ok && len(e.Args) == 0 {
				first[name] = i
			}
		}
	}
	return first
}

// translation is the state of translating a profile into a policy.
type translation struct {
	policy  sec.Policy
	allowed sec.SyscallGroup // without conditions
	known   map[string]int
	always  map[string]int
	seen    map[string]bool // in allowed
	least   int             // instructions that conditions need at least
}

// errTooLong refuses a profile whose filter no kernel loads.
var errTooLong = fmt.Errorf("its filter would have more than %d instructions, which the kernel does not load",
	unix.BPF_MAXINSNS)

func (t *translation) entry(number int, e specs.LinuxSyscall) error {
	act, err := action(e.Action, e.ErrnoRet)
	if err != nil {
		return err
	}
	when, err := alternatives(e.Args)
	if err != nil {
		return err
	}
	if act == t.policy.DefaultAction {
		return nil // a container runtime leaves such entries out
	}
	if len(e.Args) > 0 && len(when) == 0 {
		return nil
	}
	least := 0 // for each name: the quickest condition takes two loads and two jumps
	for _, conditions := range when {
		least += 4 * len(conditions)
	}
	group, named := sec.SyscallGroup{Action: act}, map[string]bool{}
	for _, name := range e.Names {
		_, native := t.known[name]
		first, always := t.always[name]
		if !native || always && first != number || named[name] {
			continue
		}
		named[name] = true
		switch {
		case len(when) > 0:
			if t.least += least; t.least > unix.BPF_MAXINSNS {
				return errTooLong
			}
			for _, conditions := range when {
				group.NamesWithCondtions = append(group.NamesWithCondtions,
					sec.NameWithConditions{Name: name, Conditions: conditions})
			}
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
	switch a {
	case specs.ActAllow:
		return sec.ActionAllow, nil
	case specs.ActLog:
		return sec.ActionLog, nil
	case specs.ActKill, specs.ActKillThread:
		return sec.ActionKillThread, nil
	case specs.ActKillProcess:
		return sec.ActionKillProcess, nil
	case specs.ActTrap:
		return sec.ActionTrap, nil
	case specs.ActErrno:
		switch {
		case ret == nil || *ret == uint(unix.EPERM):
			return sec.ActionErrno, nil // EPERM
		case *ret == 0 || *ret > mostErrno:
			return 0, fmt.Errorf("errnoRet: %d is no errno: want 1 to %d", *ret, mostErrno)
		}
		return sec.ActionErrno | sec.Action(*ret), nil
	case specs.ActTrace, specs.ActNotify:
		return 0, fmt.Errorf("action %q has no translation: it needs a tracer or an agent", a)
	}
	return 0, fmt.Errorf("there is no action %q", a)
}

// alternatives translates the conditions of an entry: it holds where all conditions of one alternative hold. All
// conditions of an entry must hold, but where one argument is tested more than once any of them suffices: so does runc
// read them. An entry that can never hold has no alternatives.
func alternatives(args []specs.LinuxSeccompArg) (out []sec.ArgumentConditions, err error) {
	var all sec.ArgumentConditions
	tested, twice, never := map[uint]bool{}, false, false
	for _, a := range args {
		when, possible, err := conditions(a)
		if err != nil {
			return nil, err
		}
		if possible {
			out = append(out, when)
		}
		all = append(all, when...)
		never = never || !possible
		twice = twice || tested[a.Index]
		tested[a.Index] = true
	}
	if len(args) == 0 || twice {
		return out, nil
	}
	if never {
		return nil, nil
	}
	return []sec.ArgumentConditions{all}, nil
}

// conditions translates a condition on one argument into conditions that must all hold.
func conditions(a specs.LinuxSeccompArg) (all sec.ArgumentConditions, possible bool, err error) {
	operations := map[specs.LinuxSeccompOperator]sec.Operation{
		specs.OpEqualTo: sec.Equal, specs.OpNotEqual: sec.NotEqual, specs.OpLessThan: sec.LessThan,
		specs.OpLessEqual:   sec.LessOrEqual,
		specs.OpGreaterThan: sec.GreaterThan, specs.OpGreaterEqual: sec.GreaterOrEqual,
	}
	if op, ok := operations[a.Op]; ok {
		return sec.ArgumentConditions{{Argument: uint32(a.Index), Operation: op, Value: a.Value}}, true, nil
	}
	if a.Op != specs.OpMaskedEqual {
		return nil, false, fmt.Errorf("args: there is no operator %q", a.Op)
	}
	mask, want := a.Value, a.ValueTwo
	if want&^mask != 0 {
		return nil, false, nil // no argument has a bit that the mask removes
	}
	all = sec.ArgumentConditions{{Argument: uint32(a.Index), Operation: sec.BitsNotSet, Value: mask &^ want}}
	for rest := want; rest != 0; rest &= rest - 1 {
		all = append(all, sec.Condition{Argument: uint32(a.Index), Operation: sec.BitsSet, Value: rest & -rest})
	}
	return all, true, nil
}

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
