package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// heldOpen is how long a command's output may be held open by what it has left behind.
const heldOpen = time.Second

// A Cmd is a command that is run once, with Run. It gets the variables of Environment and a process group of its own,
// and the whole group ends with its context.
type Cmd struct {
	*exec.Cmd
	// EndHolders ends what is left of the group if it holds the command's output open for longer than WaitDelay.
	EndHolders bool
	// Memory bounds the memory of each process of the command's own, in bytes, before it can read Stdin; 0: nothing does.
	// One that takes more is refused that, upon which a program in Go ends, and says so on Stderr.
	Memory uint64
	// Seconds bounds the processor time of each process of the command, also if this process has ended; 0: nothing does.
	Seconds uint64

	group group
}

// Command returns a command that Run is to run.
func Command(ctx context.Context, path string, args ...string) *Cmd {
	c := &Cmd{Cmd: exec.CommandContext(ctx, path, args...)}
	c.Env = Environment()
	c.WaitDelay = heldOpen
	c.Cancel = func() error { return c.group.signal(syscall.SIGKILL) }
	return c
}

// Run runs the command to its end. It ends with this process, even by kill −9.
func (c *Cmd) Run() error {
	runtime.LockOSThread() // Pdeathsig is sent when the thread that forked ends
	defer runtime.UnlockOSThread()
	fd := -1
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &fd}
	bounded := make(chan struct{})
	if c.Memory > 0 {
		c.Env = append(c.Env, fmt.Sprintf("GOMEMLIMIT=%d", c.Memory/4*3)) // what is garbage is collected before
	}
	if c.Memory > 0 || c.Seconds > 0 {
		c.Stdin = &after{c.Stdin, bounded}
	}
	if err := c.Start(); err != nil {
		return err
	}
	c.group.follow(c.Process.Pid, fd)
	defer c.group.close()
	unbounded := errors.Join(Bound(c.Process.Pid, unix.RLIMIT_DATA, c.Memory),
		Bound(c.Process.Pid, unix.RLIMIT_CPU, c.Seconds))
	if unbounded != nil {
		_ = c.group.signal(syscall.SIGKILL) // it may have ended meanwhile
	}
	close(bounded)
	c.group.awaitLeader()
	err := c.Wait()
	if unbounded != nil {
		return unbounded
	}
	if c.EndHolders && errors.Is(err, exec.ErrWaitDelay) {
		_ = c.group.signal(syscall.SIGKILL) // they may have ended meanwhile
	}
	return err
}

// after is a Reader that waits before it reads.
type after struct {
	io.Reader
	done <-chan struct{}
}

// Read implements io.Reader.
func (a *after) Read(p []byte) (int, error) {
	<-a.done
	if a.Reader == nil {
		return 0, io.EOF
	}
	return a.Reader.Read(p)
}

// Bound sets a limit of a process (setrlimit(2)), unless it has a lower one or the limit is 0. The hard limit becomes
// the same: a program in Go goes on beyond a soft limit of its processor time.
func Bound(pid, resource int, most uint64) error {
	var limit unix.Rlimit
	if most == 0 {
		return nil
	}
	if err := unix.Prlimit(pid, resource, nil, &limit); err != nil {
		return fmt.Errorf("read a limit of process %d: %w", pid, err)
	}
	limit.Cur = min(limit.Cur, most)
	limit.Max = limit.Cur
	if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
		return fmt.Errorf("set a limit of process %d: %w", pid, err)
	}
	return nil
}

// plainNames are the variables that a child gets by default: what programs need to run, and nothing that holds a
// secret.
var plainNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"JAVA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "GODEBUG", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR",
}

// Environment returns the variables of this process that a child gets: plainNames and those that more names. A child
// may pass its environment on: OPA returns it from opa.runtime().
func Environment(more ...string) []string {
	env := []string{} // not nil: that would be the whole environment
	for _, name := range slices.Concat(plainNames, more) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return slices.Clip(env)
}
