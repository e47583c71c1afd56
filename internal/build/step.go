package build

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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
	// Progress gets every line of what the command says, without its end, as it is said and one at a time; nil: nobody listens.
	Progress func(line string)
}

// Run runs the command and returns all that it said on both streams. Its whole process group ends with ctx, whose error it then is; the command
// itself, if we are killed: a build that went on would be beside the next one, without the lock.
func (s Step) Run(ctx context.Context) (string, error) {
	runtime.LockOSThread() // Pdeathsig comes when the thread that forked ends
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, s.Path, s.Args...)
	out := &said{tell: s.Progress}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, append(proc.Environment(s.Keep...), s.Env...), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killedWithin
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.all.String(), err
}

// said keeps what a command says and passes it on by lines. Only one goroutine writes: both streams are one.
type said struct {
	all  bytes.Buffer
	from int // where the line begins that has not been told
	tell func(line string)
}

// Write implements io.Writer.
func (s *said) Write(p []byte) (int, error) {
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

// Tail is the end of what a command said, for an error.
func Tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// Look finds an executable file in PATH, as exec.LookPath does, but in the PATH that getenv gives. Relative entries are passed over.
func Look(name string, getenv func(name string) (string, bool)) (string, bool) {
	path, _ := getenv("PATH")
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && Executable(file) {
			return file, true
		}
	}
	return "", false
}

// Executable reports whether file is a regular file that somebody may run.
func Executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
