package driver

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tare/area"
	"tare/internal/files"
	"tare/internal/proc"
)

// randomLength is the length of the random part of a folder's name, in bytes.
const randomLength = 8

// newFolder returns a new unique path, and its unique part. Paths all have the same length, since a path's length
// affects the cost of opening a file.
func newFolder(parent, areaName string) (path, unique string) {
	var b [randomLength]byte
	_, _ = rand.Read(b[:]) // it never fails
	unique = hex.EncodeToString(b[:])
	return filepath.Join(parent, prefix(areaName)+unique), unique
}

func prefix(areaName string) string { return "tare-" + areaName + "-" }

// makeFolder journals a folder and makes it.
func makeFolder(j area.Journal, areaName, path string) error {
	if err := j.Intend(folderChange(areaName, path)); err != nil {
		return fmt.Errorf("journal the folder for files: %w", err)
	}
	if err := files.MakeNew(path); err != nil {
		return fmt.Errorf("make the folder for files: %w; it must be below a folder that exists and can be "+
			"written, and that no other user could replace", err)
	}
	return nil
}

// restoreFolder makes a folder again that somebody has removed: a program that undoes expects it. It is no use to a
// program if another user has made one of that name meanwhile.
func restoreFolder(path string) error {
	err := files.MakeNew(path)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	folder, err := files.Leaf(path)
	if err != nil {
		return err
	}
	return folder.Close()
}

// ours returns an error unless this package may have made path for the area.
func ours(areaName, path string) error {
	unique, ok := strings.CutPrefix(filepath.Base(path), prefix(areaName))
	b, err := hex.DecodeString(unique)
	if !ok || areaName == "" || err != nil || len(b) != randomLength || unique != strings.ToLower(unique) ||
		!filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("%q is no folder of area %q", path, areaName)
	}
	return nil
}

// clearFolder ends the processes that outlived the driver that started them, and removes their folder. It succeeds if
// the folder does not exist.
func clearFolder(areaName, path string) error {
	if err := ours(areaName, path); err != nil {
		return err
	}
	if err := proc.EndMarked(Mark+"="+path, 0); err != nil {
		return fmt.Errorf("end what belongs to %s: %w", path, err)
	}
	return files.RemoveAt(path)
}
