// Package kyverno builds Kyverno's admission controller from its published module, runs it beside a control plane of
// tare's own, and reads what it counts.
package kyverno

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tare/areas/bundle"
	"tare/internal/build"
)

// Default is the version that runs where the file names none.
const Default = "1.19.1"

// sums are the checksums of the versions that tare was tried with. Go's checksum database vouches for others.
var sums = map[string]string{
	"1.18.2": "h1:w/p1ysSEzOuMO4DaYmpiJ5YioL4OCkgmFFC5cJqiJ68=",
	"1.19.1": "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU=",
}

const (
	modulePath = "github.com/kyverno/kyverno"
	binary     = "kyverno"
	crds       = "crds"
	// within bounds a build on a slow and busy machine; on two idle cores it takes eight minutes.
	within = 2 * time.Hour
)

// release is a version that can be built and run as this package does.
var release = regexp.MustCompile(`^1\.(1[89]|[2-9]\d)\.\d{1,3}(-[a-z]+\.\d{1,3})?$`)

// CheckVersion reports why a version cannot be run.
func CheckVersion(v string) error {
	if !release.MatchString(v) {
		return fmt.Errorf("%q is no version of Kyverno from 1.18.0 on, such as %s", v, Default)
	}
	return nil
}

// Host is what Find may use of this host.
type Host struct {
	Cache  string // folder for what is built; empty: $TARE_CACHE/kyverno, or tare/kyverno in the user's cache folder
	Log    *slog.Logger
	Getenv func(name string) (string, bool)
}

// A Program is a Kyverno that was built.
type Program struct {
	Path    string
	Version string
	// Definitions is the folder with the CustomResourceDefinitions of that version.
	Definitions string
}

// Missing is the error when this host cannot have Kyverno.
type Missing struct{ Version, Reason, Next string }

// Error implements error.
func (m *Missing) Error() string { return "Kyverno " + m.Version + ": " + m.Reason }

// Hint returns the next step.
func (m *Missing) Hint() string { return m.Next }

// Find returns a version from the cache, or builds it there, which takes minutes once and needs a Go toolchain and the
// network.
func Find(ctx context.Context, version string, h Host) (Program, error) {
	p, ok, err := Seek(ctx, version, h)
	if ok || err != nil {
		return p, err
	}
	_, err = h.Built().Get(ctx, build.Recipe{
		Name: filepath.Base(filepath.Dir(p.Path)), Lock: "kyverno", Within: within,
		Make: func(ctx context.Context, dir string) error { return h.make(ctx, version, dir) },
	})
	return p, explain(version, err)
}

// Seek is Find without building: ok is false when Find would build. Where nothing can be built, it returns Find's error.
func Seek(ctx context.Context, version string, h Host) (p Program, ok bool, err error) {
	if err := CheckVersion(version); err != nil {
		return p, false, err
	}
	dir, ok, err := h.Built().Has(folderName(version))
	p = Program{Path: filepath.Join(dir, binary), Version: version, Definitions: filepath.Join(dir, crds)}
	if err == nil && !ok {
		_, err = build.FindGo(ctx, h.Getenv)
	}
	return p, ok, explain(version, err)
}

// Built is the cache of what was built.
func (h Host) Built() build.Cache {
	return build.Cache{Dir: h.Cache, Sub: "kyverno", Log: h.Log, Getenv: h.Getenv}
}

// form is part of a folder's name: it changes with what this package puts there.
const form = "1"

func folderName(version string) string { return version + "-" + form }

// Current reports, by name, which folders of the cache Find would use for some version.
func Current(name string) bool {
	version, ok := strings.CutSuffix(name, "-"+form)
	return ok && CheckVersion(version) == nil
}

// make builds a version in dir.
func (h Host) make(ctx context.Context, version, dir string) error {
	g, err := build.FindGo(ctx, h.Getenv)
	if err != nil {
		return err
	}
	h.Log.Warn("building Kyverno from its Go module: about 8 minutes on two cores, once",
		slog.String("version", version))
	m := build.Published{
		Path: modulePath, Version: "v" + version, Sum: sums[version], Package: "./cmd/kyverno", Binary: binary,
	}
	module, err := g.Fetch(ctx, m)
	if err != nil {
		return err
	}
	if err := bundle.Copy(dir, crds, filepath.Join(module, "config", "crds")); err != nil {
		return err
	}
	return g.MakePublished(ctx, m, module, dir)
}

// explain turns an error of a build into a *Missing where a person can do something about it.
func explain(version string, err error) error {
	if err == nil {
		return nil
	}
	out := &Missing{Version: version, Reason: err.Error()}
	if _, ok := errors.AsType[*build.NoFolder](err); ok {
		out.Next = "set " + build.Variable + " to a folder of your own"
		return out
	}
	fault, ok := errors.AsType[*build.GoFault](err)
	if !ok {
		return fmt.Errorf("build Kyverno %s: %w", version, err)
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
		return fmt.Errorf("build Kyverno %s: %w", version, err)
	}
	return out
}
