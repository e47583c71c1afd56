package build

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tare/internal/proc"
)

// killedWithin bounds the wait for the output of a build that was killed.
const killedWithin = 5 * time.Second

// A Step is one command of a build.
type Step struct {
	Path string
	Args []string
	Dir  string
	Env  []string // besides proc.Environment
	Keep []string // names of further variables of the process's own environment that the command gets
	// Progress receives every line of the command's output, without its end, one at a time; nil: none is passed on.
	Progress func(line string)
}

// Run runs the command and returns its output on both streams. Its whole process group ends with ctx, whose error Run
// then returns. The command also ends if tare is killed: otherwise it would run beside the next build, without the
// lock.
func (s Step) Run(ctx context.Context) (string, error) {
	cmd := proc.Command(ctx, s.Path, s.Args...)
	out := &lineWriter{tell: s.Progress}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, append(proc.Environment(s.Keep...), s.Env...), out, out
	cmd.WaitDelay = killedWithin
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.all.String(), err
}

// lineWriter keeps a command's output and passes it on by lines. Only one goroutine writes: both streams are one.
type lineWriter struct {
	all  bytes.Buffer
	from int // start of the line that has not been passed on
	tell func(line string)
}

// Write implements io.Writer.
func (s *lineWriter) Write(p []byte) (int, error) {
	s.all.Write(p)
	for s.tell != nil {
		rest := s.all.Bytes()[s.from:]
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			break
		}
		s.tell(string(bytes.TrimSuffix(rest[:n], []byte{'\r'})))
		s.from += n + 1
	}
	return len(p), nil
}

// Tail returns the end of a command's output, for an error.
func Tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// Look finds an executable file in PATH, as exec.LookPath does, but in the PATH that getenv returns. It skips relative
// entries.
func Look(name string, getenv func(name string) (string, bool)) (string, bool) {
	path, _ := getenv("PATH")
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && Executable(file) {
			return file, true
		}
	}
	return "", false
}

// Executable reports whether file is a regular file with an execute permission.
func Executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
