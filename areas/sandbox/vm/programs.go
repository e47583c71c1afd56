package vm

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tare/internal/files"
	"tare/internal/proc"
)

// listWithin bounds the dynamic loader, which only lists libraries.
const listWithin = 10 * time.Second

// Program adds a program of this host at its own path, with what it needs to start: its dynamic loader, its libraries,
// and the interpreter of a script. It returns the program's absolute path.
func (r *Initrd) Program(ctx context.Context, name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name)) // users other than root do not have it in PATH
	}
	if err != nil {
		return "", fmt.Errorf("%s is neither in PATH nor in /usr/sbin", name)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return path, r.program(ctx, path, 0)
}

// program adds a program by its absolute path. depth counts interpreters of interpreters.
func (r *Initrd) program(ctx context.Context, path string, depth int) error {
	const deepest = 4
	if depth > deepest {
		return fmt.Errorf("%s: its interpreters are nested too deeply", path)
	}
	if err := r.resolved(path); err != nil {
		return err
	}
	interpreter, err := interpreterOf(path)
	if err != nil || interpreter == "" {
		return err
	}
	if isScript, err := beginsWith(path, "#!"); err != nil || isScript {
		if err != nil {
			return err
		}
		return r.program(ctx, interpreter, depth+1)
	}
	return r.libraries(ctx, path, interpreter)
}

// resolved adds a file under its path, and under the path to which its symbolic links lead.
func (r *Initrd) resolved(path string) error {
	target, err := files.Resolved(path)
	if err != nil {
		return err
	}
	if err := r.Put(target, target); err != nil {
		return err
	}
	if target != path {
		return r.Put(path, target)
	}
	return nil
}

// interpreterOf returns the dynamic loader of a program, or the interpreter of a script; empty for a static program.
func interpreterOf(path string) (string, error) {
	f, err := files.ForReading(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	if script, ok := strings.CutPrefix(line, "#!"); ok {
		fields := strings.Fields(script)
		if len(fields) == 0 {
			return "", fmt.Errorf("%s: its first line names no interpreter", path)
		}
		return fields[0], nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return "", fmt.Errorf("%s is neither a script nor a program: %w", path, err)
	}
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
		return string(bytes.TrimRight(text, "\x00")), err
	}
	return "", nil
}

func beginsWith(path, mark string) (bool, error) {
	f, err := files.ForReading(path)
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b := make([]byte, len(mark))
	_, err = io.ReadFull(f, b)
	return string(b) == mark, err
}

var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$`)

// libraries adds the loader of a program and the libraries that the loader finds for it.
func (r *Initrd) libraries(ctx context.Context, path, loader string) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	c := proc.Command(ctx, loader, "--list", path)
	c.Env = []string{"PATH=/usr/bin:/bin"}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		return fmt.Errorf("list the libraries of %s: %w: %.200s", path, err, bytes.TrimSpace(out.Bytes()))
	}
	if err := r.resolved(loader); err != nil {
		return err
	}
	for _, m := range library.FindAllSubmatch(out.Bytes(), -1) {
		path := string(m[1])
		if err := r.resolved(path); err != nil {
			return err
		}
		// The GNU C library loads this one when a thread ends.
		unwinder := filepath.Join(filepath.Dir(path), "libgcc_s.so.1")
		if filepath.Base(path) != "libc.so.6" || !exists(unwinder) {
			continue
		}
		if err := r.resolved(unwinder); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Tree adds the regular files below a folder of this host at their own paths.
func (r *Initrd) Tree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return r.Put(path, path)
	})
}
