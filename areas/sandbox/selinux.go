package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/policy"
	"tare/areas/sandbox/selinux"
	"tare/areas/sandbox/vm"
	"tare/internal/design"
)

// seLinux is SELinux with a policy of tare's: each treatment is a domain of its own. A policy cannot be unloaded, and
// acts upon the whole machine, so it is loaded only in a lab VM, once, with the domains of all treatments: the kernel
// keeps the labels of files that it has looked at before.
type seLinux struct{}

var _ Enforcer = seLinux{}

// Name implements Enforcer.
func (seLinux) Name() string { return enforcerSELinux }

// Help implements Enforcer.
func (seLinux) Help() string {
	return "an SELinux domain with rules on kernel files, mounts, capabilities and ptrace; only in a lab VM (on: lab)"
}

// Express implements Enforcer.
func (seLinux) Express(p Policy) error {
	switch {
	case p.ownProfile():
		return errors.New("profile: selinux takes rules: FILE; only seccomp and apparmor take a profile")
	case p.Rules > 0:
		return errors.New("rules: selinux takes a file of rules, not a number: files have labels there, and a rule about a " +
			"label that no file has is never looked up")
	case p.Match > 0:
		return errors.New("match: not expressible by selinux: its rules name labels, not paths, so there is no near miss")
	case p.Mode == Unconfined && p.Own != nil:
		return errors.New("mode: an unconfined process has no rules; leave rules out")
	}
	if p.Own == nil {
		return nil
	}
	if cannot := notExpressible(p.Own.Policy); len(cannot) > 0 {
		return fmt.Errorf("rules: selinux cannot express all of %s: %s", p.Own.Name, strings.Join(cannot, "; "))
	}
	return nil
}

// expressSELinux returns an error if the plan needs SELinux on a machine that is not the run's own.
func (s *Spec) expressSELinux(p plan) error {
	if p.stack.has(enforcerSELinux) && s.On != onLab && !vm.InGuest() {
		return errors.New("enforcer: selinux is measured only in a lab VM, since a policy cannot be unloaded and confines " +
			"the whole machine: add on: lab to the target")
	}
	return nil
}

// notExpressible lists the rules that SELinux cannot express, with the reasons.
func notExpressible(m policy.Policy) []string {
	const name = "x"
	_, cannot := selinux.Source([]selinux.Domain{{Name: name, Policy: m}})
	return cannot[name]
}

// expressible returns the rules on files that SELinux can express, and the rest of the policy.
func expressible(m policy.Policy) policy.Policy {
	m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f policy.File) bool {
		return len(notExpressible(policy.Policy{Files: []policy.File{f}})) > 0
	})
	return m
}

// domain returns the domain of the policy. Equal policies have the same.
func (p Policy) domain() (selinux.Domain, error) {
	m := p.model()
	text, err := json.Marshal(m)
	return selinux.Domain{Name: fmt.Sprintf("%.8x", sha256.Sum256(text)), Policy: m}, err
}

// loadSELinux loads a policy with the domains of all treatments and of trials, if a treatment needs SELinux. It does so
// in a lab VM only.
func (s *Spec) loadSELinux(ctx context.Context, treatments []design.Treatment) error {
	if !vm.InGuest() {
		return nil
	}
	policies := []Policy{seLinuxTrial()}
	for _, t := range treatments {
		if p, err := s.plan(t); err == nil && p.stack.has(enforcerSELinux) { // Validate has reported the error
			policies = append(policies, p.policy)
		}
	}
	if len(policies) == 1 {
		return nil
	}
	domains, err := domainsOf(policies)
	if err != nil {
		return err
	}
	text, _ := selinux.Source(domains) // Describe lists what is not expressible
	binary, err := selinux.Compile(ctx, text)
	if err != nil {
		return err
	}
	return selinux.Load(binary, vm.InGuest())
}

// domainsOf returns the domains of policies, each once.
func domainsOf(policies []Policy) (out []selinux.Domain, err error) {
	for _, p := range policies {
		d, err := p.domain()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o selinux.Domain) bool { return o.Name == d.Name }) {
			out = append(out, d)
		}
	}
	return out, nil
}

// seLinuxTrial is the policy that Probe tries.
func seLinuxTrial() Policy { return Policy{Enforcer: enforcerSELinux, Mode: AlwaysAllow} }

