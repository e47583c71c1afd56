package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/workload"
)

// seccompFilter is seccomp mode 2 (seccomp(2)): a BPF program checks every system call of the worker and its
// descendants.
type seccompFilter struct{}

var _ Enforcer = seccompFilter{}

// firstRules are the built-in rules of vArmor's published test, which had four.
var firstRules = []string{"ptrace", "mknod", "mount", "_sysctl"}

// keptCalls are refused by no rule: the worker may need them, or proofs use them.
var keptCalls = []string{"getpid", "getppid", "clone3", "perf_event_open"}

// ruleCalls returns the system calls that rules refuse, in order: firstRules, then all that a worker can try and no
// workload uses.
func ruleCalls() []string {
	calls := slices.Clone(firstRules)
	for _, c := range workload.Syscalls() {
		if !slices.Contains(calls, c) && !slices.Contains(keptCalls, c) && c != canary() {
			calls = append(calls, c)
		}
	}
	return slices.DeleteFunc(nativeCalls(calls), func(c string) bool { return !slices.Contains(workload.Syscalls(), c) })
}

// Name implements Enforcer.
func (seccompFilter) Name() string { return enforcerSeccomp }

// Help implements Enforcer.
func (seccompFilter) Help() string {
	return "a seccomp filter: allow everything, Docker's default profile, or N rules"
}

// Express implements Enforcer. It also compiles the filter, so that errors of compilation appear before the run.
func (seccompFilter) Express(p Policy) error {
	limit := len(ruleCalls())
	switch {
	case p.Profile != nil && p.Mode != "":
		return errors.New("mode: a profile of your own takes the place of a mode; leave one of them out")
	case p.Profile != nil && p.Rules > 0:
		return errors.New("rules: not with a profile of your own; add them to the profile")
	case p.Own != nil:
		return errors.New("rules: seccomp takes a number, or a profile of yours: profile: FILE")
	case p.Mode == Unconfined:
		return errors.New("mode: Unconfined is what enforcer: none is on a kernel with seccomp")
	case p.Mode == EnhanceProtect:
		return errors.New("mode: seccomp cannot express EnhanceProtect: of its ten rules it can only tell unmounting from " +
			"other calls; " +
			"the others are about paths, capabilities and addresses")
	case p.Rules > limit:
		return fmt.Errorf("rules: seccomp can express up to %d rules here, not %d: there are no more system calls that no "+
			"workload uses", limit, p.Rules)
	case p.Match > 0:
		return errors.New("match: not expressible by seccomp: a filter sees the number of a system call, not paths")
	}
	program, err := filterProgram(p)
	if err != nil || p.Profile == nil {
		return err
	}
	refused, err := refusedByProfile(program)
	if err == nil && len(refused) == 0 {
		err = fmt.Errorf("profile: %s refuses none of the %d system calls that tare can try, so nothing would prove that "+
			"it is in force (SCMP_ACT_LOG lets a call pass); add an entry that refuses a call which no workload makes, such as "+
			"{names: [ptrace], action: SCMP_ACT_ERRNO}", p.Profile.Name, len(workload.Syscalls()))
	}
	return err
}

// Probe implements Enforcer.
func (s seccompFilter) Probe(ctx context.Context, try func(context.Context, Policy) error) error {
	if err := try(ctx, Policy{Enforcer: s.Name(), Mode: AlwaysAllow}); err != nil {
		return area.WithHint(err, "seccomp needs a kernel with CONFIG_SECCOMP_FILTER, and no filter around tare itself that "+
			"forbids further ones")
	}
	return nil
}

// Install implements Enforcer.
func (seccompFilter) Install(context.Context, *Policy, *host) error { return nil }

// Confine implements Enforcer. It filters this thread only, which then executes the worker. no_new_privs is set
// already.
func (s seccompFilter) Confine(p Policy) error { return confineStaged(s, p) }

// Stage implements stager: the filter is compiled, and seccomp(2) is left to do.
func (seccompFilter) Stage(p Policy) (workload.Steps, error) {
	program, err := filterProgram(p)
	if err != nil {
		return workload.Steps{}, err
	}
	confine, err := program.loader(0)
	return workload.Steps{Confine: confine}, err
}

