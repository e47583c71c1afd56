package plane

import (
	"context"
	"slices"
	"strings"

	"tare/internal/build"
)

// Built is where binaries are that were built: $TARE_CACHE/plane, or tare/plane in the user's cache folder.
func (h Host) Built() build.Cache { return h.cache() }

// Current says which folders of the cache Find would use, by their names: those of our sources and the toolchain that is here, or, where there is none,
// of any. The error is the context's, or one of our own sources.
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
		name, err := folderName(v, m, g.Version)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return name == n || (none != nil && strings.HasPrefix(name, n)) })
	}, nil
}
