// Package sandbox is the area of kernel enforcers: what exec, open, connect, fork, file copies, pipes, system calls and
// real workloads cost under seccomp or Landlock, by mode and number of rules.
//
// Each sample runs in its own worker, a child of this program that is irrevocably confined before it does anything.
// Before anything is timed, the worker proves that what must be refused is refused. The workers of all treatments run
// side by side and take turns of milliseconds.
package sandbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/internal/kit"
)

// Area is the sandbox area.
type Area struct{}

var _ area.Area = Area{}

const areaName = "sandbox"

// killed is the signal that ends a hanging worker.
const killed = syscall.SIGKILL

// The kinds of changes.
const (
	changeFolder = "folder"
)

// folderPrefix begins the name of every folder that this area makes, directly in the folder for temporary files.
const folderPrefix = "tare-sandbox-"

// Name implements area.Area.
func (Area) Name() string { return areaName }

// Offers implements area.Area.
func (Area) Offers() area.Offers {
	return area.Offers{
		AnyRate: area.No("an enforcer has no queue that overflows: it makes each call dearer, at any rate; ask " +
			"compare what it adds, " +
			"and scale how that grows"),
		SteadyLoad: area.No("an enforcer keeps nothing that could drift over hours: its rules are fixed when a process " +
			"starts; ask compare"),
		Trespasses: area.Yes,
	}
}

// NewSpec implements area.Area.
func (Area) NewSpec() area.Spec { return &Spec{} }

// Open implements area.Area. It changes nothing.
func (Area) Open(_ context.Context, s area.Spec, env area.Env) (area.Target, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if spec.On == onLab {
		return openLab(spec, env)
	}
	cpus, err := workerCPUs(env, 1)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	return &target{spec: spec, env: env, cpus: cpus, arms: map[string]*arm{}, multiple: 1}, nil
}

// Undo implements area.Area: it kills journaled processes and removes journaled folders, in the order given.
func (Area) Undo(_ context.Context, changes []area.Change, _ area.Env) error {
	return kit.UndoEach(changes, undo)
}

func undo(c area.Change) error {
	switch c.Kind {
	case kit.ProcessKind:
		return kit.KillProcess(c)
	case changeFolder:
		if err := endInside(c.Data["path"]); err != nil {
			return err
		}
		return removeFolder(c.Data["path"])
	case changeNamespace:
		return apparmor.Remove(c.Data["namespace"])
	}
	return errors.New("this area makes no such change")
}

func folderChange(path string) area.Change {
	return area.Change{Area: areaName, Kind: changeFolder, ID: filepath.Base(path), Data: map[string]string{"path": path}}
}

// Parts implements area.Area.
func (a Area) Parts() area.Parts {
	return area.Parts{
		Program: contents, Servers: servers(), Adapters: kit.Adapters(a.Adapters()), Presets: kit.Named(a.Presets()),
		Commands: commands, CompareCommands: compareCommands, Checks: checks, Files: embedded,
	}
}

func servers() map[string]area.Serve {
	return kit.Servers(serve, serverShim, serverWorker, serverSetUp, serverOthers)
}

// contents is area.Parts.Program: what says what is measured are the profiles and rules of the treatments.
func contents(_ context.Context, s area.Spec, env area.Env) (area.Program, error) {
	all, err := Area{}.Contents(s, env.Treatments)
	return area.Program{Identity: all, Files: true}, err
}

// embedded are area.Parts.Files.
//
//go:embed templates words.md
var embedded embed.FS
