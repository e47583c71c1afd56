package engine

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"runtime"

	"tare/internal/build"
)

// opaVersion is what _opa/go.mod.txt pins.
const opaVersion = "1.22.0"

// opaSources is the Go module of OPA.
//
//go:embed _opa
var opaSources embed.FS

// opaModule returns how the pinned OPA is built, and the name of its folder in the cache.
func opaModule() (m build.GoModule, name string, err error) {
	files, err := build.ReadFiles(opaSources, "_opa")
	m = build.GoModule{Files: files, Hashed: "opasource/%s.txt", Binary: opaBinary} // as in earlier versions of tare
	return m, "opa-" + opaVersion + "-" + files.Hash(m.Hashed, runtime.GOOS, runtime.GOARCH), err
}

// findOPA prefers what was built already, which is the pinned version; then an opa in PATH, which needs no building;
// and then it builds.
func findOPA(ctx context.Context, h Host) (Launch, error) {
	m, name, err := opaModule()
	if err != nil {
		return Launch{}, err
	}
	_, ok, err := h.cache().Has(name)
	if err != nil {
		return Launch{}, missing(OPA, err)
	}
	if path, found := h.look("opa"); found && !ok {
		return foundOPA(ctx, h, path)
	}
	dir, err := h.cache().Get(ctx, build.Recipe{
		Name: name, Lock: "opa",
		Make: func(ctx context.Context, dir string) error { return buildOPA(ctx, h, m, dir) },
	})
	if err != nil {
		return Launch{}, missing(OPA, err)
	}
	return Launch{Kind: OPA, Path: filepath.Join(dir, opaBinary), Version: "OPA " + opaVersion}, nil
}

// TakesOPAFromPATH reports whether Find would take an opa in PATH, as far as that is known.
func (h Host) TakesOPAFromPATH() bool {
	_, name, err := opaModule()
	if err != nil {
		return false
	}
	_, found := h.look("opa")
	_, built, err := h.cache().Has(name)
	return found && !built && err == nil
}

// seekOPA is findOPA without building.
func seekOPA(ctx context.Context, h Host) (there bool, err error) {
	_, name, err := opaModule()
	if err != nil {
		return false, err
	}
	_, ok, err := h.cache().Has(name)
	if ok || err != nil {
		return ok, missing(OPA, err)
	}
	if path, found := h.look("opa"); found {
		_, err := foundOPA(ctx, h, path)
		return err == nil, err
	}
	_, err = build.FindGo(ctx, h.Getenv)
	return false, explainGo(err)
}

var opaSays = regexp.MustCompile(`(?m)^Version: (\S+)$`)

// foundOPA wraps an opa that does not speak package proc's protocol: see RunOPA.
func foundOPA(ctx context.Context, h Host, path string) (Launch, error) {
	out, err := build.Step{Path: path, Args: []string{"version"}}.Run(ctx)
	m := opaSays.FindStringSubmatch(out)
	if err != nil || m == nil {
		return Launch{}, &Missing{
			Kind: OPA, Reason: fmt.Sprintf("%s in PATH does not say its version (%v)",
				path, errors.Join(err, errors.New(build.Tail(out)))),
			Next: "mend it, or take it out of PATH to have tare build OPA " + opaVersion,
		}
	}
	l := h.own(OPA, "OPA "+m[1]+" ("+path+", its policies in a bundle)")
	return l, nil
}

const opaBinary = "tare-opa"

const installGo = "install Go 1.26 or newer (https://go.dev/dl), or put an opa into PATH " +
	"(https://www.openpolicyagent.org/docs#running-opa)"

// buildOPA builds the module from the sources in this binary. What it depends on is pinned by their go.sum.
func buildOPA(ctx context.Context, h Host, m build.GoModule, dir string) error {
	g, err := build.FindGo(ctx, h.Getenv)
	if err == nil {
		h.Log.Info("building an engine with the Go toolchain: done once, takes up to a few minutes",
			slog.String("engine", "OPA "+opaVersion))
		err = g.Make(ctx, m, dir)
	}
	return explainGo(err)
}

// explainGo adds what the user can do about a toolchain that cannot build; it returns nil for nil.
func explainGo(err error) error {
	fault := new(build.GoFault)
	if !errors.As(err, &fault) {
		if err != nil {
			err = fmt.Errorf("build opa: %w", err)
		}
		return err
	}
	switch fault.Fault {
	case build.NoGo:
		return &Missing{Kind: OPA, Reason: "no opa and " + fault.Says, Next: installGo}
	case build.TooOld:
		return &Missing{Kind: OPA, Reason: "the Go toolchain is too old: " + fault.Says, Next: installGo}
	case build.Unreachable:
		return &Missing{
			Kind: OPA, Reason: "the Go toolchain could not fetch OPA: " + fault.Says,
			Next: "give it access to a module proxy (go env GOPROXY) for one run, or put an opa into PATH",
		}
	case build.Altered, build.NoSpace, build.Killed, build.Other:
	}
	return fmt.Errorf("build opa: %w", err)
}
