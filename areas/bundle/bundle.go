// Package bundle reads a folder or a file of somebody else's policies: bounded, regular files only, and always in the
// same order.
package bundle

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

	"tare/internal/files"
)

// The limits of a bundle.
const (
	mostFiles = 10_000
	mostBytes = 256 << 20
)

// Each calls do for the file, or for each regular file of the folder and of those below it, in the order of their
// paths. name is relative to the folder.
func Each(from string, do func(name string, text []byte) error) error {
	left := budget{files: mostFiles, bytes: mostBytes}
	is, err := os.Stat(from)
	switch {
	case err != nil:
	case !is.IsDir():
		var text []byte
		name := filepath.Base(from)
		if text, err = left.read(os.DirFS(filepath.Dir(from)), name); err == nil {
			err = do(name, text)
		}
	default:
		err = left.each(from, do)
	}
	if err != nil {
		return fmt.Errorf("read the policies of %s: %w", from, err)
	}
	return nil
}

// Sum returns the SHA-256 of a bundle, names and contents.
func Sum(from string) (string, error) {
	h := sha256.New()
	err := Each(from, func(name string, text []byte) error {
		_, _ = fmt.Fprintf(h, "%q %d ", name, len(text)) // writing to a hash does not fail
		h.Write(text)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// Copy copies a bundle into a folder, as name, so that the whole run has the same.
func Copy(folder, name, from string) error {
	to, err := files.Reach(folder)
	if err == nil {
		err = errors.Join(adopt(to, name, from), to.Close())
	}
	if err != nil {
		return fmt.Errorf("copy the policies of %s: %w", from, err)
	}
	return nil
}

func adopt(to *files.Folder, name, from string) error {
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
		return to.Write(name, text)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	own, err := to.Make(name)
	if err == nil {
		err = errors.Join(left.copy(own, root.FS(), "."), own.Close())
	}
	return errors.Join(err, root.Close())
}

// A budget is what may still be read.
type budget struct{ files, bytes int }

// each reads the files of a folder, and none outside it.
func (b *budget) each(from string, do func(name string, text []byte) error) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	in := root.FS()
	err = fs.WalkDir(in, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := b.read(in, name)
		if err != nil {
			return err
		}
		return do(name, text)
	})
	return errors.Join(err, root.Close())
}

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
