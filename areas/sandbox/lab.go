package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
)

// The values of `on`.
const (
	onHost = "host"
	onLab  = "lab"
	// onGuest is what the target in a lab VM is told. No file may say so.
	onGuest = "guest"
)

const (
	// labPatience bounds each request to a lab VM, in which everything takes ten to fifty times as long.
	labPatience = 30 * time.Minute
	// labCheck is how often a lab VM that has not answered yet is looked at.
	labCheck = 5 * time.Second
)

// An emulated machine executes the same call with the same number of instructions. What varies is what interrupts add:
// the kernel's timer comes every 4 ms. So a batch is shorter than that, and of several the least counts.
const (
	labSpan   = time.Millisecond
	labRepeat = 8
	labRounds = 3
	// labSlowdown is how many times as long a batch takes as its instructions say, for the forecast of a plan.
	labSlowdown = 12
)

// labTarget measures in lab VMs, one for each kernel that the treatments name. In each runs the same target as on a
// host, behind an agent.
type labTarget struct {
	spec *Spec
	env  area.Env

	mu       sync.Mutex
	journal  area.Journal
	folder   string // for the initial file system
	machines []*labMachine
	of       map[string]*labMachine // by treatment
	notes    []string
}

var _ area.Target = (*labTarget)(nil)

func openLab(spec *Spec, env area.Env) (area.Target, error) {
	return &labTarget{spec: spec, env: env, of: map[string]*labMachine{}}, nil
}

// Prepare implements area.Target: it boots the treatment's machine unless it runs, and prepares the treatment in it.
func (t *labTarget) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.journal = j
	kind, err := t.kindOf(tr)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(t.machines, func(m *labMachine) bool { return m.labKind == kind })
	if i < 0 {
		i = len(t.machines)
		m, err := t.boot(ctx, kind)
		if err != nil {
			return err
		}
		if err := t.open(ctx, m); err != nil {
			return err
		}
	}
	m := t.machines[i]
	m.holdsBaseline = m.holdsBaseline || tr.Baseline
	t.of[tr.ID] = m
	return m.target.Prepare(ctx, inGuest(tr), j)
}

// inGuest returns the treatment as the target in a lab VM knows it: there is no other kernel there.
func inGuest(tr design.Treatment) design.Treatment {
	tr.Levels = maps.Clone(tr.Levels)
	delete(tr.Levels, factorKernel)
	return tr
}

func (t *labTarget) machine(tr design.Treatment) (*labMachine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.of[tr.ID]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("treatment %q has not been prepared", tr.ID)
}

// Enter implements area.Target.
func (t *labTarget) Enter(ctx context.Context, tr design.Treatment) error {
	m, err := t.machine(tr)
	if err != nil {
		return err
	}
	return m.target.Enter(ctx, inGuest(tr))
}

// Verify implements area.Target.
func (t *labTarget) Verify(ctx context.Context, tr design.Treatment) error {
	m, err := t.machine(tr)
	if err != nil {
		return err
	}
	return m.target.Verify(ctx, inGuest(tr))
}

// Leave implements area.Target.
func (t *labTarget) Leave(ctx context.Context, tr design.Treatment) error {
	m, err := t.machine(tr)
	if err != nil {
		return err
	}
	return m.target.Leave(ctx, inGuest(tr))
}

// Operations implements area.Target: those of the guest, of which only instructions are reported.
func (t *labTarget) Operations(tr design.Treatment) ([]load.Operation, error) {
	m, err := t.machine(tr)
	if err != nil {
		return nil, err
	}
	ops, err := m.target.Operations(inGuest(tr))
	for i := range ops {
		ops[i].Negative = ops[i].Negative && m.holdsBaseline
		batch := ops[i].Batch
		if batch == nil {
			continue
		}
		ops[i].Batch = func(ctx context.Context, n int) ([]load.BatchSample, error) {
			samples, err := batch(ctx, n)
			return instructions(samples), err
		}
	}
	return ops, err
}

// instructions returns the CPU time of an emulated machine, whose clock advances by a nanosecond with each instruction,
// as a number of instructions. Its other times mean nothing; an amount of memory is what it is.
func instructions(samples []load.BatchSample) []load.BatchSample {
	const perSecond = 1e9
	for _, s := range samples {
		if s.Metric == metric.KernelMemory.Name {
			return samples
		}
		if s.Metric == metric.CPU.Name {
			return []load.BatchSample{{Metric: metric.Instructions.Name, Value: s.Value * perSecond}}
		}
	}
	return nil
}

