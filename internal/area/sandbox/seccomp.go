package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"tare/internal/area/sandbox/workload"
)

// seccompFilter is seccomp mode 2 (seccomp(2)): a BPF program looks at every system call of the worker and of all that it starts.
type seccompFilter struct{}

var _ Enforcer = seccompFilter{}

// firstRules are the built-in rules of vArmor's published test, which had four.
var firstRules = []string{"ptrace", "mknod", "mount", "_sysctl"}

// keptCalls are refused by no rule: the worker may want them, or they are what proofs are made with.
var keptCalls = []string{"getpid", "getppid", "clone3", "perf_event_open"}

// ruleCalls are the system calls that rules refuse, in their order: firstRules, and then all that a worker can try and no workload uses.
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

// Express implements Enforcer. It also compiles the filter, so that what cannot be compiled is known before the run.
func (seccompFilter) Express(p Policy) error {
	limit := len(ruleCalls())
	switch {
	case p.Mode == EnhanceProtect:
		return errors.New("mode: seccomp cannot express EnhanceProtect: of its ten rules it can only tell unmounting from other calls; " +
			"the others are about paths, capabilities and addresses")
	case p.Rules > limit:
		return fmt.Errorf("rules: seccomp can express up to %d rules here, not %d: there are no more system calls that no workload uses", limit, p.Rules)
	case p.Match > 0:
		return errors.New("match: not expressible by seccomp: a filter sees the number of a system call, not paths")
	}
	_, err := instructions(p)
	return err
}

// Probe implements Enforcer.
func (s seccompFilter) Probe(ctx context.Context, try func(context.Context, Policy) error) error {
	if err := try(ctx, Policy{Enforcer: s.Name(), Mode: AlwaysAllow}); err != nil {
		return withHint(err, "seccomp needs a kernel with CONFIG_SECCOMP_FILTER, and no filter around tare itself that forbids further ones")
	}
	return nil
}

// Prepare implements Enforcer.
func (seccompFilter) Prepare(context.Context, Policy) error { return nil }

// Confine implements Enforcer. Only this thread is under the filter, until it executes the worker. no_new_privs is set already.
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

// ProveDeny implements Enforcer: every system call that a rule names is refused, and what Landlock would refuse is not.
func (seccompFilter) ProveDeny(ctx context.Context, p Policy, w Attempts) error {
	x := &proof{ctx: ctx, w: w}
	x.filters(1)
	for _, call := range append(refusedCalls(p), canary()) {
		x.refused(unix.EPERM, trySyscall, call)
	}
	if p.Mode == RuntimeDefault {
		x.refused(unix.ENOSYS, trySyscall, "clone3")
	}
	x.allowed(trySyscall, "getppid")
	x.allowed(tryCreate, fileIn(p.Scratch))
	x.allowed(tryOpen, p.Scratch)
	return x.end()
}

// Teardown implements Enforcer: a filter ends with the processes that are under it.
func (seccompFilter) Teardown(context.Context, Policy) error { return nil }

// Inert implements Enforcer: the filter sees one system call in all of a fork, and none in a computation.
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

// instructions counts what the policy compiles to.
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

// filter is the policy for this architecture. Rules come first, so that they are in force whatever the profile says of their calls.
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

// refusedCalls are the calls that the policy's rules refuse.
func refusedCalls(p Policy) []string {
	calls := ruleCalls()
	return slices.Clone(calls[:min(p.Rules, len(calls))])
}

// nativeCalls are those of names that this architecture has.
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

// canary is the call that every filter here refuses: uselib, which no program has used since a.out, or where an architecture never had it,
// one whose arguments are refused as invalid first. Neither says EPERM by itself.
func canary() string {
	return append(nativeCalls([]string{"uselib"}), "quotactl")[0]
}

// shorten names the first few.
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
