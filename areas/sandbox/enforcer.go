package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/workload"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// An Enforcer is a kernel mechanism that can confine a process. Each is in a file of its own, and listed in enforcers.
type Enforcer interface {
	// Name is the level of the factor "enforcer".
	Name() string
	// Help describes the enforcer in one line.
	Help() string
	// Express returns an error if the enforcer cannot express the policy. It says what cannot be expressed, and why.
	Express(Policy) error
	// Probe tries the enforcer: try confines a temporary child and proves the policy in it. Configuration and version
	// numbers are no proof. The error holds the cause and a next step.
	Probe(ctx context.Context, try func(context.Context, Policy) error) error
	// Install makes what the policy needs outside the confined process, once per treatment, and may complete the policy.
	// What is not below p.Dir, which the target removes, it gives h to remove.
	Install(ctx context.Context, p *Policy, h *host) error
	// Confine irrevocably puts the calling thread under the policy. It is called in the shim, on a locked thread with
	// no_new_privs set, right before that thread executes the worker.
	Confine(p Policy) error
	// Prove proves the policy in a confined worker: what it must refuse is refused, and what it must allow is allowed.
	Prove(x *proof, p Policy)
	// Absent proves that the enforcer is not in force: something that it always refuses is allowed.
	Absent(x *proof, p Policy)
	// Inert reports whether the enforcer cannot affect a workload: a cost measured there is an artefact.
	Inert(workload string) bool
	// Describe describes the policy in force, for the report.
	Describe(p Policy) string
}

// Attempts are single attempts inside a confined worker. The errno is that of the attempt, 0 for success. The error
// means that no attempt could be made.
type Attempts interface {
	Try(ctx context.Context, what string, args ...string) (syscall.Errno, error)
	// Status returns the kernel's view of the worker's confinement.
	Status(ctx context.Context) (workload.Status, error)
}

var _ Attempts = (*workload.Client)(nil)

// A Policy is what an enforcer puts in force. The shim receives it as JSON.
type Policy struct {
	Enforcer string `json:"enforcer"`
	Mode     Mode   `json:"mode"`
	Rules    int    `json:"rules"`
	// how many leading path components a rule shares with the paths in use, without matching them
	Match int `json:"match,omitempty"`
	// Profile is a seccomp profile of the user's, instead of a mode.
	Profile *Profile `json:"profile,omitempty"`
	// AppFile is an AppArmor profile of the user's, instead of a mode. The shim needs only its name, in AppArmor.
	AppFile *appFile `json:"-"`
	// Own are rules of the user's, added to those of the mode.
	Own *OwnRules `json:"own,omitempty"`
	// observed lets pass what Own refuses, to report it; bpfRules can.
	observed bool
	// BPF, AppArmor and SELinux say what Install has put into the kernel. SELinux is the name of a domain.
	BPF      *bpfProfile     `json:"bpf,omitempty"`
	AppArmor *apparmor.Label `json:"apparmor,omitempty"`
	SELinux  string          `json:"selinux,omitempty"`
	// compiled is the AppArmor profile as the kernel takes it.
	compiled []byte
	// Rights are what a Landlock ruleset handles; empty: files. Port is the TCP port of the worker's own.
	Rights string `json:"rights,omitempty"`
	Port   int    `json:"port,omitempty"`
	// Dir is a folder of the run's own for the paths that rules name. Scratch is where the worker keeps its files.
	Dir     string `json:"dir"`
	Scratch string `json:"scratch,omitempty"`
}

// own reports whether a profile or rules of the user's are in force.
func (p Policy) own() bool { return p.ownProfile() || p.Own != nil }

// ownProfile reports whether a profile of the user's takes the place of a mode.
func (p Policy) ownProfile() bool { return p.Profile != nil || p.AppFile != nil }

// Mode is how strict a policy is, in the words of container enforcers.
type Mode string

// The modes.
const (
	AlwaysAllow    Mode = "AlwaysAllow"    // the enforcer is in force and allows all that the workloads do
	RuntimeDefault Mode = "RuntimeDefault" // the default of a container runtime
	EnhanceProtect Mode = "EnhanceProtect" // in addition ten hardening rules: privileges, mounts, procfs, metadata service
	Unconfined     Mode = "Unconfined"     // the enforcer acts on the host, and not on the process
)

func modes() []Mode { return []Mode{AlwaysAllow, RuntimeDefault, EnhanceProtect, Unconfined} }

