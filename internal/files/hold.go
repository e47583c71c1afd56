package files

import (
	"os"
	"path/filepath"
	"sync"
)

// held are the folders that Hold holds, by path.
var held = struct {
	sync.Mutex

	folders map[string]*Folder
}{folders: map[string]*Folder{}}

// Hold makes Append reach this folder under its path, whatever has that path meanwhile, until release is called.
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

// Append opens a file of this user's to write at its end, and makes it if it is missing: in the folder that is held
// under its folder's path, or else in one that is ours. The path may be that of a descriptor of this process.
func Append(path string) (*os.File, error) {
	dir, name := filepath.Split(path)
	if dir == "/proc/self/fd/" {
		return os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	}
	held.Lock()
	defer held.Unlock()
	f, ok := held.folders[filepath.Clean(dir)]
	if !ok {
		at, err := At(filepath.Clean(dir))
		if err != nil {
			return nil, err
		}
		defer at.Close() //nolint:errcheck // nothing to lose
		f = at
	}
	return f.Open(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY)
}
