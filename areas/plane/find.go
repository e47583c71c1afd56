package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tare/internal/build"
	"tare/internal/clock"
)

// The environment variables that name an existing binary.
const (
	Variable    = "TARE_PLANE"
	VariablePSP = "TARE_PLANE_PSP"
)

// protocol is the version of the components' configuration protocol (_kubernetes/shared/component.go), which a named
// binary must implement.
const protocol = "2"

// tryWithin bounds "tare-plane version". It takes 50 ms, and reads 120 MB; on a very busy host it took more than 10 s.
const tryWithin = time.Minute

// Host is what Find may use of this host.
type Host struct {
	Path   string // the user's own binary; empty: none
	Cache  string // folder for built binaries; empty: $TARE_CACHE/plane, or tare/plane in the user's cache folder
	Log    *slog.Logger
	Getenv func(name string) (string, bool)
	// Tell receives progress lines for a person who waits for a build: the first immediately, then one every 20 s at most;
	// nil: the log receives them.
	Tell func(line string)
	// Clock is the system's if nil.
	Clock clock.Clock
}

// A Binary is a program that is built from _kubernetes: "Path COMPONENT" is a child process that speaks the
// protocol of package proc.
type Binary struct {
	Path       string
	Version    Version
	Kubernetes string // "v1.36.3"
	Etcd       string // "v3.6.8"
	Go         string // the Go version that compiled it
}

// Find returns the binary of a version: the user's own (Host.Path, $TARE_PLANE or $TARE_PLANE_PSP), or the one in the
// cache, or it builds one, which takes minutes once and needs a Go toolchain and the network. The error is a *Missing
// when the host lacks something.
func Find(ctx context.Context, v Version, h Host) (Binary, error) {
	s, err := v.source()
	if err != nil {
		return Binary{}, err
	}
	if b, ok, err := h.present(ctx, v, s); ok || err != nil {
		return b, err
	}
	return h.compile(ctx, v, s)
}

// Cached is Find without building: ok is false when there is no working binary yet.
func Cached(ctx context.Context, v Version, h Host) (b Binary, ok bool) {
	s, err := v.source()
	if err != nil {
		return Binary{}, false
	}
	b, ok, err = h.present(ctx, v, s)
	return b, ok && err == nil
}

// Seek is Find without building, to announce what Find would do: there is false when Find would build the binary. It
// returns Find's error as far as it is known without a build.
func Seek(ctx context.Context, v Version, h Host) (b Binary, there bool, err error) {
	s, err := v.source()
	if err != nil {
		return Binary{}, false, err
	}
	if b, there, err = h.present(ctx, v, s); there || err != nil {
		return b, there, err
	}
	if _, err = build.FindGo(ctx, h.Getenv); err != nil {
		err = explain(v, s, err)
	}
	return Binary{}, false, err
}

// present returns the user's own binary or the one in the cache, if there is one.
func (h Host) present(ctx context.Context, v Version, s source) (b Binary, ok bool, err error) {
	c, ok := h.named(s)
	if !ok {
		c, ok, err = h.cached(ctx, v, s)
	}
	if !ok || err != nil {
		return Binary{}, false, err
	}
	b, err = c.identify(ctx, v)
	return b, err == nil, err
}

// A candidate is a file that may be a binary.
type candidate struct {
	path, by string
	next     string // what to do if it is not
	within   time.Duration
}

// named returns the binary that the user named.
func (h Host) named(s source) (candidate, bool) {
	c := candidate{path: h.Path, within: tryWithin, by: "named", next: "name another, or none to have tare build it"}
	if c.path == "" {
		c.path, _ = h.Getenv(s.variable)
		c.by, c.next = "$"+s.variable, "set $"+s.variable+" to another, or unset it to have tare build it"
	}
	return c, c.path != ""
}

func inCache(path string) candidate {
	return candidate{path: path, within: tryWithin, by: "in tare's cache", next: "remove the folder " +
		filepath.Dir(path) + " to have it built again"}
}

func (h Host) cache() build.Cache {
	return build.Cache{Dir: h.Cache, Sub: "plane", Log: h.Log, Getenv: h.Getenv}
}

// cached looks for a binary that the installed toolchain built or, without a toolchain, that any built.
func (h Host) cached(ctx context.Context, v Version, s source) (candidate, bool, error) {
	m, err := s.module()
	if err != nil {
		return candidate{}, false, err
	}
	g, none := build.FindGo(ctx, h.Getenv)
	if ctx.Err() != nil {
		return candidate{}, false, ctx.Err()
	}
	dir, ok, err := h.cache().Has(folderName(v, m, g.Version))
	if none != nil && err == nil {
		if dir, ok, err = newestFolder(dir); ok {
			_, ok, err = h.cache().Has(filepath.Base(dir)) // marks it as used
		}
	}
	if err != nil {
		return candidate{}, false, explain(v, s, err)
	}
	return inCache(filepath.Join(dir, m.Binary)), ok, nil
}

// newestFolder returns the most recent folder with this prefix.
func newestFolder(prefix string) (dir string, ok bool, err error) {
	entries, err := os.ReadDir(filepath.Dir(prefix))
	var made time.Time
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), filepath.Base(prefix)) || strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		info, err := e.Info()
		if err == nil && info.ModTime().After(made) {
			dir, made, ok = filepath.Join(filepath.Dir(prefix), e.Name()), info.ModTime(), true
		}
	}
	return dir, ok, err
}

// identify runs a binary to identify it: it may be another program, damaged, or of another version.
func (c candidate) identify(ctx context.Context, v Version) (Binary, error) {
	path, err := filepath.Abs(c.path)
	if err != nil {
		return c.refuse(v, err.Error())
	}
	if !build.Executable(path) {
		return c.refuse(v, "is no program that may be executed")
	}
	within, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	out, err := build.Step{Path: path, Args: []string{"version"}}.Run(within)
	if ctx.Err() != nil {
		return Binary{}, ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return c.refuse(v, fmt.Sprintf("did not say its version within %v", c.within))
	}
	b, speaks, ok := parseVersion(out)
	if err != nil || !ok {
		return c.refuse(v, fmt.Sprintf("does not say its version as tare-plane does (%v)",
			errors.Join(err, errors.New(build.Tail(out)))))
	}
	b.Path, b.Version = path, minorOf(b.Kubernetes)
	switch {
	case speaks != protocol:
		return c.refuse(v, fmt.Sprintf("was built from the sources of another version of tare (protocol %q, and %q is "+
			"wanted)", speaks, protocol))
	case b.Version != v:
		return c.refuse(v, fmt.Sprintf("is of Kubernetes %s, and %s is wanted", b.Kubernetes, v))
	}
	return b, nil
}

func (c candidate) refuse(v Version, reason string) (Binary, error) {
	return Binary{}, &Missing{What: nameOf(v), Reason: fmt.Sprintf("%s (%s) %s", c.path, c.by, reason), Next: c.next}
}

// parseVersion parses the output of "tare-plane version": a line of JSON, possibly among warnings of libraries. The
// first protocol had no name.
func parseVersion(out string) (b Binary, protocol string, ok bool) {
	for line := range strings.Lines(out) {
		var said struct{ Kubernetes, Etcd, Go, Protocol string }
		if err := json.Unmarshal([]byte(line), &said); err == nil && said.Kubernetes != "" && said.Etcd != "" {
			return Binary{Kubernetes: said.Kubernetes, Etcd: said.Etcd, Go: said.Go}, said.Protocol, true
		}
	}
	return Binary{}, "", false
}
