package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"tare/internal/area"
	"tare/internal/area/sandbox/workload"
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
	_, err := instructions(p)
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

// Prepare implements Enforcer.
func (seccompFilter) Prepare(context.Context, Policy) error { return nil }

// Confine implements Enforcer. It filters this thread only, which then executes the worker. no_new_privs is set
// already.
func (seccompFilter) Confine(p Policy) error {
	policy, err := filter(p)
	if err != nil {
		return err
	}
	if err := sec.LoadFilter(sec.Filter{Policy: *policy}); err != nil {
		return fmt.Errorf("load the seccomp filter: %w", err)
	}
	return nil
}

// ProveDeny implements Enforcer: every system call that a rule names is refused, and what Landlock would refuse is
// allowed.
func (seccompFilter) ProveDeny(ctx context.Context, p Policy, w Attempts) error {
	x := &proof{ctx: ctx, w: w}
	x.wantFilters(1)
	for _, call := range append(refusedCalls(p), canary()) {
		x.wantRefused(unix.EPERM, trySyscall, call)
	}
	if p.Mode == RuntimeDefault {
		x.wantRefused(unix.ENOSYS, trySyscall, "clone3")
	}
	x.wantAllowed(trySyscall, "getppid")
	x.wantAllowed(tryCreate, fileIn(p.Scratch))
	x.wantAllowed(tryOpen, p.Scratch)
	return x.end()
}

// Teardown implements Enforcer: a filter ends with its processes.
func (seccompFilter) Teardown(context.Context, Policy) error { return nil }

// Inert implements Enforcer: the filter sees one system call in an entire fork, and none in a computation.
func (seccompFilter) Inert(workload string) bool {
	return workload == workFork || workload == workCompute
}

// Describe implements Enforcer.
func (seccompFilter) Describe(p Policy) string {
	n, err := instructions(p)
	if err != nil {
		return err.Error()
	}
	what := fmt.Sprintf("a seccomp filter of %d instructions", n)
	switch p.Mode {
	case RuntimeDefault:
		what += ": Docker's default profile"
	case AlwaysAllow, EnhanceProtect:
		what += " that allows all but " + canary()
	}
	if p.Rules > 0 {
		what += fmt.Sprintf(", and refuses %d more (%s)", p.Rules, shorten(refusedCalls(p)))
	}
	return what
}

// instructions counts the instructions of the compiled policy.
func instructions(p Policy) (int, error) {
	policy, err := filter(p)
	if err != nil {
		return 0, err
	}
	program, err := policy.Assemble()
	if err != nil {
		return 0, fmt.Errorf("compile the seccomp filter: %w", err)
	}
	return len(program), nil
}

// filter returns the policy for this architecture. Rules come first, so that they override the profile.
func filter(p Policy) (*sec.Policy, error) {
	if _, err := arch.GetInfo(""); err != nil {
		return nil, fmt.Errorf("seccomp on this architecture: %w", err)
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
