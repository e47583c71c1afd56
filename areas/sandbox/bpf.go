package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/bpflsm"
	"tare/areas/sandbox/policy"
	"tare/areas/sandbox/workload"
)

// bpfRules is the BPF LSM with programs of tare's: file_open, bprm_check_security, socket_connect, capable, sb_mount,
// sb_umount and ptrace. They are attached once for the run, for all processes of the host: those of other treatments,
// and all others, have no profile, so the programs let them pass.
type bpfRules struct{}

var _ Enforcer = bpfRules{}

// bpfProfile says which rules of the programs hold.
type bpfProfile struct {
	Profiles uint32 `json:"profiles"` // the map's id
	Slot     uint32 `json:"slot"`
}

// canaryCapability is refused by every policy of bpfRules: no workload needs it, and a process that lacks it cannot set
// a timer that wakes the machine.
const canaryCapability = "wake_alarm"

// Name implements Enforcer.
func (bpfRules) Name() string { return enforcerBPF }

// Help implements Enforcer.
func (bpfRules) Help() string {
	return "BPF LSM programs with rules on files, programs, addresses, mounts, capabilities and ptrace; needs root"
}

// Express implements Enforcer.
func (bpfRules) Express(p Policy) error {
	switch {
	case p.ownProfile():
		return errors.New("profile: bpf takes rules: FILE; only seccomp and apparmor take a profile")
	case p.Match > maxMatch:
		return fmt.Errorf("match: paths can share up to %d components here, not %d: what follows differs from worker to "+
			"worker", maxMatch, p.Match)
	case p.Mode == Unconfined && (p.Rules > 0 || p.Match > 0 || p.Own != nil):
		return errors.New("mode: an unconfined process has no rules; leave rules and match out")
	case p.Rules > bpflsm.MaxRules: // before so many are made
		return fmt.Errorf("rules: bpf takes at most %d rules of a kind, not %d", bpflsm.MaxRules, p.Rules)
	}
	if p.Dir == "" {
		p.Dir = "/tmp/tare/arm" // of the usual length; the run's is not known yet
	}
	if err := bpflsm.Express(p.bpfModel()); err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	return nil
}

// bpfModel adds the rule that proves the programs.
func (p Policy) bpfModel() policy.Policy {
	return p.model().And(policy.Policy{Capabilities: []string{canaryCapability}})
}

// Probe implements Enforcer.
func (b bpfRules) Probe(ctx context.Context, try func(context.Context, Policy) error) error {
	return try(ctx, Policy{Enforcer: b.Name(), Mode: AlwaysAllow, Rules: 1})
}

// Install implements Enforcer: the first treatment loads and attaches the programs, each writes its rules.
func (bpfRules) Install(_ context.Context, p *Policy, h *host) error {
	programs, err := h.bpfPrograms(p.observed)
	if err != nil {
		return err
	}
	if p.Mode == Unconfined {
		return nil
	}
	slot := h.slots
	h.slots++
	if err := programs.SetRules(slot, p.bpfModel()); err != nil {
		return err
	}
	id, err := programs.ProfilesID()
	p.BPF = &bpfProfile{Profiles: id, Slot: slot}
	return err
}

// bpfPrograms returns the programs, attached. Nothing is journaled: they end with this process.
func (h *host) bpfPrograms(observe bool) (*bpflsm.Programs, error) {
	if h.programs != nil {
		return h.programs, nil
	}
	programs, err := bpflsm.Load(bpflsm.Options{Key: bpflsm.ByMountNamespace, Observe: observe})
	if err != nil {
		return nil, err
	}
	if err := programs.Attach(); err != nil {
		return nil, errors.Join(err, programs.Close())
	}
	h.programs = programs
	h.onClose(func(context.Context) error {
		h.programs = nil
		return programs.Close()
	})
	return programs, nil
}

// bpfProfileOf returns the profile that the BPF programs have for a process under the policy; nil if it has none. It
// must be forgotten after the process's end: the kernel gives the number of its mount namespace to a later one.
func (h *host) bpfProfileOf(p Policy, pid int) (*bpflsm.Confined, error) {
	if p.BPF == nil {
		return nil, nil //nolint:nilnil // most policies have none
	}
	return h.programs.Confined(pid)
}

// forgetThreads removes the profiles of threads that have ended.
func (h *host) forgetThreads() error {
	if h == nil || h.programs == nil {
		return nil
	}
	_, err := h.programs.ForgetEnded()
	return err
}

