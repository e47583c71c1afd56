package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Embedded is the ending of go.mod and go.sum where a module's sources are kept to be embedded: Go does not embed the
// files of a folder with a go.mod.
const Embedded = ".txt"

// Files are the contents of files, by path.
type Files map[string][]byte

// ReadFiles returns all files below some folders, by their paths below them and without the ending Embedded. No two
// folders may have the same file.
func ReadFiles(from fs.FS, folders ...string) (Files, error) {
	out := Files{}
	for _, folder := range folders {
		err := fs.WalkDir(from, folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := strings.TrimSuffix(strings.TrimPrefix(path, folder+"/"), Embedded)
			if _, twice := out[name]; twice {
				return fmt.Errorf("%s: another of the folders %v has %s, too", path, folders, name)
			}
			out[name], err = fs.ReadFile(from, path)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// WithoutTests removes the files of Go's tests, and returns f.
func (f Files) WithoutTests() Files {
	maps.DeleteFunc(f, func(path string, _ []byte) bool { return strings.HasSuffix(path, "_test.go") })
	return f
}

// Hash returns a short hash of the files and of further words: 12 hexadecimal digits. Each path is part of it in the
// form "opa/%s".
func (f Files) Hash(form string, words ...string) string {
	var all bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&all, form+" %d\n%s\n", path, len(f[path]), f[path])
	}
	fmt.Fprintf(&all, "%q", words)
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])[:12]
}

// Unpack writes the files below dir.
func (f Files) Unpack(dir string) error {
	for path, text := range f {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return fmt.Errorf("unpack the sources: %w", err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return fmt.Errorf("unpack the sources: %w", err)
		}
	}
	return nil
}
