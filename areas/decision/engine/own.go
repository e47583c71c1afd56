package engine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tare/areas/bundle"
	"tare/areas/decision/fga"
)

// CheckOwn reports why the policies at a path cannot be given to the engine.
func (k Kind) CheckOwn(at string) error {
	is, err := os.Stat(at)
	switch {
	case k == PDPX:
		return fmt.Errorf("own policies cannot be given to %s", k)
	case err != nil:
		return err
	case k.Adapter() == xacmlAdapter && (is.IsDir() || path.Ext(at) != ".xml"):
		return fmt.Errorf("%s is no file (.xml) of XACML", at)
	case k == OpenFGA:
		_, err := fga.Find(at)
		return err
	case is.IsDir():
		return nil
	case k == OPA && !strings.HasSuffix(at, ".tar.gz"):
		return fmt.Errorf("%s is neither a folder nor a bundle (.tar.gz) of OPA", at)
	case k == Cedar && path.Ext(at) != ".cedar":
		return fmt.Errorf("%s is neither a folder nor a file (.cedar) of Cedar", at)
	}
	return nil
}

// Adopt copies the user's own policies into a folder, so that the whole run has the same, and returns what the child is
// told: to listen on a port of loopback that is free.
func (l Launch) Adopt(dir, from string) (Config, error) {
	if l.Kind == OpenFGA {
		file, err := filepath.Abs(filepath.Join(dir, storeFile))
		return Config{Addr: "127.0.0.1:0", File: file, Own: true}, errors.Join(err, adoptStore(dir, from))
	}
	name := ownName(from)
	if err := bundle.Copy(dir, name, from, nil); err != nil {
		return Config{}, err
	}
	file, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil && l.Kind.Adapter() == xacmlAdapter {
		err = l.adoptXACML(dir, name, file)
	}
	return Config{Addr: "127.0.0.1:0", File: file, Own: true}, err
}

// ownName is the name of the copy: OPA tells folders from bundles by it.
func ownName(from string) string {
	for _, end := range []string{".tar.gz", ".cedar", ".xml"} {
		if strings.HasSuffix(from, end) {
			return "own" + end
		}
	}
	return "own"
}
