package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Embedded is the suffix of a Go module's embedded files: Go does not embed another module's files under their own
// names.
const Embedded = ".txt"

// Below lists the files below dir, by path, sorted.
func Below(files fs.FS, dir string) ([]string, error) {
	var out []string
	err := fs.WalkDir(files, dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	return out, err
}

// Hash returns a short hash of files, including their names, and of further words: 12 hexadecimal digits.
func Hash(files fs.FS, paths []string, words ...string) (string, error) {
	var all bytes.Buffer
	for _, path := range paths {
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "%s %d\n%s\n", path, len(b), b)
	}
	fmt.Fprintf(&all, "%q", words)
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])[:12], nil
}

// Unpack writes files of an embedded file system below dir, without the first element of their paths and without the
// ending cut.
func Unpack(files fs.FS, paths []string, dir, cut string) error {
	for _, path := range paths {
		_, rest, ok := strings.Cut(path, "/")
		if !ok {
			return errors.New("unpack " + path + ": not in a folder")
		}
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimSuffix(rest, cut)))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
