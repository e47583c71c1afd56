package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"tare/internal/clock"
	"tare/internal/probe"
)

// A Program is somebody else's server, which speaks nothing of package proc's protocol: a child of tare runs it as a
// child of its own. The load is in that grandchild: look at the whole process tree.
type Program struct {
	Name, Path string
	Args       []string
	Env        []string // besides that of the child
	Dir        string
	Files      []*os.File    // that it inherits, as descriptors from 3 on; the caller closes them
	Within     time.Duration // bounds the start
	// At are the addresses at which it listens once it is healthy. Until then any process can have taken them.
	At []netip.AddrPort
}

const (
	programEvery = 10 * time.Millisecond
	programStop  = 3 * time.Second
)

// Run runs the program until ctx ends. healthy is asked until it returns nil, and ready is called then with how long
// the start took.
func (p Program) Run(ctx context.Context, healthy func(context.Context) error, ready func(took time.Duration) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := clock.System{}.Now()
	started, ended := make(chan error, 1), make(chan struct{})
	var said lastBytes
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.ExtraFiles = &said, &said, p.Dir, p.Files
	cmd.Env = append(cmd.Environ(), p.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = programStop
	go func() { // one thread from fork to end: the kernel sends Pdeathsig when the thread that forked ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			err = cmp.Or(cmd.Wait(), errors.New("exit status 0"))
		}
		cancel(fmt.Errorf("%s ended by itself (%w): %s", p.Name, err, said.text)) // not the cause, if ctx has ended before
		close(ended)
	}()
	err := p.await(ctx, healthy)
	if err == nil {
		err = <-started
	}
	if err == nil {
		err = p.listens(cmd.Process.Pid)
	}
	if err == nil {
		err = ready(clock.System{}.Now().Sub(began))
	}
	if err == nil {
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	cancel(err)
	<-ended
	return err
}

// await asks healthy until it returns nil.
func (p Program) await(ctx context.Context, healthy func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, p.Within)
	defer cancel()
	for {
		err := healthy(within)
		if err == nil {
			return nil
		}
		if (clock.System{}).Sleep(within, programEvery) != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return fmt.Errorf("%s is not ready within %v: %w", p.Name, p.Within, err)
		}
	}
}

// listens returns an error unless the process or its children listen at the program's addresses.
func (p Program) listens(pid int) error {
	for _, at := range p.At {
		if err := probe.ListensWithin(nil, at, pid); err != nil {
			return fmt.Errorf("%s: a port was taken before it listened there: %w; run it again, it then gets another port",
				p.Name, err)
		}
	}
	return nil
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct{ text []byte }

// Write implements io.Writer.
func (l *lastBytes) Write(p []byte) (int, error) {
	const most = 2000
	l.text = append(l.text, p...)
	l.text = l.text[max(0, len(l.text)-most):]
	return len(p), nil
}
