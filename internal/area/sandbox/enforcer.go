package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"tare/internal/area/sandbox/workload"
	"tare/internal/spelling"
)

// An Enforcer is a mechanism of the kernel that can confine a process. Each has a file of its own, and is listed in enforcers.
type Enforcer interface {
	// Name is the level of the factor "enforcer".
	Name() string
	// Help is one line on what it is.
	Help() string
	// Express says whether the policy can be compiled for this enforcer. The error says what cannot be expressed, and why.
	Express(Policy) error
	// Probe tries the enforcer: try confines a child that is thrown away and proves the policy in it. Configuration and version numbers
	// prove nothing. The error holds the cause, and a next step.
	Probe(ctx context.Context, try func(context.Context, Policy) error) error
	// Prepare makes what the policy needs outside of the confined process, below p.Dir, once per treatment.
	Prepare(ctx context.Context, p Policy) error
	// Confine puts the calling thread under the policy, for good. It is called in the shim, on a locked thread with no_new_privs set, right
	// before that thread executes the worker.
	Confine(p Policy) error
	// ProveDeny proves the policy in force in a confined worker: what it must refuse is refused, what it must allow is allowed.
	ProveDeny(ctx context.Context, p Policy, w Attempts) error
	// Teardown takes back what Prepare made outside of p.Dir; the folder itself is the target's to remove.
	Teardown(ctx context.Context, p Policy) error
	// Inert reports whether the enforcer cannot act on a workload: a cost found there is an artefact.
	Inert(workload string) bool
	// Describe says what is in force under the policy, in words, for the report.
	Describe(p Policy) string
}

// Attempts are single attempts inside a confined worker. The errno is that of the attempt, 0 for success. The error says that the attempt
// could not be made.
type Attempts interface {
	Try(ctx context.Context, what string, args ...string) (syscall.Errno, error)
	// Status is what the kernel says of the worker's confinement.
	Status(ctx context.Context) (workload.Status, error)
}

var _ Attempts = (*workload.Client)(nil)

// A Policy is what an enforcer is asked to put in force. It travels to the shim as JSON.
type Policy struct {
	Enforcer string `json:"enforcer"`
	Mode     Mode   `json:"mode"`
	Rules    int    `json:"rules"`
	Match    int    `json:"match,omitempty"` // how many leading components of a path a rule shares with the paths that are used, without matching
	// Dir is a folder of the run's own, for what rules name. Scratch is where the worker keeps its files.
	Dir     string `json:"dir"`
	Scratch string `json:"scratch,omitempty"`
}

// Mode is how strict a policy is; the words are those of container enforcers.
type Mode string

// The modes.
const (
	AlwaysAllow    Mode = "AlwaysAllow"    // the enforcer is in force and allows all that the workloads do
	RuntimeDefault Mode = "RuntimeDefault" // what a container runtime puts in force when nothing is said
	EnhanceProtect Mode = "EnhanceProtect" // ten hardening rules on top: privileges, mounts, procfs, metadata service
)

func modes() []Mode { return []Mode{AlwaysAllow, RuntimeDefault, EnhanceProtect} }

// enforcers lists what can be put in force, the baseline first.
func enforcers() []Enforcer { return []Enforcer{none{}, seccompFilter{}, landlockRules{}} }

func findEnforcer(name string) (Enforcer, error) {
	all := enforcers()
	i := slices.IndexFunc(all, func(e Enforcer) bool { return e.Name() == name })
	if i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for k, e := range all {
		names[k] = e.Name()
	}
	return nil, fmt.Errorf("enforcer: there is no %q; there are %s%s", name, strings.Join(names, ", "), spelling.DidYouMean(name, names))
}

// proof collects what is not as it should be, so that one look at a worker tells all of it.
type proof struct {
	ctx   context.Context // lives for one call of ProveDeny
	w     Attempts
	wrong []string
	err   error
}

// errno makes an attempt. After an error nothing more is tried.
func (p *proof) errno(what string, args ...string) (syscall.Errno, bool) {
	if p.err != nil {
		return 0, false
	}
	n, err := p.w.Try(p.ctx, what, args...)
	if err != nil {
		p.err = fmt.Errorf("try %s: %w", attempt(what, args), err)
	}
	return n, err == nil
}

// refused wants an attempt to fail with this errno.
func (p *proof) refused(want syscall.Errno, what string, args ...string) {
	if n, ok := p.errno(what, args...); ok && n != want {
		p.wrong = append(p.wrong, fmt.Sprintf("%s must be refused with %s, and gave %s", attempt(what, args), name(want), name(n)))
	}
}

// allowed wants an attempt to succeed.
func (p *proof) allowed(what string, args ...string) {
	if n, ok := p.errno(what, args...); ok && n != 0 {
		p.wrong = append(p.wrong, fmt.Sprintf("%s must be allowed, and gave %s", attempt(what, args), name(n)))
	}
}

// unaffected wants a system call to give anything but a filter's refusal.
func (p *proof) unaffected(call string) {
	if n, ok := p.errno(trySyscall, call); ok && n == syscall.EPERM {
		p.wrong = append(p.wrong, call+" must not be refused, and is")
	}
}

// filters wants the kernel to say that this many seccomp filters are attached, and that no_new_privs is set, as it is in all arms.
func (p *proof) filters(want int) {
	if p.err != nil {
		return
	}
	s, err := p.w.Status(p.ctx)
	if err != nil {
		p.err = err
		return
	}
	const modeFilter = 2 // SECCOMP_MODE_FILTER
	mode := 0
	if want > 0 {
		mode = modeFilter
	}
	if s.Seccomp != mode || (s.Filters >= 0 && s.Filters != want) {
		p.wrong = append(p.wrong, fmt.Sprintf("the kernel says seccomp mode %d with %d filter(s), want mode %d with %d", s.Seccomp, s.Filters, mode, want))
	}
	if !s.NoNewPrivs {
		p.wrong = append(p.wrong, "no_new_privs is not set")
	}
}

func (p *proof) end() error {
	if p.err != nil {
		return p.err
	}
	if len(p.wrong) > 0 {
		return fmt.Errorf("not in force as it should be: %s", strings.Join(p.wrong, "; "))
	}
	return nil
}

func attempt(what string, args []string) string {
	return strings.TrimSpace(what + " " + strings.Join(args, " "))
}
