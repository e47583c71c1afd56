// Package compiler runs the compilers of security policies: installed programs that read a source and write a binary.
package compiler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/proc"
)

// Limits of a compilation.
const (
	within       = time.Minute
	mostSeconds  = 60       // of processor time, also if tare has ended
	mostMemory   = 1 << 30  // in bytes; a profile of a kilobyte can ask for more than any memory
	mostOutput   = 16 << 20 // more than any policy of a distribution
	mostMessages = 64 << 10
)

// The names by which the program opens its source and, if it writes no standard output, the result. They are files
// without a folder, so nothing is left behind, and a message can tell the source from files that it includes.
const (
	SourceFile = "/proc/self/fd/3"
	ResultFile = "/proc/self/fd/4"
)

// A Compiler is an installed program.
type Compiler struct {
	Program string // "secilc"
	Package string // the Debian package that has it
	// Messages makes the messages of a failure shorter; nil: they are lines.
	Messages func(stderr string) []string
}

// Find returns the path of the program. The folders of administration are not in the PATH of every user.
func (c Compiler) Find() (string, error) {
	for _, path := range []string{c.Program, "/usr/sbin/" + c.Program, "/sbin/" + c.Program} {
		if found, err := exec.LookPath(path); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", area.WithHint(fmt.Errorf("%s is not installed", c.Program),
		"install it, such as by: apt-get install "+c.Package)
}

// Run runs the program on a source that messages call name. It returns what the program wrote to standard output and
// then to ResultFile, and its messages. It starts no shell, ends after a minute at the latest, and takes no more than
// mostMemory.
func (c Compiler) Run(ctx context.Context, name, source string, args ...string) (out []byte, messages []string,
	err error,
) {
	program, err := c.Find()
	if err != nil {
		return nil, nil, err
	}
	files, err := memoryFiles(source, "")
	if err != nil {
		return nil, nil, fmt.Errorf("compile %s: %w", name, err)
	}
	defer files[0].Close() //nolint:errcheck // it is in memory
	defer files[1].Close() //nolint:errcheck // it is in memory
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := proc.Command(bounded, program, args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = "/"
	cmd.ExtraFiles = files
	cmd.Seconds, cmd.Memory = mostSeconds, mostMemory
	stdout, stderr := limited{most: mostOutput}, limited{most: mostMessages}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := c.explain(ctx, bounded, cmd.Run(), name, &stderr); err != nil {
		return nil, nil, err
	}
	result, err := io.ReadAll(io.LimitReader(files[1], mostOutput+1))
	if err != nil {
		return nil, nil, fmt.Errorf("compile %s: read the result: %w", name, err)
	}
	if stdout.over || len(result) > mostOutput {
		return nil, nil, fmt.Errorf("compile %s: %s wrote more than %d bytes", name, c.Program, mostOutput)
	}
	return append(stdout.kept.Bytes(), result...), c.messages(stderr.kept.String(), name), nil
}

// explain returns the error of a run with what the program said.
func (c Compiler) explain(ctx, bounded context.Context, err error, name string, stderr *limited) error {
	switch said := c.messages(stderr.kept.String(), name); {
	case ctx.Err() != nil:
		return fmt.Errorf("compile %s: %w", name, ctx.Err())
	case bounded.Err() != nil:
		return fmt.Errorf("compile %s: %s did not end within %s", name, c.Program, within)
	case err != nil && noMemory.Match(stderr.kept.Bytes()):
		return fmt.Errorf("compile %s: %s needs more than %d MiB of memory", name, c.Program, mostMemory>>20)
	case err != nil && len(said) > 0:
		return fmt.Errorf("compile %s: %s", name, strings.Join(said, "; "))
	case err != nil:
		return fmt.Errorf("compile %s: %s: %w", name, c.Program, err)
	}
	return nil
}

// noMemory is how programs in C and C++ say that they got no more memory.
var noMemory = regexp.MustCompile(`(?i)bad_alloc|out of memory|memory (exhausted|allocation)|allocate memory`)

// messages returns what the program said, a line each, with the source's name.
func (c Compiler) messages(stderr, name string) []string {
	var out []string
	if c.Messages != nil {
		out = c.Messages(stderr)
	} else {
		out = strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' })
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], SourceFile, name)
	}
	return out
}

// memoryFiles returns files in memory that hold these texts.
func memoryFiles(texts ...string) (files []*os.File, err error) {
	for _, text := range texts {
		fd, e := unix.MemfdCreate("policy", unix.MFD_CLOEXEC)
		if e != nil {
			err = fmt.Errorf("make a file in memory: %w", e)
			break
		}
		files = append(files, os.NewFile(uintptr(fd), "policy"))
		if _, e := files[len(files)-1].WriteString(text); e != nil {
			err = fmt.Errorf("write a file in memory: %w", e)
			break
		}
	}
	if err != nil {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}
	return files, err
}

// limited is a buffer that drops what exceeds a limit. The buffer is not embedded: its ReadFrom would know no limit.
type limited struct {
	kept bytes.Buffer
	most int
	over bool
}

// Write implements io.Writer. It never fails, so the program does not block on a full pipe.
func (l *limited) Write(b []byte) (int, error) {
	keep := min(len(b), l.most-l.kept.Len())
	l.over = l.over || keep < len(b)
	_, _ = l.kept.Write(b[:keep])
	return len(b), nil
}
