package engine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tare/areas/bundle"
	"tare/areas/decision/cedarset"
	"tare/areas/decision/fga"
	"tare/areas/decision/replica"
)

// CheckOwn reports why the policies at a path cannot be given to the engine.
func (k Kind) CheckOwn(at string) error {
	isFolder, err := bundle.IsFolder(at)
	switch {
	case k == PDPX:
		return fmt.Errorf("own policies cannot be given to %s", k)
	case err != nil:
		return err
	case k.Adapter() == xacmlAdapter && (isFolder || path.Ext(at) != ".xml"):
		return fmt.Errorf("%s is no file (.xml) of XACML", at)
	case k == OpenFGA:
		_, err := fga.Find(at)
		return err
	case isFolder && k == OPA:
		return bundle.CheckLinks(at, bundle.LoadedByOPA)
	case isFolder:
		return bundle.CheckLinks(at, cedarset.Decides)
	case k == OPA && !strings.HasSuffix(at, archiveEnd):
		return fmt.Errorf("%s is neither a folder nor a bundle (.tar.gz) of OPA", at)
	case k == OPA:
		return checkArchive(at)
	case k == Cedar && path.Ext(at) != ".cedar":
		return fmt.Errorf("%s is neither a folder nor a file (.cedar) of Cedar", at)
	}
	return nil
}

// mostUnpacked bounds what an archive holds, which can be a thousand times as long as itself.
const mostUnpacked = 64 << 20

// checkArchive refuses an archive that holds too much, or two files of one name, of which OPA takes the last. What else
// is wrong with it, OPA says.
func checkArchive(at string) error {
	err := bundle.Each(at, func(_ string, text []byte) error {
		packed, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil //nolint:nilerr // OPA says so, with more
		}
		if n, _ := io.Copy(io.Discard, io.LimitReader(packed, mostUnpacked+1)); n > mostUnpacked {
			return holdsTooMuch(at)
		}
		return nil
	})
	if err != nil {
		return err
	}
	names, twice := map[string]bool{}, ""
	err = EachOfOPA(at, func(name string, _ []byte) error {
		if names[name] {
			twice = name
		}
		names[name] = true
		return nil
	})
	if errors.Is(err, errTooMuch) {
		return err
	}
	if twice != "" {
		return fmt.Errorf("%s holds %s twice, and only one of the two would decide: take one out", at, twice)
	}
	return nil
}

// errTooMuch is in the error about an archive that holds more than mostUnpacked.
var errTooMuch = errors.New("unpack it")

func holdsTooMuch(at string) error {
	return fmt.Errorf("%s holds more than %d MiB: %w", at, mostUnpacked>>20, errTooMuch)
}

// EachOfOPA calls do for each file of a bundle that OPA loads.
func EachOfOPA(at string, do func(name string, text []byte) error) error {
	isFolder, err := bundle.IsFolder(at)
	if err != nil {
		return err
	}
	return bundle.Each(at, func(name string, text []byte) error {
		if isFolder {
			if !bundle.LoadedByOPA(name) {
				return nil
			}
			return do(name, text)
		}
		packed, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return err
		}
		in := tar.NewReader(io.LimitReader(packed, mostUnpacked))
		for left := int64(mostUnpacked); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if left -= h.Size; left < 0 { // of a file with holes, which take no room in the archive
				return holdsTooMuch(at)
			}
			name := path.Clean("/" + h.Name)[1:]
			if !bundle.LoadedByOPA(name) {
				continue
			}
			if text, err = io.ReadAll(in); err != nil {
				return err
			}
			if err := do(name, text); err != nil {
				return err
			}
		}
	})
}

// EachBesideOPA calls do for each file of a folder that OPA does not load from a bundle, and takes for data if it is
// given the folder otherwise, as `opa run FOLDER` is.
func EachBesideOPA(at string, do func(name string, text []byte) error) error {
	isFolder, err := bundle.IsFolder(at)
	if err != nil || !isFolder {
		return err
	}
	return bundle.Each(at, func(name string, text []byte) error {
		isData := slices.Contains([]string{".json", ".yaml", ".yml"}, path.Ext(name))
		if !isData || bundle.LoadedByOPA(name) {
			return nil
		}
		return do(name, text)
	})
}

// Adopt copies the user's own policies into a folder, so that the whole run has the same, and returns what the child is
// told: to listen on a port of loopback that is free. Of the data that grow there are copies.
func (l Launch) Adopt(dir, from string, d *replica.Data) (Config, error) {
	c := Config{Addr: "127.0.0.1:0", Own: true}
	name, adopt := ownName(from), l.adoptBundle
	if l.Kind == OpenFGA {
		name, adopt = storeFile, adoptStore
	}
	var err error
	if c.File, err = filepath.Abs(filepath.Join(dir, name)); err != nil {
		return c, err
	}
	if l.Kind == Cedar && d.Grows() {
		c.Data = d // it makes the copies itself
	}
	err = adopt(dir, from, d)
	if err == nil && l.Kind.Adapter() == xacmlAdapter {
		err = l.adoptXACML(dir, name, c.File)
	}
	return c, err
}

// adoptBundle copies a bundle into a folder, with copies of what grows in the data of OPA.
func (l Launch) adoptBundle(dir, from string, d *replica.Data) error {
	var grown map[string][]byte
	if l.Kind == OPA && d.Grows() {
		all, err := documentsOf(from, d)
		if err == nil {
			grown, err = all.Grow(d.Times)
		}
		if err != nil {
			return fmt.Errorf("data: %w", err)
		}
	}
	return bundle.Copy(dir, ownName(from), from, func(name string, text []byte) []byte {
		if more, ok := grown[name]; ok {
			return more
		}
		return text
	})
}

// archiveEnd is how the name of a bundle of OPA in one file ends.
const archiveEnd = ".tar.gz"

// ownName is the name of the copy: OPA tells folders from bundles by it.
func ownName(from string) string {
	for _, end := range []string{archiveEnd, ".cedar", ".xml"} {
		if strings.HasSuffix(from, end) {
			return "own" + end
		}
	}
	return "own"
}

// HasData reports whether the engine decides by data beside its policies.
func (k Kind) HasData() bool { return k == OPA || k == Cedar || k == OpenFGA }

// CheckData says what is wrong about data that grow, or how many entries there are one time.
func (k Kind) CheckData(from string, d *replica.Data) (entries int, err error) {
	switch k {
	case OPA:
		all, err := documentsOf(from, d)
		if err != nil {
			return 0, err
		}
		return all.Entries(), nil
	case Cedar:
		set, err := cedarset.Read(from)
		if err != nil {
			return 0, err
		}
		named, err := set.Replicable(d)
		return len(named), err
	case OpenFGA:
		s, err := fga.Read(from)
		if err != nil {
			return 0, err
		}
		named, err := s.Replicable(d)
		return len(named), err
	case PDPX, ATT, AuthzForce:
	}
	return 0, fmt.Errorf("%s has no data beside its policies", k)
}

// documentsOf are the data of a bundle of OPA.
func documentsOf(from string, d *replica.Data) (*replica.Documents, error) {
	if strings.HasSuffix(from, archiveEnd) {
		return nil, fmt.Errorf("%s: only the data of a folder can grow: unpack it", from)
	}
	return d.ReadDocuments(func(do func(name string, text []byte) error) error { return bundle.Each(from, do) })
}