// Endpoint implements area.Target: it is nil, since workers time themselves.
func (*labTarget) Endpoint(design.Treatment) (*load.Endpoint, error) { return nil, nil }

// Probes implements area.Target: it is nil, since workers time themselves.
func (*labTarget) Probes(design.Treatment) []probe.Probe { return nil }

// Notes implements area.Target: what every machine notes, and what its figures are.
func (t *labTarget) Notes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.machines) == 0 {
		return t.notes
	}
	var kernels []string
	for _, m := range t.machines {
		if !slices.Contains(kernels, m.kernel.Release) {
			kernels = append(kernels, m.kernel.Release)
		}
		if m.target == nil {
			continue
		}
		for _, n := range m.target.Notes() {
			if !slices.Contains(t.notes, n) {
				t.notes = append(t.notes, n)
			}
		}
	}
	first := fmt.Sprintf("measured in a lab VM that QEMU emulates, with Linux %s: the figures are guest "+
		"instructions, user space and kernel. They say how much more work a call is, not how much longer it takes: "+
		"instructions differ in the time that they take", strings.Join(kernels, " and "))
	if t.env.Trespasses {
		first = fmt.Sprintf("asked in a lab VM that QEMU emulates, with Linux %s: what was refused and permitted is what "+
			"that kernel decided. Rates, times and the capacity are those of the emulator and of a serial line",
			strings.Join(kernels, " and "))
	}
	return slices.Concat([]string{first}, t.notes, t.selinuxNotes())
}

// selinuxNotes says what a comparison of machines with SELinux and without it contains.
func (t *labTarget) selinuxNotes() []string {
	has := func(selinux bool) bool {
		return slices.ContainsFunc(t.machines, func(m *labMachine) bool { return m.selinux == selinux })
	}
	if !has(true) || !has(false) {
		return nil
	}
	return []string{"treatments without selinux, such as enforcer: none, were measured in a machine whose kernel does " +
		"not run SELinux: a difference from them contains what it costs that SELinux is active at all; compare with " +
		"{enforcer: selinux, mode: Unconfined} to see what a domain adds to that"}
}

// Close implements area.Target: it ends the machines, and all that is in them.
func (t *labTarget) Close(context.Context) error {
	t.Notes() // asks for what is known only at the end
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, m := range t.machines {
		errs = append(errs, t.end(m))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.machines, t.of = nil, map[string]*labMachine{}
	if t.folder == "" {
		return nil
	}
	if err := removeFolder(t.folder); err != nil {
		return fmt.Errorf("remove %s: %w", t.folder, err)
	}
	folder := t.folder
	t.folder = ""
	return t.journal.Undone(folderChange(folder))
}

// labPreflight looks for what a lab VM needs. The enforcers are tried in it once it has booted.
func (s *Spec) labPreflight(env area.Env) (out []area.Finding) {
	fault := func(err error) {
		if m, ok := errors.AsType[*vm.Missing](err); ok {
			err = area.WithHint(err, m.Install)
		}
		out = append(out, area.Fault("on", err, ""))
	}
	if _, err := vm.Emulator(); err != nil {
		fault(err)
	}
	all, err := vm.Kernels(kit.Environment(env.Getenv))
	if err != nil {
		fault(err)
		return append(out, s.missing()...)
	}
	for _, tr := range kit.AtLeastOne(env.Treatments) {
		if _, err := vm.FindKernel(all, tr.Levels[factorKernel]); err != nil {
			fault(area.WithHint(err, vm.InstallKernel(kit.Environment(env.Getenv))))
			break
		}
	}
	return append(out, s.missing()...)
}

// createsInLab lists what a run creates on this host, for the plan.
func (*Spec) createsInLab() []string {
	return []string{
		"a virtual machine in QEMU for each kernel of the treatments, another for those with BPF programs, and one for " +
			"each planted program, without disk and network; in them all that is measured",
		fmt.Sprintf("a folder %s* in %s for its initial file system, removed at the end", folderPrefix, os.TempDir()),
	}
}
