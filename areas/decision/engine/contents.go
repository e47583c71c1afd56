package engine

import (
	"slices"

	"tare/internal/build"
)

// Built returns the cache of built decision points: Host.Cache, or $TARE_CACHE/engines, or tare/engines in the user's
// cache folder.
func (h Host) Built() build.Cache { return h.cache() }

// Current reports, by name, which folders of the cache Find would use. It fails if tare's own sources cannot be read.
func (h Host) Current() (wanted func(name string) bool, err error) {
	var names []string
	for _, e := range []goEngine{opa, openFGA} {
		_, name, err := e.module()
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	for _, k := range []Kind{ATT, AuthzForce} {
		r, err := xacmlRecipe(k, h)
		if err != nil {
			return nil, err
		}
		names = append(names, r.Name)
	}
	return func(name string) bool { return slices.Contains(names, name) }, nil
}
