package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"tare/engines"
)

// opaVersion is what engines/opa/go.mod pins.
const opaVersion = "1.22.0"

const opaSource = "opasource"

// findOPA prefers what was built already, which is the pinned version; then an opa in PATH, which needs no building; and then it builds.
func findOPA(ctx context.Context, h Host) (Launch, error) {
	sources, err := filesBelow(engines.Sources, opaSource)
	if err != nil {
		return Launch{}, err
	}
	hash, err := hashOf(engines.Sources, sources, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Launch{}, err
	}
	r := recipe{kind: OPA, name: "opa-" + opaVersion + "-" + hash, lock: "opa", make: func(ctx context.Context, dir string) error { return buildOPA(ctx, h, sources, dir) }}
	cache, err := h.cacheOf(OPA)
	if err != nil {
		return Launch{}, err
	}
	ok, err := exists(filepath.Join(cache, r.name))
	if err != nil {
		return Launch{}, err
	}
	if path, found := h.look("opa"); found && !ok {
		return foundOPA(ctx, h, path)
	}
	dir, err := h.built(ctx, r)
	if err != nil {
		return Launch{}, err
	}
	return Launch{Kind: OPA, Path: filepath.Join(dir, opaBinary), Version: "OPA " + opaVersion}, nil
}

var opaSays = regexp.MustCompile(`(?m)^Version: (\S+)$`)

// foundOPA wraps an opa that knows nothing of our protocol: see RunOPA.
func foundOPA(ctx context.Context, h Host, path string) (Launch, error) {
	out, err := step{path: path, args: []string{"version"}}.run(ctx)
	m := opaSays.FindStringSubmatch(out)
	if err != nil || m == nil {
		return Launch{}, &Missing{
			Kind: OPA, Reason: fmt.Sprintf("%s in PATH does not say its version (%v)", path, errors.Join(err, errors.New(tail(out)))),
			Next: "mend it, or take it out of PATH to have tare build OPA " + opaVersion,
		}
	}
	l := h.own(OPA, "OPA "+m[1]+" ("+path+")")
	return l, nil
}

const opaBinary = "tare-opa"

const installGo = "install Go 1.26 or newer (https://go.dev/dl), or put an opa into PATH (https://www.openpolicyagent.org/docs#running-opa)"

// buildOPA builds the module from the sources in this binary. What it depends on is pinned by their go.sum.
func buildOPA(ctx context.Context, h Host, sources []string, dir string) error {
	golang, ok := h.look("go")
	if !ok {
		return &Missing{Kind: OPA, Reason: "no opa and no Go toolchain was found in PATH", Next: installGo}
	}
	h.Log.Info("building an engine with the Go toolchain: done once, takes up to a few minutes", slog.String("engine", "OPA "+opaVersion))
	work := filepath.Join(dir, "work")
	if err := unpack(engines.Sources, sources, work); err != nil {
		return fmt.Errorf("build opa: %w", err)
	}
	for _, path := range sources {
		file := filepath.Join(work, filepath.Base(path))
		if err := os.Rename(file, strings.TrimSuffix(file, ".txt")); err != nil {
			return fmt.Errorf("build opa: %w", err)
		}
	}
	s := step{path: golang, dir: work, args: []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, opaBinary), "."}}
	// What the user has set for other builds would only change this one.
	s.env = []string{"GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GO111MODULE=on"}
	if out, err := s.run(ctx); err != nil {
		return explainGo(ctx, out, err)
	}
	return os.RemoveAll(work)
}

// explainGo tells what the host lacks from what is wrong with the build.
func explainGo(ctx context.Context, out string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("build opa: %w", ctx.Err())
	}
	if strings.Contains(out, "go.mod requires go >=") {
		return &Missing{Kind: OPA, Reason: "the Go toolchain is too old: " + firstLine(out), Next: installGo}
	}
	for _, words := range []string{"dial tcp", "no such host", "module lookup disabled", "connection refused", "i/o timeout", "404 Not Found", "502 ", "503 "} {
		if strings.Contains(out, words) {
			return &Missing{
				Kind: OPA, Reason: "the Go toolchain could not fetch OPA: " + firstLine(out),
				Next: "give it access to a module proxy (go env GOPROXY) for one run, or put an opa into PATH",
			}
		}
	}
	return fmt.Errorf("build opa: %w\n%s", err, tail(out))
}

// firstLine is the first line that is no message about a download, at most 300 bytes of it.
func firstLine(out string) string {
	const most = 300
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "go: downloading ") {
			return strings.ToValidUTF8(line[:min(len(line), most)], "")
		}
	}
	return "it did not say why"
}
