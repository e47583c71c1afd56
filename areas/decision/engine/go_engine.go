package engine

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"

	"tare/internal/build"
)

// A goEngine is a decision point that is built from a Go module in this binary. What that depends on is pinned by its
// go.sum.
type goEngine struct {
	kind                   Kind
	title, version, binary string // version is what the module's go.mod pins
	sources                embed.FS
	folder, hashed         string // of the sources, and how their names are hashed
	// otherwise and install say what a user can do in place of giving a toolchain access to a module proxy, and of
	// installing one; "": nothing.
	otherwise, install string
}

// module returns how the engine is built, and the name of its folder in the cache.
func (e goEngine) module() (m build.GoModule, name string, err error) {
	files, err := build.ReadFiles(e.sources, e.folder)
	m = build.GoModule{Files: files, Hashed: e.hashed, Binary: e.binary}
	return m, string(e.kind) + "-" + e.version + "-" + files.Hash(m.Hashed, runtime.GOOS, runtime.GOARCH), err
}

// built reports whether the engine is in the cache.
func (e goEngine) built(h Host) (bool, error) {
	_, name, err := e.module()
	if err != nil {
		return false, err
	}
	_, ok, err := h.cache().Has(name)
	return ok, missing(e.kind, err)
}

// find builds the engine, if it is not in the cache.
func (e goEngine) find(ctx context.Context, h Host) (Launch, error) {
	m, name, err := e.module()
	if err != nil {
		return Launch{}, err
	}
	dir, err := h.cache().Get(ctx, build.Recipe{
		Name: name, Lock: string(e.kind),
		Make: func(ctx context.Context, dir string) error { return e.make(ctx, h, m, dir) },
	})
	if err != nil {
		return Launch{}, missing(e.kind, err)
	}
	return Launch{Kind: e.kind, Path: filepath.Join(dir, e.binary), Version: e.title + " " + e.version}, nil
}

// seek reports whether the engine is in the cache, and why it cannot be built if that is known.
func (e goEngine) seek(ctx context.Context, h Host) (there bool, err error) {
	if ok, err := e.built(h); ok || err != nil {
		return ok, err
	}
	_, err = build.FindGo(ctx, h.Getenv)
	return false, e.explain(err)
}

func (e goEngine) make(ctx context.Context, h Host, m build.GoModule, dir string) error {
	g, err := build.FindGo(ctx, h.Getenv)
	if err == nil {
		h.Log.Info("building an engine with the Go toolchain: done once, takes up to a few minutes",
			slog.String("engine", e.title+" "+e.version))
		err = g.Make(ctx, m, dir)
	}
	return e.explain(err)
}

// explain adds what the user can do about a toolchain that cannot build; it returns nil for nil.
func (e goEngine) explain(err error) error {
	fault := new(build.GoFault)
	if !errors.As(err, &fault) {
		if err != nil {
			err = fmt.Errorf("build %s: %w", e.kind, err)
		}
		return err
	}
	or := func(next, other string) string {
		if other == "" {
			return next
		}
		return next + ", or " + other
	}
	installGo := or("install Go 1.26 or newer (https://go.dev/dl)", e.install)
	switch fault.Fault {
	case build.NoGo:
		return &Missing{Kind: e.kind, Reason: fmt.Sprintf("no %s and %s", e.kind, fault.Says), Next: installGo}
	case build.TooOld:
		return &Missing{Kind: e.kind, Reason: "the Go toolchain is too old: " + fault.Says, Next: installGo}
	case build.Unreachable:
		return &Missing{
			Kind: e.kind, Reason: fmt.Sprintf("the Go toolchain could not fetch %s: %s", e.title, fault.Says),
			Next: or("give it access to a module proxy (go env GOPROXY) for one run", e.otherwise),
		}
	case build.Altered, build.NoSpace, build.Killed, build.Other:
	}
	return fmt.Errorf("build %s: %w", e.kind, err)
}
