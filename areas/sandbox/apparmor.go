package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/policy"
	"tare/areas/sandbox/workload"
	"tare/internal/files"
)

// appArmor is AppArmor (apparmor(7)): a profile that the kernel attaches at execve decides on files, capabilities,
// mounts, networking by family and ptrace.
type appArmor struct{}

var _ Enforcer = appArmor{}

// changeNamespace is the kind of change of AppArmor's policy: all that a run loads, under one name.
const changeNamespace = "apparmor-namespace"

// mostAppArmorRules bounds the further rules: the compiler takes the longer the more there are.
const mostAppArmorRules = 10_000

// Name implements Enforcer.
func (appArmor) Name() string { return enforcerAppArmor }

// Help implements Enforcer.
func (appArmor) Help() string {
	return "an AppArmor profile with rules on files, programs, mounts, capabilities and ptrace; needs root"
}

// Express implements Enforcer.
func (appArmor) Express(p Policy) error {
	switch {
	case p.AppFile != nil:
		return p.AppFile.expressOwn(p)
	case p.Mode == Unconfined:
		return errors.New("mode: Unconfined is what enforcer: none is on a kernel with AppArmor")
	case p.Match > maxMatch:
		return fmt.Errorf("match: paths can share up to %d components here, not %d: what follows differs from worker to "+
			"worker", maxMatch, p.Match)
	case p.Rules > mostAppArmorRules:
		return fmt.Errorf("rules: apparmor takes up to %d further rules here, not %d", mostAppArmorRules, p.Rules)
	}
	if p.Own == nil {
		return nil
	}
	if _, cannot := apparmor.Profile("x", p.Own.Policy); len(cannot) > 0 {
		return fmt.Errorf("rules: apparmor cannot express all of %s: %s", p.Own.Name, strings.Join(cannot, "; "))
	}
	return nil
}

// Probe implements Enforcer.
func (a appArmor) Probe(ctx context.Context, try func(context.Context, Policy) error) error {
	if err := apparmor.Probe(ctx, apparmor.Namespace(trialRun())); err != nil {
		return err
	}
	return try(ctx, Policy{Enforcer: a.Name(), Mode: AlwaysAllow, Rules: 1})
}

// Install implements Enforcer: it compiles and loads the profile.
func (appArmor) Install(ctx context.Context, p *Policy, h *host) error {
	if p.AppFile != nil {
		return p.AppFile.install(ctx, p, h)
	}
	namespace, err := h.appArmorNamespace(apparmor.Namespace(h.run))
	if err != nil {
		return err
	}
	loaded, err := apparmor.LoadPolicy(ctx, namespace, filepath.Base(p.Dir), p.appArmorModel())
	p.AppArmor, p.compiled = &loaded.Label, loaded.Compiled
	return err
}

// appArmorNamespace returns the name under which profiles are loaded. The first call for each journals it.
func (h *host) appArmorNamespace(name string) (string, error) {
	if slices.Contains(h.namespaces, name) {
		return name, nil
	}
	change := area.Change{
		Area: areaName, Kind: changeNamespace, ID: name, Data: map[string]string{"namespace": name},
	}
	if err := h.journal.Intend(change); err != nil {
		return "", fmt.Errorf("journal AppArmor's profiles: %w", err)
	}
	h.namespaces = append(h.namespaces, name)
	h.onClose(func(context.Context) error {
		if err := apparmor.Remove(name); err != nil {
			return err
		}
		h.namespaces = slices.DeleteFunc(h.namespaces, func(n string) bool { return n == name })
		return h.journal.Undone(change)
	})
	return name, nil
}

// Confine implements Enforcer: the profile holds from the next execve on.
func (appArmor) Confine(p Policy) error {
	if p.AppArmor == nil {
		return errors.New("the profile has not been loaded")
	}
	return apparmor.Enter(*p.AppArmor)
}

// compiledFile is where a process that loads copies of a profile finds it compiled.
const (
	compiledFile = "compiled.apparmor"
	// mostCompiled bounds it, in bytes.
	mostCompiled = 64 << 20
)

