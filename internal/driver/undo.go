package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/area"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/proc"
)

// The kinds of changes that a Target journals, beside area.ProcessKind and NamedKind.
const (
	FolderKind   = "folder"   // a driver's folder
	PreparedKind = "prepared" // what a program made outside its folder; only the program can undo that
)

// Undoable reports whether Undo can undo changes of this kind.
func Undoable(c area.Change) bool {
	return c.Kind == kit.ProcessKind || c.Kind == FolderKind || c.Kind == PreparedKind || c.Kind == NamedKind
}

// keyFolder is where changes keep the path of their folder, including the changes that are folders.
const keyFolder = "path"

func folderChange(areaName, path string) area.Change {
	return area.Change{Area: areaName, Kind: FolderKind, ID: filepath.Base(path), Data: map[string]string{keyFolder: path}}
}

func processChange(areaName, id string, p proc.ID, folder string) area.Change {
	c := kit.ProcessChange(areaName, id, p)
	c.Data[keyFolder] = folder
	return c
}

// prepared is a preparation as data, from which its program can be started again. It holds only the names of
// environment variables, since values may be secret.
type prepared struct {
	Name        string
	Argv        []string
	Dir         string
	Env         []string
	Preparation Preparation
	Patience    time.Duration
}

// preparedChange returns the change for what a program is about to prepare.
func preparedChange(areaName string, p Program, what Preparation, patience time.Duration) (area.Change, error) {
	var names []string
	for _, v := range p.Env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	c := area.Change{Area: areaName, Kind: PreparedKind, ID: filepath.Base(what.Folder), Data: map[string]string{
		"name": p.Name, "dir": p.Dir, "run": what.Run, "treatment": what.Treatment, keyFolder: what.Folder,
		"patience": patience.String(),
	}}
	for key, v := range map[string]any{
		"program": append([]string{p.Path}, p.Args...), "env": names, "levels": what.Levels, "operations": what.Operations,
	} {
		text, err := json.Marshal(v)
		if err != nil {
			return c, fmt.Errorf("encode %s: %w", key, err)
		}
		c.Data[key] = string(text)
	}
	return c, nil
}

// parsePrepared parses a change of PreparedKind.
func parsePrepared(c area.Change) (prepared, error) {
	p := prepared{Name: c.Data["name"], Dir: c.Data["dir"], Preparation: Preparation{
		Run: c.Data["run"], Treatment: c.Data["treatment"], Folder: c.Data[keyFolder],
	}}
	var err error
	if p.Patience, err = time.ParseDuration(c.Data["patience"]); err != nil || p.Patience <= 0 {
		p.Patience = defaultPatience
	}
	for key, v := range map[string]any{
		"program": &p.Argv, "env": &p.Env, "levels": &p.Preparation.Levels,
		"operations": &p.Preparation.Operations,
	} {
		if err := json.Unmarshal([]byte(c.Data[key]), v); err != nil {
			return p, fmt.Errorf("read %s: %w", key, err)
		}
	}
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return p, errors.New("it names no program")
	}
	return p, ours(c.Area, p.Preparation.Folder)
}

// Undo undoes what a Target journaled. It may run in a new process, and repeatedly. First it ends all processes; then
// it starts each program again to undo its preparation; then it kills the named processes that still run, and removes
// the folders. It keeps the folders of preparations that could not be undone, which may need them. Errors name the
// program, the treatment and the folder.
func Undo(ctx context.Context, changes []area.Change, env area.Env) error {
	var errs []error
	kept := map[string]bool{} // folders
	for _, kind := range []string{kit.ProcessKind, PreparedKind, NamedKind, FolderKind} {
		for _, c := range changes {
			folder := c.Data[keyFolder]
			if c.Kind != kind || (kind == FolderKind || kind == NamedKind) && kept[folder] {
				continue
			}
			if err := undoOne(ctx, c, env); err != nil {
				errs = append(errs, fmt.Errorf("undo %s %s: %w", c.Kind, c.ID, err))
				kept[folder] = true
			}
		}
	}
	if i := slices.IndexFunc(changes, func(c area.Change) bool { return !Undoable(c) }); i >= 0 {
		errs = append(errs, fmt.Errorf("undo %s %s: a driver makes no such change", changes[i].Kind, changes[i].ID))
	}
	return errors.Join(errs...)
}

func undoOne(ctx context.Context, c area.Change, env area.Env) error {
	switch c.Kind {
	case kit.ProcessKind:
		return endProcess(c)
	case PreparedKind:
		p, err := parsePrepared(c)
		if err != nil {
			return err
		}
		return p.undo(ctx, env)
	case NamedKind:
		return kit.KillProcess(c)
	}
	return clearFolder(c.Area, c.Data[keyFolder])
}

// endProcess kills a driver and its process group.
func endProcess(c area.Change) error {
	if err := kit.KillProcess(c); err != nil {
		return err
	}
	pid, err := strconv.Atoi(c.Data["pid"])
	if err != nil {
		return fmt.Errorf("pid: %w", err)
	}
	if err := ours(c.Area, c.Data[keyFolder]); err != nil {
		return err
	}
	return proc.EndMarked(Mark+"="+c.Data[keyFolder], pid)
}

// undo starts the program again and makes it undo the preparation.
func (p prepared) undo(ctx context.Context, env area.Env) error {
	program, missing := p.program(env)
	err := p.ask(ctx, program, env)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s (%s, in %s) has prepared treatment %q, run %s, in folder %s and elsewhere, and does not undo "+
		"it: %w", p.Name, strings.Join(p.Argv, " "), p.Dir,
		p.Preparation.Treatment, p.Preparation.Run, p.Preparation.Folder, err)
	if len(missing) > 0 {
		err = fmt.Errorf("%w; then it had the environment variables %s, which are not set now", err,
			strings.Join(missing, ", "))
	}
	return err
}

// program returns the program with the current values of its variables; missing are those that are not set.
func (p prepared) program(env area.Env) (_ Program, missing []string) {
	out := Program{Name: p.Name, Path: p.Argv[0], Args: p.Argv[1:], Dir: p.Dir}
	for _, name := range p.Env {
		value, ok := "", false
		if env.Getenv != nil {
			value, ok = env.Getenv(name)
		}
		if !ok {
			missing = append(missing, name)
			continue
		}
		out.Env = append(out.Env, name+"="+value)
	}
	return out, missing
}

// undoLog returns the log file for undo; "" where none can be written, since undo must work on a full disk.
func undoLog(dir string) string {
	if dir == "" {
		return ""
	}
	path := filepath.Join(dir, "driver-undo.log")
	f, err := files.Append(path)
	if err != nil {
		return ""
	}
	_ = f.Close() // nothing was written
	return path
}

func (p prepared) ask(ctx context.Context, program Program, env area.Env) error {
	folder := p.Preparation.Folder
	if err := restoreFolder(folder); err != nil {
		return err
	}
	c, err := launch{program: program, folder: folder, log: undoLog(env.Dir), cpus: env.CPUs}.start(ctx)
	if err != nil {
		return err
	}
	if _, err = describe(ctx, c, p.Patience); err == nil {
		_, err = c.ask(ctx, p.Patience, Request{Do: DoUndo, Preparation: &p.Preparation}, nil)
	}
	if untidy := c.stop(context.WithoutCancel(ctx)); untidy != "" && err == nil && env.Log != nil {
		env.Log.Warn("a program that has undone its preparation did not end properly", slog.String("why", untidy))
	}
	return err
}