// Observe lets this thread make all calls, and reports those that Confine would refuse to a listener, which is a
// descriptor of this process.
func (seccompFilter) Observe(p Policy) error {
	program, err := filterProgram(p)
	if err != nil {
		return err
	}
	return program.observed().load(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
}

// Prove implements Enforcer: every system call that a rule names is refused.
func (seccompFilter) Prove(x *proof, p Policy) {
	if p.Profile != nil {
		x.profile(p)
		return
	}
	for _, call := range append(refusedCalls(p), canary()) {
		x.wantRefused(unix.EPERM, trySyscall, call)
	}
	if p.Mode == RuntimeDefault {
		x.wantRefused(unix.ENOSYS, trySyscall, "clone3")
	}
	x.wantAllowed(trySyscall, "getppid")
	x.wantUsable(p)
}

// Absent implements Enforcer.
func (seccompFilter) Absent(x *proof, _ Policy) { x.wantNot(unix.EPERM, trySyscall, canary()) }

// Inert implements Enforcer: the filter sees one system call in an entire fork, and none in a computation.
func (seccompFilter) Inert(workload string) bool {
	return workload == workFork || workload == workCompute
}

// Describe implements Enforcer.
func (seccompFilter) Describe(p Policy) string {
	program, err := filterProgram(p)
	if err != nil {
		return err.Error()
	}
	what := fmt.Sprintf("a seccomp filter of %d instructions", len(program))
	if p.Profile != nil {
		return fmt.Sprintf("%s: the profile %s (SHA-256 %.24s…)", what, p.Profile.Name, p.Profile.sum())
	}
	switch p.Mode {
	case RuntimeDefault:
		what += ": Docker's default profile"
	case AlwaysAllow, EnhanceProtect, Unconfined:
		what += " that allows all but " + canary()
	}
	if p.Rules > 0 {
		what += fmt.Sprintf(", and refuses %d more (%s)", p.Rules, shorten(refusedCalls(p)))
	}
	return what
}

// filterProgram compiles the policy.
func filterProgram(p Policy) (filterCode, error) {
	policy, err := filter(p)
	if err != nil {
		return nil, err
	}
	return compile(policy)
}

// filter returns the policy for this architecture. Rules come first, so that they override the profile.
func filter(p Policy) (*sec.Policy, error) {
	if _, err := arch.GetInfo(""); err != nil {
		return nil, fmt.Errorf("seccomp on this architecture: %w", err)
	}
	if p.Profile != nil {
		return p.Profile.policy()
	}
	rules := sec.SyscallGroup{Names: refusedCalls(p), Action: sec.ActionErrno}
	if p.Mode != RuntimeDefault {
		rules.Names = append(rules.Names, canary())
		return &sec.Policy{DefaultAction: sec.ActionAllow, Syscalls: []sec.SyscallGroup{rules}}, nil
	}
	policy, err := dockerDefault()
	if err != nil {
		return nil, err
	}
	if len(rules.Names) > 0 {
		policy.Syscalls = append([]sec.SyscallGroup{rules}, policy.Syscalls...)
	}
	return policy, nil
}

// refusedCalls returns the calls that the policy's rules refuse.
func refusedCalls(p Policy) []string {
	calls := ruleCalls()
	return slices.Clone(calls[:min(p.Rules, len(calls))])
}

// nativeCalls returns those of names that this architecture has.
func nativeCalls(names []string) []string {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		if _, ok := info.SyscallNames[n]; ok {
			out = append(out, n)
		}
	}
	return out
}

// canary returns the call that every filter here refuses: uselib, which no program has used since a.out, or, on an
// architecture that never had it, a call that the kernel rejects as invalid before it checks permissions. Neither
// returns EPERM by itself.
func canary() string {
	return append(nativeCalls([]string{"uselib"}), "quotactl")[0]
}

// shorten lists the first few names.
func shorten(names []string) string {
	const most = 4
	text := ""
	for i, n := range names {
		switch {
		case i == most:
			return text + ", …"
		case i > 0:
			text += ", "
		}
		text += n
	}
	return text
}

// A refusedCall is a system call that the proof can make, and the errno with which the filter refuses it.
type refusedCall struct {
	name  string
	errno syscall.Errno
}

// refusedByProfile returns the system calls that tare can try without harm and that the program refuses with an errno.
// What it kills the caller for is not tried.
func refusedByProfile(p filterCode) ([]refusedCall, error) {
	var out []refusedCall
	for _, call := range workload.Syscalls() {
		number, args := workload.Harmless(call)
		action, err := p.nativeVerdict(number, args)
		if err != nil {
			return nil, err
		}
		if isErrno(action) {
			out = append(out, refusedCall{call, syscall.Errno(action & unix.SECCOMP_RET_DATA)})
		}
	}
	return out, nil
}

// profile proves a profile of the user's: all calls that it refuses, of those that can be tried, are refused.
func (p *proof) profile(policy Policy) {
	program, err := filterProgram(policy)
	if err != nil {
		p.err = err
		return
	}
	refused, err := refusedByProfile(program)
	if err != nil {
		p.err = err
		return
	}
	for _, r := range refused {
		p.wantRefused(r.errno, trySyscall, r.name)
	}
}