// Probe implements Enforcer.
func (seLinux) Probe(ctx context.Context, try func(context.Context, Policy) error) error {
	if !vm.InGuest() {
		return area.WithHint(errors.New("a policy is loaded only in a lab VM, since it cannot be unloaded and confines the "+
			"whole machine"), "add on: lab to the target")
	}
	if err := selinux.Probe(); err != nil {
		return err
	}
	return try(ctx, seLinuxTrial())
}

// Install implements Enforcer: the domain has been loaded before (loadSELinux).
func (seLinux) Install(_ context.Context, p *Policy, _ *host) error {
	if p.Mode == Unconfined {
		return nil
	}
	d, err := p.domain()
	p.SELinux = d.Name
	return err
}

// Confine implements Enforcer: the domain holds from the next execve on.
func (seLinux) Confine(p Policy) error {
	if p.Mode == Unconfined {
		return nil
	}
	return selinux.Enter(selinux.Domain{Name: p.SELinux})
}

// Prove implements Enforcer: the kernel names the domain and enforces the policy, and the rules hold.
func (seLinux) Prove(x *proof, p Policy) {
	x.wantEnforcing()
	if p.Mode == Unconfined {
		x.wantOwnContext()
		return
	}
	x.wantContext(selinux.Domain{Name: p.SELinux}.Context())
	x.wantRefused(unix.EACCES, tryFifo, fifoIn(p.Scratch))
	m := expressible(p.model())
	x.proveFiles(m, unix.EACCES)
	x.proveMounts(m, unix.EACCES)
	if slices.Contains(m.Capabilities, canaryCapability) {
		x.wantNoAlarm()
	}
	x.wantUsable(p)
}

func (x *proof) wantEnforcing() {
	switch on, err := selinux.Enforces(); {
	case x.err != nil:
	case err != nil:
		x.wrong = append(x.wrong, err.Error())
	case !on:
		x.wrong = append(x.wrong, "the kernel says that SELinux does not enforce its policy")
	}
}

// wantContext requires that the kernel names this security context as the worker's.
func (x *proof) wantContext(want string) {
	pid, ok := x.pid()
	if !ok {
		return
	}
	switch got, err := selinux.Current(pid); {
	case err != nil:
		x.wrong = append(x.wrong, fmt.Sprintf("the kernel names no SELinux context: %v", err))
	case got != want:
		x.wrong = append(x.wrong, fmt.Sprintf("the kernel says that the process has the SELinux context %q, want %q", got,
			want))
	}
}

// wantOwnContext requires that the worker has this process's context, which is that of all processes outside of
// domains.
func (x *proof) wantOwnContext() {
	own, err := selinux.Current(os.Getpid())
	if err != nil {
		x.wrong = append(x.wrong, err.Error())
		return
	}
	x.wantContext(own)
}

// Absent implements Enforcer. Landlock refuses what a domain refuses, so the kernel's word is what tells them apart.
func (seLinux) Absent(x *proof, _ Policy) {
	if _, err := selinux.Enforces(); err == nil { // otherwise the kernel does not run SELinux
		x.wantOwnContext()
	}
}

// Inert implements Enforcer: SELinux decides on forks too, but neither on computing nor on a system call that does
// nothing.
func (seLinux) Inert(workload string) bool { return workload == workCompute || workload == workSyscall }

// Describe implements Enforcer.
func (seLinux) Describe(p Policy) string {
	if p.Mode == Unconfined {
		return "an SELinux policy is loaded and enforced, and this process is in none of its domains: all that SELinux " +
			"decides on is looked up and allowed"
	}
	m := p.model()
	e := expressible(m)
	text := fmt.Sprintf("an SELinux domain that may do all but what %d rules on kernel files and %d capabilities refuse, "+
		"and but making named pipes", len(e.Files), len(e.Capabilities))
	text += p.Own.describe()
	const first = 3
	if cannot := notExpressible(m); len(cannot) > 0 {
		text += fmt.Sprintf("; %d rules are not expressible and left out: %s", len(cannot),
			strings.Join(cannot[:min(first, len(cannot))], "; "))
		if len(cannot) > first {
			text += "; and so on"
		}
	}
	return text
}