// Stage implements stager: the profile is loaded, and confines the thread at once instead of at its next execve.
func (appArmor) Stage(p Policy) (workload.Steps, error) {
	if p.AppArmor == nil {
		return workload.Steps{}, errors.New("the profile has not been loaded")
	}
	profile := apparmor.Loaded{Label: *p.AppArmor}
	var err error
	profile.Compiled, err = files.Read(filepath.Join(p.Scratch, compiledFile), mostCompiled)
	return workload.Steps{
		Confine: func() error { return apparmor.Change(*p.AppArmor) },
		Load:    func() error { return profile.LoadCopy(0) },
		Unload:  func() error { return profile.RemoveCopy(0) },
	}, err
}

var (
	_ stager = appArmor{}
	_ filler = appArmor{}
)

// Fill implements filler: it loads copies of the profile.
func (appArmor) Fill(_ context.Context, p Policy, n int, _ *host) (func(context.Context) error, error) {
	profile := apparmor.Loaded{Label: *p.AppArmor, Compiled: p.compiled}
	loaded := 0
	remove := func(context.Context) error {
		for ; loaded > 0; loaded-- {
			if err := profile.RemoveCopy(loaded); err != nil {
				return err
			}
		}
		return nil
	}
	for loaded < n {
		if err := profile.LoadCopy(loaded + 1); err != nil {
			return nil, errors.Join(err, remove(context.Background()))
		}
		loaded++
	}
	return remove, nil
}

// appArmorModel adds the rule that proves the profile.
func (p Policy) appArmorModel() policy.Policy {
	canary := policy.Path(filepath.Dir(p.Dir) + "/" + policy.Wildcard + "/" + appArmorCanary)
	return p.model().And(policy.Policy{Files: []policy.File{{Path: canary, Access: []policy.Access{policy.Read}}}})
}

// appArmorCanary is the name of a file that no profile of this enforcer allows to read.
const appArmorCanary = "proof.apparmor"

// Prove implements Enforcer: the kernel names the profile, and the rules hold.
func (appArmor) Prove(x *proof, p Policy) {
	x.wantLabel(p)
	if p.AppFile != nil {
		p.AppFile.opens.prove(x, p.AppFile.file.Text)
		return
	}
	x.wantRefused(unix.EACCES, tryOpen, filepath.Join(p.Scratch, appArmorCanary))
	x.proveFiles(p.model(), unix.EACCES)
	x.wantUsable(p)
}

// wantLabel requires that the kernel names the loaded profile as the worker's, and enforces it.
func (x *proof) wantLabel(p Policy) {
	pid, ok := x.pid()
	if !ok {
		return
	}
	label, err := apparmor.Current(pid)
	if err != nil {
		x.wrong = append(x.wrong, fmt.Sprintf("the kernel names no AppArmor profile: %v", err))
		return
	}
	if p.AppArmor == nil || label != *p.AppArmor {
		x.wrong = append(x.wrong, fmt.Sprintf("the kernel says that AppArmor's %s confines the process, want %v", label,
			p.AppArmor))
	}
}

// Absent implements Enforcer.
func (appArmor) Absent(x *proof, p Policy) {
	x.wantNot(unix.EACCES, tryOpen, filepath.Join(p.Scratch, appArmorCanary))
}

// Inert implements Enforcer: AppArmor mediates neither a fork, nor a computation, nor a system call that does nothing.
func (appArmor) Inert(workload string) bool {
	return workload == workFork || workload == workCompute || workload == workSyscall
}

// Describe implements Enforcer.
func (appArmor) Describe(p Policy) string {
	if p.AppFile != nil {
		return p.AppFile.describe()
	}
	m := p.model()
	text := fmt.Sprintf("an AppArmor profile that allows all but %d rules on files, %d on programs, %d on mounts and %d "+
		"capabilities, and one for the proof", len(m.Files), len(m.Execs), len(m.Mounts), len(m.Capabilities))
	if n := len(m.Connects); n > 0 {
		text += fmt.Sprintf("; %d rules on addresses are not expressible and left out", n)
	}
	text += p.Own.describe()
	return text
}