// enforcers lists the enforcers, the baseline first.
func enforcers() []Enforcer {
	return []Enforcer{none{}, seccompFilter{}, landlockRules{}, bpfRules{}, appArmor{}, seLinux{}}
}

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
	return nil, fmt.Errorf("enforcer: there is no %q; there are %s%s", name, strings.Join(names, ", "),
		spelling.DidYouMean(name, names))
}

// proof collects what is wrong, so that one pass over a worker reports all of it.
type proof struct {
	ctx   context.Context // lives for one call of stack.prove
	w     Attempts
	wrong []string
	err   error
	// demands are what must be refused, if those are collected and nothing is tried; nil: it is tried.
	demands *[]demand
}

// A demand is an attempt that must be refused, with one of these errnos.
type demand struct {
	errnos []syscall.Errno
	what   string
	args   []string
}

// demand collects an attempt that must be refused, or tries it.
func (p *proof) demand(d demand) (got syscall.Errno, tried bool) {
	if p.demands != nil {
		*p.demands = append(*p.demands, d)
		return 0, false
	}
	return p.errno(d.what, d.args...)
}

// errno makes an attempt. After an error it tries nothing more.
func (p *proof) errno(what string, args ...string) (syscall.Errno, bool) {
	if p.err != nil || p.demands != nil {
		return 0, false
	}
	n, err := p.w.Try(p.ctx, what, args...)
	if err != nil {
		p.err = fmt.Errorf("try %s: %w", attempt(what, args), err)
	}
	return n, err == nil
}

// wantRefused requires an attempt to fail with this errno.
func (p *proof) wantRefused(want syscall.Errno, what string, args ...string) {
	if n, ok := p.demand(demand{[]syscall.Errno{want}, what, args}); ok && n != want {
		p.wrong = append(p.wrong, fmt.Sprintf("%s must be refused with %s, and gave %s", attempt(what, args),
			name(want), name(n)))
	}
}

// wantDenied requires an attempt to fail with EPERM or EACCES: which of them depends on what the kernel asks first.
func (p *proof) wantDenied(what string, args ...string) {
	either := []syscall.Errno{syscall.EPERM, syscall.EACCES}
	if n, ok := p.demand(demand{either, what, args}); ok && !slices.Contains(either, n) {
		p.wrong = append(p.wrong, fmt.Sprintf("%s must be refused with EPERM or EACCES, and gave %s", attempt(what, args),
			name(n)))
	}
}

// wantAllowed requires an attempt to succeed.
func (p *proof) wantAllowed(what string, args ...string) {
	if n, ok := p.errno(what, args...); ok && n != 0 {
		p.wrong = append(p.wrong, fmt.Sprintf("%s must be allowed, and gave %s", attempt(what, args), name(n)))
	}
}

// wantNot requires an attempt not to fail with the errno by which an enforcer that is not in force would refuse it.
func (p *proof) wantNot(refused syscall.Errno, what string, args ...string) {
	if n, ok := p.errno(what, args...); ok && n == refused {
		p.wrong = append(p.wrong, fmt.Sprintf("%s must not be refused with %s, and is", attempt(what, args), name(refused)))
	}
}

// wantFilters requires that the kernel reports this many seccomp filters, and no_new_privs, which all arms have.
func (p *proof) wantFilters(want int) {
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
		p.wrong = append(p.wrong, fmt.Sprintf("the kernel says seccomp mode %d with %s, want mode %d with %d",
			s.Seccomp, unit.Count(s.Filters, "filter"), mode, want))
	}
	if !s.NoNewPrivs {
		p.wrong = append(p.wrong, "no_new_privs is not set")
	}
}

// pid returns the worker's process, of which the kernel is asked what confines it.
func (p *proof) pid() (int, bool) {
	if p.err != nil {
		return 0, false
	}
	s, err := p.w.Status(p.ctx)
	p.err = err
	return s.PID, err == nil
}

// wantUsable requires that the worker can make and open files in its folder.
func (p *proof) wantUsable(policy Policy) {
	p.wantAllowed(tryCreate, fileIn(policy.Scratch))
	p.wantAllowed(tryOpen, policy.Scratch)
}

func (p *proof) end() error {
	if p.err != nil {
		return p.err
	}
	if len(p.wrong) > 0 {
		return fmt.Errorf("not enforced as expected: %s", strings.Join(p.wrong, "; "))
	}
	return nil
}

func attempt(what string, args []string) string {
	return strings.TrimSpace(what + " " + strings.Join(args, " "))
}
