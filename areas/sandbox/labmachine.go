package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/kit/remote"
	"tare/internal/proc"
	"tare/internal/unit"
)

// labSecurity is the security modules of a lab VM.
const labSecurity = "landlock,lockdown,yama,apparmor,bpf"

// labKind says which treatments share a machine. BPF programs and SELinux act upon all processes of a machine, so
// treatments without them have another one, and each planted program has its own.
type labKind struct {
	kernel  vm.Kernel
	bpf     bool
	selinux bool
	planted plantedProgram
}

func (k labKind) name() string {
	name := k.kernel.Release
	if k.bpf {
		name += "-bpf"
	}
	if k.selinux {
		name += "-selinux"
	}
	if k.planted.attached {
		name += fmt.Sprintf("-planted%d", k.planted.instructions)
	}
	return name
}

// security returns the security modules of the machine: SELinux and AppArmor exclude each other.
func (k labKind) security() string {
	if k.selinux {
		return strings.Replace(labSecurity, enforcerAppArmor, enforcerSELinux, 1)
	}
	return labSecurity
}

// labMachine is a lab VM with the target in it.
type labMachine struct {
	labKind

	vm     *vm.Machine
	target *remote.Target
	// changes are QEMU's processes: a boot may take two attempts
	changes []area.Change
	// holdsBaseline says that a baseline runs here, so that negative controls are known.
	holdsBaseline bool
}

func (t *labTarget) kindOf(tr design.Treatment) (labKind, error) {
	p, err := t.spec.plan(tr)
	if err != nil {
		return labKind{}, err
	}
	all, err := vm.Kernels(kit.Environment(t.env.Getenv))
	if err != nil {
		return labKind{}, err
	}
	kernel, err := vm.FindKernel(all, tr.Levels[factorKernel])
	return labKind{kernel, p.stack.has(enforcerBPF), p.stack.has(enforcerSELinux), p.program}, err
}

// boot boots a machine with that kernel, journaled before it does anything.
func (t *labTarget) boot(ctx context.Context, kind labKind) (*labMachine, error) {
	emulator, err := vm.Emulator()
	if err != nil {
		return nil, err
	}
	initrd, err := t.initrd(ctx)
	if err != nil {
		return nil, fmt.Errorf("write the initial file system of the lab VM: %w", err)
	}
	m := &labMachine{labKind: kind}
	t.machines = append(t.machines, m) // added before it runs, so that Close finds it
	m.vm, err = vm.Boot(ctx, vm.Options{
		Emulator: emulator, Kernel: kind.kernel, Initrd: initrd,
		Init: []string{vm.GuestSelf, "lab", "init", "agent", areaName},
		LSM:  kind.security(), Clock: t.env.Clock, Dir: t.env.Dir, Name: kind.name(),
		CPUs: t.env.CPUs, Processors: t.processors(kind),
		Born: func(id proc.ID) error {
			c := kit.ProcessChange(areaName, fmt.Sprintf("vm-%d", id.PID), id)
			m.changes = append(m.changes, c)
			return t.journal.Intend(c)
		},
	})
	if err != nil {
		return nil, err
	}
	m.target = remote.New(remote.Peer{
		Name: "the lab VM " + kind.name(), Stream: m.vm.Link, Exited: m.vm.Exited(), Failed: m.vm.Failed,
		Patience: labPatience, Repeat: labRepeat, RepeatWithin: labRepeat * labSpan, Stalled: m.vm.Stalled, Check: labCheck,
	})
	return m, nil
}

// open opens the target in the machine, after its enforcers have been tried there.
func (t *labTarget) open(ctx context.Context, m *labMachine) error {
	inside := *t.spec
	inside.On = onGuest
	inside.Span, inside.Rounds = cmp.Or(inside.Span, unit.Duration(labSpan)), cmp.Or(inside.Rounds, labRounds)
	spec, err := json.Marshal(&inside)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	setup := remote.Setup{
		Spec: spec, Run: t.env.Run, Dir: dir, Trespasses: t.env.Trespasses, Chosen: t.env.Operations,
	}
	for _, tr := range t.env.Treatments {
		if k, err := t.kindOf(tr); err == nil && k == m.labKind {
			setup.Treatments = append(setup.Treatments, inGuest(tr))
		}
	}
	findings, err := m.target.Preflight(ctx, setup)
	if err != nil {
		return err
	}
	notes, err := labFindings(m.kernel.Release, findings)
	t.notes = append(t.notes, notes...)
	if err != nil {
		return err
	}
	return m.target.Open(ctx, setup)
}

// labFindings returns what a preflight in a lab VM has found, as notes. The first error names the warnings before it,
// which may say why: what a profile refuses.
func labFindings(release string, findings []area.Finding) (notes []string, err error) {
	var warnings string
	for _, f := range findings {
		switch f.Severity {
		case area.Error:
			return notes, area.WithHint(fmt.Errorf("in the lab VM (Linux %s): %s%s", release, f.Message, warnings), f.Hint)
		case area.Warning:
			warnings += "; " + f.Message
		case area.Info:
		}
		notes = append(notes, fmt.Sprintf("Linux %s: %s", release, f.Message))
	}
	return notes, nil
}

func (t *labTarget) end(m *labMachine) error {
	if m.vm != nil {
		if err := m.vm.Close(); err != nil {
			return err
		}
		m.vm = nil
	}
	var errs []error
	for _, c := range m.changes {
		errs = append(errs, t.journal.Undone(c))
	}
	m.changes = nil
	return errors.Join(errs...)
}

// initrd writes the initial file system once for all machines.
func (t *labTarget) initrd(ctx context.Context) (string, error) {
	if t.folder == "" {
		var err error
		if t.folder, err = makeFolder(t.journal); err != nil {
			return "", err
		}
	}
	path := filepath.Join(t.folder, "initrd")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	r, err := t.spec.guestFiles(ctx, t.env)
	if err != nil {
		return "", err
	}
	err = r.Save(path)
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("%w; set TMPDIR to a folder with some hundred MiB of free space", err)
	}
	return path, err
}
