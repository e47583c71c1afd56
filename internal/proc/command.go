package proc

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// heldOpen is how long a command's output may be held open by what it has left behind.
const heldOpen = time.Second

// Command returns a command that is run once, with RunCommand. It gets the variables of Environment and a process group
// of its own, and the whole group ends with ctx.
func Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = Environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = heldOpen
	return cmd
}

// RunCommand runs a command of Command to its end. It ends with this process, even by kill −9.
func RunCommand(cmd *exec.Cmd) error {
	runtime.LockOSThread() // Pdeathsig is sent when the thread that forked ends
	defer runtime.UnlockOSThread()
	return cmd.Run()
}
