package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tare/internal/files"
)

// The limits of a user's own policies.
const (
	mostFiles = 10_000
	mostBytes = 256 << 20
)

// CheckOwn reports why the policies at a path cannot be given to the engine.
func (k Kind) CheckOwn(at string) error {
	is, err := os.Stat(at)
	switch {
	case k != OPA && k != Cedar:
		return fmt.Errorf("own policies can be given to %s and %s, not to %s", OPA, Cedar, k)
	case err != nil:
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
	to, err := files.Reach(dir)
	if err != nil {
		return Config{}, fmt.Errorf("copy the policies of %s: %w", from, err)
	}
	err = adopt(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return Config{}, fmt.Errorf("copy the policies of %s: %w", from, err)
	}
	file, err := filepath.Abs(filepath.Join(dir, ownName(from)))
	return Config{Addr: "127.0.0.1:0", File: file, Own: true}, err
}

// Sum returns the SHA-256 of the user's own policies, names and contents.
func Sum(from string) (string, error) {
	h := sha256.New()
	left := budget{files: mostFiles, bytes: mostBytes}
	add := func(in fs.FS, name string) error {
		text, err := left.read(in, name)
		_, _ = fmt.Fprintf(h, "%q %d ", name, len(text)) // writing to a hash does not fail
		h.Write(text)
		return err
	}
	is, err := os.Stat(from)
	switch {
	case err != nil:
	case !is.IsDir():
		err = add(os.DirFS(filepath.Dir(from)), filepath.Base(from))
	default:
		in := os.DirFS(from)
		err = fs.WalkDir(in, ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				err = add(in, name)
			}
			return err
		})
	}
	if err != nil {
		return "", fmt.Errorf("read the policies of %s: %w", from, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ownName is the name of the copy: OPA tells folders from bundles by it.
func ownName(from string) string {
	for _, end := range []string{".tar.gz", ".cedar"} {
		if strings.HasSuffix(from, end) {
			return "own" + end
		}
	}
	return "own"
}

func adopt(to *files.Folder, from string) error {
	is, err := os.Stat(from)
	if err != nil {
		return err
	}
	left := budget{files: mostFiles, bytes: mostBytes}
	if !is.IsDir() {
		text, err := left.read(os.DirFS(filepath.Dir(from)), filepath.Base(from))
		if err != nil {
			return err
		}
		return to.Write(ownName(from), text)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	own, err := to.Make(ownName(from))
	if err == nil {
		err = errors.Join(left.copy(own, root.FS(), "."), own.Close())
	}
	return errors.Join(err, root.Close())
}

// A budget is what may still be copied.
type budget struct{ files, bytes int }

// read reads a regular file.
func (b *budget) read(from fs.FS, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if is, err := f.Stat(); err != nil || !is.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", name), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(b.bytes)+1))
	b.files--
	b.bytes -= len(text)
	if err == nil && (b.files < 0 || b.bytes < 0) {
		err = fmt.Errorf("more than %d files or %d MiB", mostFiles, mostBytes>>20)
	}
	return text, err
}

// copy copies a folder with all below it, but for what is neither a file nor a folder.
func (b *budget) copy(to *files.Folder, from fs.FS, name string) error {
	entries, err := fs.ReadDir(from, name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := path.Join(name, e.Name())
		switch {
		case e.IsDir():
			below, err := to.Make(e.Name())
			if err != nil {
				return err
			}
			if err = errors.Join(b.copy(below, from, at), below.Close()); err != nil {
				return err
			}
		case e.Type().IsRegular():
			text, err := b.read(from, at)
			if err == nil {
				err = to.Write(e.Name(), text)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
