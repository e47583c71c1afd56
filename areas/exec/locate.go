package exec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tare/area"
	"tare/internal/driver"
	"tare/internal/files"
	"tare/internal/kit"
)

// A hinted error is about the field at path, and carries a next step.
type hinted struct {
	error

	path, hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint returns the next step, for area.Fault.
func (h hinted) Hint() string { return h.hint }

func hint(path, next, format string, args ...any) error {
	return hinted{error: fmt.Errorf(format, args...), path: path, hint: next}
}

// program finds the program on this host and collects its environment. All paths are absolute, so that `tare undo`
// works from any folder.
func (s *Spec) program(env area.Env) (driver.Program, error) {
	dir, err := s.folder()
	if err != nil {
		return driver.Program{}, err
	}
	name, err := kit.ExpandHome(s.Program[0])
	if err != nil {
		return driver.Program{}, hint("program[0]", "", "%w", err)
	}
	path, err := locate(name, dir, searchPath(env))
	if err != nil {
		return driver.Program{}, err
	}
	vars, err := s.environment(env)
	if err != nil {
		return driver.Program{}, err
	}
	return driver.Program{Name: s.name(), Path: path, Args: s.Program[1:], Dir: dir, Env: vars, Files: s.code(path, dir)},
		nil
}

// code returns the files that define the program: the binary, and those arguments that are scripts or executables.
// Other arguments may be data.
func (s *Spec) code(path, dir string) map[string]string {
	out := map[string]string{path: path}
	for _, arg := range s.Program[1:] {
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(dir, arg)
		}
		if files.IsCode(arg) {
			out[arg] = arg
		}
	}
	return out
}

// name returns the program's name in errors and tables: its file, or the script that it interprets.
func (s *Spec) name() string {
	for _, arg := range s.Program[1:] {
		if _, script := files.Interpreter(arg); script && !strings.HasPrefix(arg, "-") {
			return filepath.Base(arg)
		}
	}
	return filepath.Base(s.Program[0])
}

// folder returns the program's working folder.
func (s *Spec) folder() (string, error) {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return "", fmt.Errorf("find the folder in which tare was started: %w", err)
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", hint("dir", "dir is looked up from the folder in which tare was started; leave it out to run there",
			"there is no folder %s", dir)
	case err != nil:
		return "", hint("dir", "", "look at the program's folder: %w", err)
	case !info.IsDir():
		return "", hint("dir", "", "%s is no folder", dir)
	}
	return dir, nil
}

func searchPath(env area.Env) []string {
	if env.Getenv == nil {
		return nil
	}
	text, _ := env.Getenv("PATH")
	return filepath.SplitList(text)
}

// environment returns the variables that the program receives: the usual ones that are set, and those that the file
// names.
func (s *Spec) environment(env area.Env) ([]string, error) {
	get := kit.Environment(env.Getenv)
	var out []string
	for _, name := range driver.Usual() {
		if value, ok := get(name); ok {
			out = append(out, name+"="+value)
		}
	}
	for i, name := range s.Env {
		value, ok := get(string(name))
		if !ok {
			return nil, hint(fmt.Sprintf("env[%d]", i), "set it, or leave it out of target.env",
				"the environment variable %s, which the program is to get, is not set", name)
		}
		out = append(out, string(name)+"="+value)
	}
	return out, nil
}

// locate finds a program as a shell in dir would. It skips relative folders of PATH: what they contain depends on where
// tare was started.
func locate(name, dir string, search []string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return path, runnable(path)
	}
	for _, folder := range search {
		if path := filepath.Join(folder, name); filepath.IsAbs(folder) && runnable(path) == nil {
			return path, nil
		}
	}
	next := "install it, or write its path"
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		next = fmt.Sprintf("there is one in %s: write ./%s", dir, name)
	}
	return "", hint("program[0]", next, "no program %q in any folder of PATH", name)
}

// runnable returns an error if the file at path cannot be started.
func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hint("program[0]", "a relative path is looked up from target.dir; build it first if it must be built",
			"there is no program %s", path)
	case err != nil:
		return hint("program[0]", "", "look at the program: %w", err)
	case info.IsDir():
		return hint("program[0]", "name the program in it", "%s is a folder", path)
	case !info.Mode().IsRegular():
		return hint("program[0]", "", "%s is no file", path)
	case info.Mode().Perm()&0o111 == 0:
		return hint("program[0]", "make it executable (chmod +x), or name what runs it: program: ["+interpreterOf(
			path)+", "+path+"]", "%s is not executable", path)
	}
	return script(path)
}

// interpreterOf returns the likely interpreter of a file, from its name.
func interpreterOf(path string) string {
	if name, ok := files.Interpreter(path); ok {
		return name
	}
	return "python3"
}

// script returns an error if a script's first line names no program: the kernel would report only that the file does
// not exist, although the script does.
func script(path string) error {
	f, err := files.ForReading(path)
	if err != nil {
		return nil // it is executable, though not readable
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	line, isScript := strings.CutPrefix(string(head[:n]), "#!")
	if !isScript {
		return nil
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return hint("program[0]", "name what runs it: program: ["+interpreterOf(path)+", "+path+"]",
			"%s begins with #! and no program after it", path)
	}
	if strings.HasSuffix(line, "\r") {
		return hint("program[0]", "save it with line ends of Unix",
			"the first line of %s ends with a carriage return, which the kernel takes for a part of the program's name", path)
	}
	if _, err := os.Stat(words[0]); err != nil {
		return hint("program[0]", "name what runs it: program: ["+interpreterOf(path)+", "+path+"]",
			"%s is to be run by %s, which cannot be found", path, words[0])
	}
	return nil
}
