package proc

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// heldOpen is how long a command's output may be held open by what it has left behind.
const heldOpen = time.Second

// A Cmd is a command that is run once, with Run. It gets the variables of Environment and a process group of its own,
// and the whole group ends with its context.
type Cmd struct {
	*exec.Cmd
	// EndHolders ends what is left of the group if it holds the command's output open for longer than WaitDelay.
	EndHolders bool

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
	if err := c.Start(); err != nil {
		return err
	}
	c.group.follow(c.Process.Pid, fd)
	defer c.group.close()
	c.group.awaitLeader()
	err := c.Wait()
	if c.EndHolders && errors.Is(err, exec.ErrWaitDelay) {
		_ = c.group.signal(syscall.SIGKILL) // they may have ended meanwhile
	}
	return err
}
