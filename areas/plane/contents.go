package plane

import (
	"context"
	"slices"
	"strings"

	"tare/internal/build"
)

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
