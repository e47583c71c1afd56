package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tare/internal/area"
	"tare/internal/proc"
)

// makeFolder makes the run's folder below the folder for temporary files, not in the run's own: how deep a file lies is part of what opening
// it costs under Landlock, and must not depend on where results are kept.
func makeFolder(j area.Journal) (string, error) {
	path := newFolder()
	if err := j.Intend(folderChange(path)); err != nil {
		return "", fmt.Errorf("journal the folder for files: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("make the folder for files: %w", err)
	}
	return path, nil
}

// newFolder is a name that nobody has yet. Its length is always the same.
func newFolder() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return filepath.Join(os.TempDir(), folderPrefix+hex.EncodeToString(b[:]))
}

// ours is an error unless path can be a folder that makeFolder made.
func ours(path string) error {
	if filepath.Clean(path) != path || !filepath.IsAbs(path) || !strings.HasPrefix(filepath.Base(path), folderPrefix) {
		return fmt.Errorf("%q is no folder of this area", path)
	}
	return nil
}

// removeFolder removes a folder of ours. One that is gone is no error.
func removeFolder(path string) error {
	if err := ours(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// endInside kills the processes whose working directory is below a folder of ours: daemons work there, and what a killed daemon leaves of its own
// children can only be told by it, since nobody else has a name for that folder.
func endInside(path string) error {
	if err := ours(path); err != nil {
		return err
	}
	return proc.KillWhere(func(pid int) bool {
		at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		return err == nil && strings.HasPrefix(at, path+"/")
	})
}
