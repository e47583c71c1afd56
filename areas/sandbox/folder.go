package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tare/area"
	"tare/internal/files"
	"tare/internal/proc"
)

// makeFolder makes the run's folder in the folder for temporary files, not in the results folder: the depth of a path
// is part of the cost of opening a file under Landlock, and must not depend on where results are kept.
func makeFolder(j area.Journal) (string, error) {
	path := newFolder()
	if err := j.Intend(folderChange(path)); err != nil {
		return "", fmt.Errorf("journal the folder for files: %w", err)
	}
	if err := files.MakeNew(path); err != nil {
		return "", fmt.Errorf("make the folder for files: %w", err)
	}
	return path, nil
}

// folderBytes is how many random bytes make the name of a folder unique.
const folderBytes = 8

// newFolder returns a new unique path. Its length is always the same.
func newFolder() string {
	var b [folderBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return filepath.Join(os.TempDir(), folderPrefix+hex.EncodeToString(b[:]))
}

// ours returns an error unless makeFolder may have made path.
func ours(path string) error {
	if filepath.Clean(path) != path || !filepath.IsAbs(path) || !strings.HasPrefix(filepath.Base(path), folderPrefix) {
		return fmt.Errorf("%q is no folder of this area", path)
	}
	return nil
}

// removeFolder removes a folder of this area. It succeeds if the folder does not exist.
func removeFolder(path string) error {
	if err := ours(path); err != nil {
		return err
	}
	return files.RemoveFolder(path)
}

// endInside kills the processes whose working directory is in such a folder. Daemons run there, and the orphaned
// children of a killed daemon can only be recognized by their working directory, since no other process has that
// folder's name.
func endInside(path string) error {
	if err := ours(path); err != nil {
		return err
	}
	return proc.KillWhere(func(pid int) bool {
		at, err := files.Leads(fmt.Sprintf("/proc/%d/cwd", pid))
		return err == nil && strings.HasPrefix(at, path+"/")
	})
}
