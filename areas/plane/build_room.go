package plane

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/build"
	"tare/internal/unit"
)

// The disk space of a build, in bytes, measured with Go 1.26 and Kubernetes 1.36 and rounded up: its 2,497 packages
// take 2.8 GB. 1.24 needs less.
const (
	roomModules = 650 << 20  // downloaded and unpacked
	roomPackage = 1200 << 10 // a compiled package, which Go caches; and the same in its work folder until the build ends
	roomLinked  = 300 << 20  // in the work folder
	roomBinary  = 150 << 20
)

// A need is the disk space that a build takes below a path.
type need struct {
	path  string
	bytes int64
}

// toFetch returns the space for the modules; ok is false if they are present.
func toFetch(g build.Go, m build.GoModule) (need, bool) {
	if g.ModCache == "" {
		return need{}, false
	}
	_, err := os.Stat(filepath.Join(g.ModCache, "k8s.io", "kubernetes@"+m.Version))
	return need{g.ModCache, roomModules}, err != nil
}

// toCompile returns the space for a build that compiles so many packages.
func toCompile(g build.Go, packages int, dir string) []need {
	compiled := int64(packages) * roomPackage
	temporary := cmp.Or(g.Temporary, dir)
	all := []need{{g.Cache, compiled}, {temporary, compiled + roomLinked}, {dir, roomBinary}}
	return slices.DeleteFunc(all, func(n need) bool { return n.path == "" })
}

// diskFullError is the error for a disk that is too full for a build.
type diskFullError struct {
	paths        []string
	free, wanted int64 // bytes
}

// Error implements error.
func (n *diskFullError) Error() string {
	return fmt.Sprintf("the disk of %s has %s free, and the build takes %s there", strings.Join(n.paths, ", "),
		unit.Bytes(float64(n.free)), unit.Bytes(float64(n.wanted)))
}

// A disk is the file system below a path, and how many bytes of it are free.
type disk struct {
	id   uint64
	free int64
}

// checkRoom checks that every disk has room for all that goes there. diskAt returns the disk below a path. The error is
// a *diskFullError, or one that diskAt returns.
func checkRoom(all []need, diskAt func(path string) (disk, error)) error {
	takes := map[uint64]*diskFullError{}
	var order []uint64
	for _, n := range all {
		d, err := diskAt(n.path)
		if err != nil {
			return err
		}
		if takes[d.id] == nil {
			takes[d.id] = &diskFullError{free: d.free}
			order = append(order, d.id)
		}
		takes[d.id].paths = append(takes[d.id].paths, n.path)
		takes[d.id].wanted += n.bytes
	}
	for _, id := range order {
		if n := takes[id]; n.free < n.wanted {
			return n
		}
	}
	return nil
}

// diskOf asks the kernel about the nearest existing folder.
func diskOf(path string) (disk, error) {
	for {
		var at unix.Stat_t
		err := unix.Stat(path, &at)
		if up := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && up != path {
			path = up
			continue
		}
		var s unix.Statfs_t
		if err == nil {
			err = unix.Statfs(path, &s)
		}
		if err != nil {
			return disk{}, fmt.Errorf("free space on the disk of %s: %w", path, err)
		}
		return disk{id: at.Dev, free: int64(s.Bavail) * s.Bsize}, nil
	}
}
