package build

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usersBelow finds the processes that use a folder directly below dir, by the folder's name: those that run a program
// from it, work in it, have a file in it open, or have its path in their arguments, as a JVM has in its class path.
// proc is the path of procfs. Processes that are not readable belong to other users and are skipped: the cache is this
// user's.
func usersBelow(proc, dir string) (map[string]int, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		for _, name := range usedBy(filepath.Join(proc, e.Name()), dir) {
			out[name] = pid
		}
	}
	return out, nil
}

// usedBy returns the names of the folders below dir that one process uses.
func usedBy(process, dir string) (names []string) {
	links := []string{filepath.Join(process, "exe"), filepath.Join(process, "cwd")}
	open, _ := os.ReadDir(filepath.Join(process, "fd")) // none of a process that has just ended
	for _, f := range open {
		links = append(links, filepath.Join(process, "fd", f.Name()))
	}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil {
			names = append(names, below(path, dir)...)
		}
	}
	if args, err := os.ReadFile(filepath.Join(filepath.Clean(process), "cmdline")); err == nil {
		names = append(names, below(string(args), dir)...)
	}
	return names
}

// below returns the names of the folders of dir that a text has paths in: a path, arguments, a class path.
func below(text, dir string) (names []string) {
	parts := strings.Split(text, dir+string(filepath.Separator))
	for _, rest := range parts[1:] {
		if end := strings.IndexAny(rest, "/\x00:; "); end >= 0 {
			rest = rest[:end]
		}
		names = append(names, rest)
	}
	return names
}
