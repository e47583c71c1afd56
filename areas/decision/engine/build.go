package engine

import (
	"errors"

	"tare/internal/build"
)

// cache returns the cache of built decision points.
func (h Host) cache() build.Cache {
	return build.Cache{Dir: h.Cache, Sub: "engines", Log: h.Log, Getenv: h.Getenv}
}

// look finds an executable file in the PATH that the host was given.
func (h Host) look(name string) (string, bool) { return build.Look(name, h.Getenv) }

// missing adds what the user can do about an unusable cache; it returns other errors unchanged.
func missing(k Kind, err error) error {
	if folder := new(build.NoFolder); errors.As(err, &folder) {
		return &Missing{Kind: k, Reason: folder.Error(), Next: "set " + build.Variable + " to a folder of your own"}
	}
	return err
}
