package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"time"

	"tare/areas/bundle"
	"tare/internal/build"
)

const (
	binary = "engine"
	crds   = "crds"
	// within bounds a build on a slow and busy machine.
	within = 2 * time.Hour
)

// Host is what Find may use of this host.
type Host struct {
	// Cache is the folder for what is built; empty: $TARE_CACHE/policy-engines, or tare/policy-engines in the user's cache
	// folder.
	Cache  string
	Log    *slog.Logger
	Getenv func(name string) (string, bool)
}

// A Program is an engine that was built.
type Program struct {
	Path    string
	Version string
	// Definitions is the folder with the CustomResourceDefinitions of that version.
	Definitions string
}

// Missing is the error when this host cannot have an engine.
type Missing struct{ What, Reason, Next string }

// Error implements error.
func (m *Missing) Error() string { return m.What + ": " + m.Reason }

// Hint returns the next step.
func (m *Missing) Hint() string { return m.Next }

// Find returns a version from the cache, or builds it there, which takes minutes once and needs a Go toolchain and the
// network.
func (k *Kind) Find(ctx context.Context, version string, h Host) (Program, error) {
	p, ok, err := k.Seek(ctx, version, h)
	if ok || err != nil {
		return p, err
	}
	_, err = h.Built().Get(ctx, build.Recipe{
		Name: k.folderName(version), Lock: "engine", Within: within,
		Make: func(ctx context.Context, dir string) error { return k.make(ctx, version, h, dir) },
	})
	return p, k.explain(version, err)
}

// Seek is Find without building: ok is false when Find would build. Where nothing can be built, it returns Find's
// error.
func (k *Kind) Seek(ctx context.Context, version string, h Host) (p Program, ok bool, err error) {
	if err := k.CheckVersion(version); err != nil {
		return p, false, err
	}
	dir, ok, err := h.Built().Has(k.folderName(version))
	p = Program{Path: filepath.Join(dir, binary), Version: version, Definitions: filepath.Join(dir, crds)}
	if err == nil && !ok {
		_, err = build.FindGo(ctx, h.Getenv)
	}
	return p, ok, k.explain(version, err)
}

// Built is the cache of what was built.
func (h Host) Built() build.Cache {
	return build.Cache{Dir: h.Cache, Sub: "policy-engines", Log: h.Log, Getenv: h.Getenv}
}

// form is part of a folder's name: it changes with what this package puts there.
const form = "3"

func (k *Kind) folderName(version string) string { return k.Name + "-" + version + "-" + form }

// named matches the name of a folder: a kind, a version and the form.
var named = regexp.MustCompile(`^([a-z-]+)-(\d.*)-` + form + `$`)

// Current reports, by name, which folders of the cache Find would use for some version.
func Current(name string) bool {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	k := Of(m[1])
	return k != nil && k.CheckVersion(m[2]) == nil
}

// make builds a version in dir.
func (k *Kind) make(ctx context.Context, version string, h Host, dir string) error {
	g, err := build.FindGo(ctx, h.Getenv)
	if err != nil {
		return err
	}
	h.Log.Warn("building a policy engine from its Go module, once", slog.String("engine", k.Title),
		slog.String("version", version), slog.Int("minutes_on_two_cores", k.minutes))
	m := build.Published{
		Path: k.module, Version: "v" + version, Sum: k.sums[version], Package: k.program, Binary: binary,
	}
	module, err := g.Fetch(ctx, m)
	if err != nil {
		return err
	}
	if k.definitions != "" {
		if err := bundle.Copy(dir, crds, filepath.Join(module, filepath.FromSlash(k.definitions)), nil); err != nil {
			return err
		}
	}
	if m.Edits, err = k.edits(module); err != nil {
		return err
	}
	return g.MakePublished(ctx, m, module, dir)
}

// explain turns an error of a build into a *Missing where a person can do something about it.
func (k *Kind) explain(version string, err error) error {
	if err == nil {
		return nil
	}
	what := k.Title + " " + version
	out := &Missing{What: what, Reason: err.Error()}
	if _, ok := errors.AsType[*build.NoFolder](err); ok {
		out.Next = "set " + build.Variable + " to a folder of your own"
		return out
	}
	fault, ok := errors.AsType[*build.GoFault](err)
	if !ok {
		return fmt.Errorf("build %s: %w", what, err)
	}
	switch fault.Fault {
	case build.NoGo, build.TooOld:
		out.Next = "install Go 1.26 or newer (https://go.dev/dl)"
	case build.Unreachable:
		out.Next = "see that there is such a version, and give Go access to a module proxy (go env GOPROXY) for one build"
	case build.Altered:
		out.Next = "look for what answers instead of the module proxy (go env GOPROXY)"
	case build.NoSpace:
		out.Next = "free about 5 GB, or have Go write to other disks (GOCACHE, GOMODCACHE, TMPDIR)"
	case build.Killed:
		out.Next = "free about 3 GiB of memory, or set GOMAXPROCS=1 to have one package compiled at a time"
	case build.Other:
		return fmt.Errorf("build %s: %w", what, err)
	}
	return out
}
