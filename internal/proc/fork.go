package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/mask"
)

// maxReadyLine bounds the ready line, in bytes.
const maxReadyLine = 1 << 20

// drainWithin bounds the wait for a dead child's stdout, which a stray grandchild may hold open.
const drainWithin = time.Second

type readyLine struct {
	value json.RawMessage
	err   error
	eof   bool // stdout ended first: the child is ending
}

// fork starts the process. On success supervise runs until the child has been reaped.
func (c *Child) fork() (<-chan readyLine, error) {
	var files pipes
	if err := files.open(); err != nil {
		return nil, err
	}
	c.log.secrets = mask.Of(shortestSecret, c.spec.Secrets...)
	if err := c.log.open(c.spec.LogFile); err != nil {
		files.close()
		return nil, err
	}
	c.cmd = exec.Command(c.spec.Path, c.spec.Args...) //nolint:noctx // the child ends with its parent or by Stop
	c.cmd.Env, c.cmd.Dir = c.spec.Env, c.spec.Dir
	if c.cmd.Env == nil {
		c.cmd.Env = Environment()
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.ExtraFiles = files.childIn, files.childOut, c.spec.Files
	if c.log.file != nil {
		c.cmd.Stderr = c.log.file
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &files.leader}
	c.stdin = files.in
	if c.spec.Talk {
		c.In, c.Out = files.in, files.out
	}

	forked := make(chan error)
	ready := make(chan readyLine, 1)
	go c.supervise(&files, forked, ready)
	if err := <-forked; err != nil {
		return nil, err
	}
	return ready, nil
}

// supervise forks the child, waits for its end and closes its files. The kernel sends Pdeathsig when the *thread* that
// forked ends, not the process, and the Go runtime ends and reuses threads as it likes. So this goroutine stays on one
// thread from the fork to the end of the child, and ends the thread with it, since its affinity may have been changed.
// The open stdin is the second safeguard: see WatchParent.
func (c *Child) supervise(files *pipes, forked chan<- error, ready chan<- readyLine) {
	runtime.LockOSThread()
	err := c.start()
	files.closeChildEnds()
	if err != nil {
		files.close()
		c.log.close()
		forked <- err
		return
	}
	c.PID = c.cmd.Process.Pid
	c.group.follow(c.PID, files.leader)
	endBound := c.log.bound()
	drained := make(chan struct{})
	if c.spec.Talk {
		files.in, files.out = nil, nil // they belong to the caller
		close(drained)
	}
	forked <- nil
	if !c.spec.Talk {
		go func() {
			defer close(drained)
			readReady(files.out, ready)
		}()
	}
	c.group.awaitLeader()
	_ = c.group.signal(syscall.SIGKILL) // what it left in its group
	c.group.close()
	c.err = c.cmd.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	select {
	case <-drained:
	case <-ctx.Done():
	}
	files.close() // ends readReady, should it still read
	<-drained
	endBound()
	c.log.close()
	c.log.mask()
	close(c.exited)
}

// start forks with the affinity that the child is to inherit from this thread.
func (c *Child) start() error {
	if len(c.spec.CPUs) > 0 {
		var set unix.CPUSet
		for _, cpu := range c.spec.CPUs {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("pin to CPUs %v: %w; this machine has %d", c.spec.CPUs, err, runtime.NumCPU())
		}
	}
	return c.cmd.Start()
}

// readReady reads the ready line and then discards stdout, so that the child never blocks on it.
func readReady(out io.Reader, ready chan<- readyLine) {
	r := bufio.NewReader(io.LimitReader(out, maxReadyLine))
	line, err := r.ReadBytes('\n')
	ready <- parseReady(line, err)
	_, _ = io.Copy(io.Discard, out)
}

func parseReady(line []byte, err error) readyLine {
	if err != nil {
		return readyLine{err: fmt.Errorf("stdout ended before a ready line: %w", err), eof: true}
	}
	var msg struct {
		Ready json.RawMessage `json:"ready"`
	}
	if err := json.Unmarshal(line, &msg); err != nil || msg.Ready == nil {
		const most = 120
		return readyLine{err: fmt.Errorf("expected a line {\"ready\": …} on stdout, got %q: a child must log to stderr",
			line[:min(len(line), most)])}
	}
	return readyLine{value: msg.Ready}
}

// pipes are the two pipes between parent and child, and the descriptor by which the child is signalled.
type pipes struct {
	childIn, in   *os.File
	out, childOut *os.File
	leader        int // pidfd of the child; -1: none
}

func (p *pipes) open() (err error) {
	p.leader = -1
	if p.childIn, p.in, err = os.Pipe(); err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	if p.out, p.childOut, err = os.Pipe(); err != nil {
		p.close()
		return fmt.Errorf("open pipe: %w", err)
	}
	return nil
}

func (p *pipes) closeChildEnds() {
	closeAll(p.childIn, p.childOut)
	p.childIn, p.childOut = nil, nil
}

func (p *pipes) close() {
	closeAll(p.childIn, p.in, p.out, p.childOut)
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // pipes: nothing is buffered that could be lost
		}
	}
}