func forget(c *bpflsm.Confined) error {
	if c == nil {
		return nil
	}
	return c.Forget()
}

// Confine implements Enforcer: the thread gets a mount namespace of its own, by which the programs recognise it.
func (bpfRules) Confine(p Policy) error {
	if p.Mode == Unconfined {
		return nil
	}
	if p.BPF == nil {
		return errors.New("the rules have not been written")
	}
	return bpflsm.Enroll(p.BPF.Profiles, p.BPF.Slot)
}

// Stage implements stager: the map of profiles is open, and the thread gets a mount namespace and a profile.
func (bpfRules) Stage(p Policy) (workload.Steps, error) {
	var programs *bpflsm.Programs
	steps := workload.Steps{
		Load: func() (err error) {
			if programs, err = bpflsm.Load(bpflsm.Options{Key: bpflsm.ByMountNamespace}); err != nil {
				return err
			}
			return programs.Attach()
		},
		Unload: func() error {
			if programs == nil {
				return nil
			}
			return programs.Close()
		},
	}
	if p.Mode == Unconfined {
		return steps, nil
	}
	if p.BPF == nil {
		return steps, errors.New("the rules have not been written")
	}
	e, err := bpflsm.NewEnroller(p.BPF.Profiles, p.BPF.Slot)
	steps.Confine, steps.Release = e.Enroll, e.Leave
	return steps, err
}

var (
	_ stager = bpfRules{}
	_ filler = bpfRules{}
)

// Fill implements filler: the further profiles are those of mount namespaces that do not exist.
func (bpfRules) Fill(_ context.Context, p Policy, n int, h *host) (func(context.Context) error, error) {
	var slot uint32
	if p.BPF != nil {
		slot = p.BPF.Slot
	}
	remove, err := h.programs.Fill(slot, n)
	return func(context.Context) error { return remove() }, err
}

// Prove implements Enforcer.
func (bpfRules) Prove(x *proof, p Policy) {
	if p.Mode == Unconfined {
		x.wantAlarm()
		return
	}
	x.wantNoAlarm()
	x.proveFiles(p.model(), unix.EPERM)
	x.proveMounts(p.model(), unix.EPERM)
	x.proveConnects(p.model(), unix.EPERM)
	x.wantUsable(p)
}

// Absent implements Enforcer. Another enforcer may have a rule on the same capability: then the attempt tells nothing.
func (bpfRules) Absent(x *proof, p Policy) {
	if !slices.Contains(p.model().Capabilities, canaryCapability) {
		x.wantAlarm()
	}
}

// wantAlarm has the canary's attempt succeed, where this process has the capability that its worker inherits.
func (x *proof) wantAlarm() {
	if may, err := has(unix.CAP_WAKE_ALARM); err != nil || may {
		x.wantNot(unix.EPERM, workload.TryAlarm)
	}
}

// wantNoAlarm has the canary's attempt refused, which tells nothing where this process lacks the capability.
func (x *proof) wantNoAlarm() {
	if may, err := has(unix.CAP_WAKE_ALARM); err == nil && !may {
		x.wrong = append(x.wrong, "without the capability wake_alarm nothing tells whether the policy refuses it")
		return
	}
	x.wantRefused(unix.EPERM, workload.TryAlarm)
}

// has reports whether this thread has a capability.
func has(capability int) (bool, error) {
	var sets [2]unix.CapUserData // 32 capabilities each
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0])
	return sets[capability/32].Effective&(1<<(capability%32)) != 0, err
}

// Inert implements Enforcer: no hook is on the way of a fork, a computation or a system call that does nothing.
func (bpfRules) Inert(workload string) bool {
	return workload == workFork || workload == workCompute || workload == workSyscall
}

// Describe implements Enforcer.
func (bpfRules) Describe(p Policy) string {
	if p.Mode == Unconfined {
		return "BPF LSM programs are attached, and this process has no profile: each hook looks for one and lets it pass"
	}
	m := p.model()
	text := fmt.Sprintf("BPF LSM programs with %d rules on files, %d on programs, %d on addresses, %d on mounts and %d "+
		"capabilities", len(m.Files), len(m.Execs), len(m.Connects), len(m.Mounts), len(p.bpfModel().Capabilities))
	text += p.Own.describe()
	return text
}
