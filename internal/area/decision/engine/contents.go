package engine

import (
	"slices"

	"tare/internal/build"
)

// Built is where decision points are that were built: see CacheFolder.
func (h Host) Built() build.Cache { return h.cache() }

// Current says which folders of the cache Find would use, by their names. The error is one of our own sources.
func (h Host) Current() (wanted func(name string) bool, err error) {
	_, opa, err := opaModule()
	if err != nil {
		return nil, err
	}
	names := []string{opa}
	for _, k := range []Kind{ATT, AuthzForce} {
		r, err := xacmlRecipe(k, h)
		if err != nil {
			return nil, err
		}
		names = append(names, r.Name)
	}
	return func(name string) bool { return slices.Contains(names, name) }, nil
}
