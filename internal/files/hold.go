package files

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// held are the folders that Hold holds, by path.
var held = struct {
	sync.Mutex

	folders map[string]*Folder
}{folders: map[string]*Folder{}}

// Hold makes Reach, Append and the like come to this folder under its path, whatever has that path meanwhile, until
// release is called.
func (f *Folder) Hold() (release func()) {
	held.Lock()
	defer held.Unlock()
	path := filepath.Clean(f.path)
	held.folders[path] = f
	return func() {
		held.Lock()
		defer held.Unlock()
		if held.folders[path] == f {
			delete(held.folders, path)
		}
	}
}

// Reach opens the folder that is held under a path, or directly in one that is held, and otherwise the folder at that
// path if it is ours, as At does.
func Reach(path string) (*Folder, error) {
	path = filepath.Clean(path)
	held.Lock()
	defer held.Unlock()
	if f, ok := held.folders[path]; ok {
		return in(f.dir, path, ".")
	}
	if f, ok := held.folders[filepath.Dir(path)]; ok {
		return in(f.dir, path, filepath.Base(path))
	}
	return At(path)
}

// OpenHeld opens a file, to read it, in the folder that is held under its folder's path; isHeld: there is one.
func OpenHeld(path string) (file *os.File, isHeld bool, err error) {
	held.Lock()
	defer held.Unlock()
	f, isHeld := held.folders[filepath.Dir(path)]
	if isHeld {
		file, err = f.Open(filepath.Base(path), os.O_RDONLY)
	}
	return file, isHeld, err
}

// Append opens a file of this user's to write at its end, and makes it if it is missing: in the folder that is held
// under its folder's path, or else in one that is ours. The path may be that of a descriptor of this process.
func Append(path string) (*os.File, error) {
	return openFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY)
}

// Edit opens a file that Append has made, to read and to change it.
func Edit(path string) (*os.File, error) { return openFile(path, os.O_RDWR) }

// MakeIn makes a folder in another one, found as Append finds it, unless it is there, and returns its path.
func MakeIn(parent, name string) (path string, err error) {
	path = filepath.Join(parent, name)
	return path, within(path, func(f *Folder, name string) error {
		made, err := f.Make(name)
		if err != nil {
			return err
		}
		return made.Close()
	})
}

// RemoveEmpty removes a file that Append has made if nothing was written to it.
func RemoveEmpty(path string) error {
	return within(path, func(f *Folder, name string) error {
		file, err := f.Open(name, os.O_RDONLY)
		if err != nil {
			return err
		}
		is, err := file.Stat()
		if err == nil && is.Size() == 0 {
			err = f.Remove(name)
		}
		return errors.Join(err, file.Close())
	})
}

func openFile(path string, flag int) (file *os.File, err error) {
	if filepath.Dir(path) == "/proc/self/fd" {
		return os.OpenFile(path, flag&^os.O_CREATE, 0)
	}
	err = within(path, func(f *Folder, name string) error {
		file, err = f.Open(name, flag)
		return err
	})
	return file, err
}

// within calls do with the folder that is held under the path of the file's folder, or else with one that is ours.
func within(path string, do func(f *Folder, name string) error) error {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	held.Lock()
	defer held.Unlock()
	if f, ok := held.folders[dir]; ok {
		return do(f, name)
	}
	at, err := At(dir)
	if err != nil {
		return err
	}
	return errors.Join(do(at, name), at.Close())
}
