package plane

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/internal/build"
	"tare/internal/clock"
)

// buildWithin bounds a build on a slow and busy machine; on two idle cores it takes five minutes.
const buildWithin = 2 * time.Hour

// lockName is the same for all versions: two builds at a time would need twice the memory.
const lockName = "plane"

// compile builds a version and adds it to the cache.
func (h Host) compile(ctx context.Context, v Version, s source) (Binary, error) {
	m, err := s.module()
	if err != nil {
		return Binary{}, err
	}
	g, err := build.FindGo(ctx, h.Getenv)
	if err != nil {
		return Binary{}, explain(v, s, err)
	}
	dir, err := h.cache().Get(ctx, build.Recipe{
		Name: folderName(v, m, g.Version), Lock: lockName, Within: buildWithin,
		Waiting: func() { h.tell("another process is compiling a control plane: waiting for it") },
		Make:    func(ctx context.Context, dir string) error { return h.buildIn(ctx, v, m, g, dir) },
	})
	if err != nil {
		return Binary{}, explain(v, s, err)
	}
	return inCache(filepath.Join(dir, m.Binary)).identify(ctx, v)
}

// buildIn builds m in dir, and reports progress.
func (h Host) buildIn(ctx context.Context, v Version, m build.GoModule, g build.Go, dir string) error {
	if n, ok := toFetch(g, m); ok {
		if err := checkRoom([]need{n}, diskOf); err != nil {
			return err
		}
		h.tell(fmt.Sprintf("fetching the Go modules of Kubernetes %s: about 90 MB, once", v))
	}
	p := newProgress(v, h)
	stop := p.start(ctx)
	defer stop()
	work := filepath.Join(dir, "work")
	if err := m.Files.Unpack(work); err != nil {
		return err
	}
	n, err := g.Packages(ctx, m, work, p.fetched)
	if err == nil {
		err = checkRoom(toCompile(g, n.Stale, dir), diskOf)
	}
	if err != nil {
		return err
	}
	p.compiles(n)
	p.tell(announcement(v, n))
	return g.Build(ctx, m, work, dir, p.compiled)
}

// announcement returns the message for a person who waits for the compilation: 547 s of CPU for all packages, and 14 s
// to link them.
func announcement(v Version, n build.Packages) string {
	const all = 5 // minutes on two cores that are idle
	if n.Stale*all < n.All {
		return fmt.Sprintf("building Kubernetes %s from what Go has compiled before: about a minute, once", v)
	}
	minutes := max(2, (n.Stale*all+n.All/2)/n.All)
	return fmt.Sprintf("compiling Kubernetes %s from its Go modules: about %d minutes on two cores, once", v, minutes)
}

func (h Host) tell(line string) {
	if h.Tell != nil {
		h.Tell(line)
		return
	}
	if h.Log != nil {
		h.Log.Info(line) //nolint:sloglint // there are no attributes
	}
}

func (h Host) clock() clock.Clock {
	if h.Clock != nil {
		return h.Clock
	}
	return clock.System{}
}

// Built returns the cache of built binaries: $TARE_CACHE/plane, or tare/plane in the user's cache folder.
func (h Host) Built() build.Cache { return h.cache() }

// Current reports, by name, which folders of the cache Find would use: those built from the current sources with the
// installed toolchain or, without a toolchain, with any. The error is the context's, or one of reading the sources.
func (h Host) Current(ctx context.Context) (wanted func(name string) bool, err error) {
	g, none := build.FindGo(ctx, h.Getenv)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var names []string
	for _, v := range Versions() {
		s, err := v.source()
		if err != nil {
			return nil, err
		}
		m, err := s.module()
		if err != nil {
			return nil, err
		}
		names = append(names, folderName(v, m, g.Version))
	}
	return func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			return name == n ||
				(none != nil && strings.HasPrefix(name, n))
		})
	}, nil
}
