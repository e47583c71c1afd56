// Package bundle reads a folder or a file of somebody else's policies: bounded, only regular files that can hold
// policies, and always in the same order.
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
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// The limits of a bundle.
const (
	mostFiles = 10_000
	mostBytes = 256 << 20
)

// The names of the files of a folder that are taken.
var (
	extensions = []string{
		".json", ".yaml", ".yml", ".wasm", ".cedar", ".cedarschema", ".xml", ".jsonnet", ".libsonnet",
	}
	// names are that of Cedar's links, one of the three of Kustomize, and those of what Flux and Fleet leave out.
	names = []string{"linked", "Kustomization", LeftByFlux, LeftByFleet}
	// ofOPA are the names of the files besides Rego that OPA loads from any folder of a bundle.
	ofOPA = []string{
		"data.json", "data.yaml", "data.yml", "patch.json", "plan.json", "plan.pb", "policy.wasm", ".signatures.json",
	}
	endsOfOPA = []string{".rego", ".manifest", ".manifest.pb"}
)

// LeftByFlux and LeftByFleet are the names of the files that say what these leave out of a folder.
const (
	LeftByFlux  = ".sourceignore"
	LeftByFleet = ".fleetignore"
)

// LoadedByOPA reports whether OPA loads a file of a folder that it is given as a bundle, hidden or not.
func LoadedByOPA(name string) bool {
	return slices.Contains(ofOPA, path.Base(name)) ||
		slices.ContainsFunc(endsOfOPA, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Hidden reports whether a file of a folder, or one of the folders in it that lead there, has a name that begins with a
// dot.
func Hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.Contains(name, "/.") }

// repository is the folder of git, in which names are those of branches.
const repository = ".git"

// isGits reports whether a name is that of what git keeps for itself.
func isGits(name string) bool { return slices.Contains(strings.Split(name, "/"), repository) }

// taken reports whether a file can hold policies, what they need, or their tests.
func taken(name string) bool {
	return LoadedByOPA(name) || !isGits(name) &&
		(slices.Contains(names, path.Base(name)) || slices.Contains(extensions, path.Ext(name)))
}

// Each calls do for the file, or for each file of the folder and of those below it that can hold policies, in the order
// of their paths. name is relative to the folder.
func Each(from string, do func(name string, text []byte) error) error {
	left := newBudget()
	f, isFolder, err := open(from)
	switch {
	case err != nil:
		return err
	case isFolder:
		return left.each(f, do)
	}
	text, err := left.all(f, from)
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	return do(filepath.Base(from), text)
}

// open opens what the user names, a file or a folder.
func open(from string) (f *os.File, isFolder bool, err error) {
	if f, err = files.Given(from); err != nil {
		return nil, false, err
	}
	is, err := f.Stat()
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return f, is.IsDir(), nil
}

// IsFolder reports whether what the user names is a folder. The error is that of opening it.
func IsFolder(from string) (bool, error) {
	f, isFolder, err := open(from)
	if err == nil {
		err = f.Close()
	}
	return isFolder, err
}

// Sum returns the SHA-256 of a bundle, names and contents.
func Sum(from string) (string, error) {
	sum, err := SumOf(func(do func(name string, text []byte) error) error { return Each(from, do) })
	if err != nil {
		return "", fmt.Errorf("read the policies of %s: %w", from, err)
	}
	return sum, nil
}

// SumOf returns the SHA-256 of the files for which each calls do, names and contents.
func SumOf(each func(do func(name string, text []byte) error) error) (string, error) {
	h := sha256.New()
	err := each(func(name string, text []byte) error {
		_, _ = fmt.Fprintf(h, "%q %d ", name, len(text)) // writing to a hash does not fail
		h.Write(text)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// Sums returns the sums of bundles by path, or nil without bundles. sumOf is Sum, or what stands for it.
func Sums(paths []string, sumOf func(from string) (string, error)) (map[string]string, error) {
	var out map[string]string
	for _, from := range paths {
		if out[from] != "" {
			continue
		}
		sum, err := sumOf(from)
		if err != nil {
			return out, err
		}
		if out == nil {
			out = map[string]string{}
		}
		out[from] = sum
	}
	return out, nil
}

// Copy copies a bundle into a folder, as name, so that the whole run has the same. Records are published: of what is
// hidden in a folder they have what OPA loads. change is what is made of each file; nil: nothing.
func Copy(folder, name, from string, change func(name string, text []byte) []byte) error {
	if change == nil {
		change = func(_ string, text []byte) []byte { return text }
	}
	to, err := files.Reach(folder)
	if err == nil {
		err = errors.Join(adopt(to, name, from, change), to.Close())
	}
	if err != nil {
		return fmt.Errorf("copy the policies of %s: %w", from, err)
	}
	return nil
}

func adopt(to *files.Folder, name, from string, change func(name string, text []byte) []byte) error {
	left := newBudget()
	f, isFolder, err := open(from)
	if err != nil {
		return err
	}
	if !isFolder {
		text, err := left.all(f, from)
		if err != nil {
			return err
		}
		return to.Write(name, change(filepath.Base(from), text))
	}
	own, err := to.Make(name)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = left.each(f, func(at string, text []byte) error {
		if Hidden(at) && !LoadedByOPA(at) {
			return nil
		}
		return write(own, at, change(at, text))
	})
	return errors.Join(err, own.Close())
}

// write writes a file into a folder, or into one below it.
func write(to *files.Folder, name string, text []byte) error {
	first, rest, isBelow := strings.Cut(name, "/")
	if !isBelow {
		return to.Write(name, text)
	}
	below, err := to.Make(first)
	if err != nil {
		return err
	}
	return errors.Join(write(below, rest, text), below.Close())
}

// A Reader reads single files of folders, all together within the limits of a bundle.
type Reader struct{ left *budget }

// NewReader returns one that has read nothing.
func NewReader() *Reader { return &Reader{newBudget()} }

// Read reads a regular file of a folder, or of one below it, and none outside it (files.Below).
func (r *Reader) Read(folder, name string) ([]byte, error) {
	f, err := files.Below(folder, name)
	if err != nil {
		return nil, err
	}
	return r.left.all(f, name)
}

// A budget is what may still be read.
type budget struct{ files, bytes int }

func newBudget() *budget { return &budget{files: mostFiles, bytes: mostBytes} }

// Links calls do for each link of a folder, or of one below it, that is called like a file that can hold policies. text
// is that of the file to which it leads. If that file is outside of the folder, text is nil, and to is its absolute
// path. Links that lead nowhere are left out.
func Links(from string, do func(name, to string, text []byte) error) error {
	left := newBudget()
	return eachLink(from, func(root *os.Root, name string) error {
		if !taken(name) {
			return nil
		}
		text, err := left.read(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			return do(name, "", text)
		}
		to, err := root.Readlink(name)
		if err == nil && !filepath.IsAbs(to) {
			to, err = filepath.Abs(filepath.Join(from, filepath.Dir(name), to))
		}
		if err != nil {
			return err
		}
		return do(name, to, nil)
	})
}

// CheckLinks refuses a folder in which a link is called like what decides, leads to a folder, or leads nowhere: an
// engine may follow it, and Each does not. decides judges a name in the folder.
func CheckLinks(from string, decides func(name string) bool) error {
	return eachLink(from, func(_ *os.Root, name string) error {
		at, err := filepath.Abs(filepath.Join(from, name))
		if err != nil {
			return err
		}
		is, err := fs.Stat(files.Host(), strings.TrimPrefix(at, "/"))
		isFile := err == nil && !is.IsDir()
		if !decides(name) && (isFile || isGits(name)) {
			return nil
		}
		return fmt.Errorf("%s is a link, and whether your decision point follows it is not known: put what it leads to in "+
			"its place, or take it out of the folder", filepath.Join(from, name))
	})
}

// eachLink calls do for each symbolic link in a folder, or in one below it.
func eachLink(from string, do func(root *os.Root, name string) error) error {
	f, isFolder, err := open(from)
	switch {
	case err != nil:
		return err
	case !isFolder:
		return f.Close()
	}
	return eachIn(f, fs.ModeSymlink, do)
}

// each reads the files of a folder, and none outside it.
func (b *budget) each(folder *os.File, do func(name string, text []byte) error) error {
	return eachIn(folder, 0, func(root *os.Root, name string) error {
		if !taken(name) {
			return nil
		}
		text, err := b.read(root, name)
		if err != nil {
			return err
		}
		return do(name, text)
	})
}

// eachIn calls do for what of one type is in a folder, or in one below it.
func eachIn(folder *os.File, is fs.FileMode, do func(root *os.Root, name string) error) error {
	root, err := files.Root(folder)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Type() != is:
			return nil
		}
		return do(root, name)
	})
	return errors.Join(err, root.Close())
}

// notWaiting opens what is there without waiting, as for the writer of a pipe.
const notWaiting = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// read reads a regular file of a folder.
func (b *budget) read(from *os.Root, name string) ([]byte, error) {
	f, err := from.OpenFile(name, notWaiting, 0)
	if err != nil {
		return nil, err
	}
	return b.all(f, name)
}

// all reads and closes a file that is called name.
func (b *budget) all(f *os.File, name string) ([]byte, error) {
	defer f.Close() //nolint:errcheck // it is only read
	is, err := f.Stat()
	if err != nil || !is.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", name), err)
	}
	tooMuch := fmt.Errorf("more than %d files or %d MiB", mostFiles, mostBytes>>20)
	if b.files--; b.files < 0 || is.Size() > int64(b.bytes) {
		return nil, tooMuch
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(b.bytes)+1)) // it may have grown
	if b.bytes -= len(text); err == nil && b.bytes < 0 {
		err = tooMuch
	}
	return text, err
}
