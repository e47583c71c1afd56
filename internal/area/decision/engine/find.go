package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
)

// Find says how a decision point of this kind is started. What has to be built is built first, once per version, into the host's cache: that
// may take minutes and needs the network, later calls need neither. The error is a *Missing when the host lacks something.
func Find(ctx context.Context, k Kind, h Host) (Launch, error) {
	switch k {
	case Cedar:
		return h.own(k, "cedar-go "+moduleVersion("github.com/cedar-policy/cedar-go")), nil
	case PDPX:
		return h.own(k, "tare's reference of ONAP's decision API"), nil
	case OPA:
		return findOPA(ctx, h)
	case ATT, AuthzForce:
		return findXACML(ctx, k, h)
	}
	return Launch{}, fmt.Errorf("embedded decision point %q is none of %v", k, Kinds())
}

// own is a decision point in this binary.
func (h Host) own(k Kind, version string) Launch {
	return Launch{Kind: k, Path: h.Self, Args: []string{"serve", "decision", string(k)}, Version: version}
}

// moduleVersion is the version of a module that this binary was built with, without its v.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	for _, m := range info.Deps {
		if m.Path == path && len(m.Version) > 1 {
			return m.Version[1:]
		}
	}
	return "of unknown version"
}

// CacheVariable is the environment variable that names the folder of what tare builds, instead of the user's cache folder.
const CacheVariable = "TARE_CACHE"

// CacheFolder is the folder of built decision points: Host.Cache, or $TARE_CACHE/engines, or tare/engines in the user's cache folder.
func (h Host) CacheFolder() (string, error) {
	if h.Cache != "" {
		return filepath.Abs(h.Cache)
	}
	if dir, ok := h.Getenv(CacheVariable); ok && dir != "" {
		dir, err := filepath.Abs(dir)
		return filepath.Join(dir, "engines"), err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "tare", "engines"), nil
}

// look finds an executable file in PATH, as exec.LookPath does, but in the PATH that the host was given. Relative entries are passed over.
func (h Host) look(name string) (string, bool) {
	path, _ := h.Getenv("PATH")
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(file) {
			return file, true
		}
	}
	return "", false
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// exists reports whether there is a file or folder; an error other than its absence is one.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
