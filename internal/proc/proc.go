// Package proc runs child processes that end with their parent, limits their CPU as a container runtime would, and
// burns CPU in known amounts. tare's own servers run as such children of its binary.
package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
)

const (
	defaultReadyWithin = 10 * time.Second
	defaultGrace       = 5 * time.Second
)

// Spec says what to start and how.
type Spec struct {
	Name string // used in errors: "sts"
	Path string // the binary
	Args []string
	Env  []string // nil: the parent's variables that hold no secret (plainNames)
	Dir  string   // working directory; empty: the parent's
	// Config is written to the child's stdin as one line of JSON. Stdin then stays open for as long as the parent lives.
	Config any
	// Talk leaves the child's stdin and stdout to the caller, as Child.In and Child.Out: no config is sent, no ready line
	// is awaited, and Start returns after Born. A child that is not tare's own program runs before Born; Born then only
	// precedes the first request to it.
	Talk bool
	// LogFile receives the child's stderr, appended. Empty: it is discarded, and errors cannot quote it.
	LogFile string
	// Secrets are values known to the child that its log, Tail and MaskSecrets must mask. Values of less than
	// shortestSecret bytes are not masked: they occur as ordinary words.
	Secrets []string
	// ReadyWithin bounds the wait for the ready line. Default 10 s.
	ReadyWithin time.Duration
	// Grace is how long Stop waits after SIGTERM before it sends SIGKILL. Default 5 s.
	Grace time.Duration
	// Cgroup holds the child before its config arrives, that is, before it does any work. Nil: none.
	Cgroup *Cgroup
	// CPUs are the processors on which the child may run, from 0. Empty: all that the parent has.
	CPUs []int
	// Memory bounds the memory of its own that the child, and each of its children, may take, in bytes, before its config
	// arrives; 0: nothing does. JVMs reserve more than they take.
	Memory uint64
	// Files are further files that the child inherits, as descriptors from 3 on. The caller closes them.
	Files []*os.File
	// Born is called when the process exists and before it gets its config, so that the caller can journal the process
	// before it does anything. An error ends the child and Start. May be nil.
	Born func(ID) error
}

// ID names a process uniquely: a pid may be reused, and a pid with its start time may be after another boot.
type ID struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`    // clock ticks from boot, field 22 of /proc/PID/stat
	Boot       string `json:"boot,omitempty"` // the kernel's id of the boot; empty: written by an earlier tare
}

// Child is a started process. Its methods may be called from any goroutine.
type Child struct {
	ID
	Name string
	// Ready is what the child passed to its ready function, as JSON.
	Ready json.RawMessage
	// In writes to the child's stdin and Out reads its stdout, both with deadlines. They are set with Spec.Talk only, and
	// the caller closes them: what a child wrote before its end can be read afterwards.
	In, Out *os.File

	spec  Spec
	cmd   *exec.Cmd
	stdin *os.File
	log   childLog

	group  group
	err    error
	exited chan struct{} // closed by supervise when the child has been reaped
}

// Start starts a child and returns when it has sent its ready line. ctx bounds the start only: the child lives until
// Stop, its own end, or the end of this process, even by SIGKILL. An error holds the exit status, the last lines of the
// child's log and a next step; the child has then ended.
func Start(ctx context.Context, spec Spec) (*Child, error) {
	if spec.ReadyWithin <= 0 {
		spec.ReadyWithin = defaultReadyWithin
	}
	if spec.Grace <= 0 {
		spec.Grace = defaultGrace
	}
	config, err := json.Marshal(spec.Config)
	if err != nil {
		return nil, fmt.Errorf("start %s: encode config: %w", spec.Name, err)
	}
	c := &Child{Name: spec.Name, spec: spec, exited: make(chan struct{})}
	ready, err := c.fork()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if err := c.configure(config); err != nil {
		c.kill()
		closeAll(c.In, c.Out)
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if spec.Talk {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, spec.ReadyWithin)
	defer cancel()
	if err := c.awaitReady(ctx, ready); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return c, nil
}

// configure does everything that must precede the child's work: it reads its identity, adds it to the control group,
// journals it, and sends the config.
func (c *Child) configure(config []byte) error {
	id, err := Identify(c.PID)
	if err != nil {
		return c.exitOr(fmt.Errorf("read start time: %w", err))
	}
	c.StartTicks, c.Boot = id.StartTicks, id.Boot // PID is set already: supervise reads it meanwhile
	if c.spec.Cgroup != nil {
		if err := c.spec.Cgroup.Add(c.PID); err != nil {
			return err
		}
	}
	if err := Bound(c.PID, unix.RLIMIT_DATA, c.spec.Memory); err != nil {
		return c.exitOr(err)
	}
	if c.spec.Born != nil {
		if err := c.spec.Born(c.ID); err != nil {
			return err
		}
	}
	if c.spec.Talk {
		return nil
	}
	return c.send(append(config, '\n'))
}

// send writes to the child's stdin, which can block when the child does not read.
func (c *Child) send(line []byte) error {
	if err := c.stdin.SetWriteDeadline(clock.System{}.Now().Add(c.spec.ReadyWithin)); err != nil {
		return c.exitOr(fmt.Errorf("send config: %w", err))
	}
	if _, err := c.stdin.Write(line); err != nil {
		return c.exitOr(fmt.Errorf("send config: %w", err))
	}
	return nil
}

// exitOr returns the child's exit as the error if it has ended, and else err, which the exit would merely have caused.
func (c *Child) exitOr(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	when := "before it read its config"
	if c.spec.Talk {
		when = "at once"
	}
	select {
	case <-c.exited:
		return c.describeExit(when)
	case <-ctx.Done():
		return err
	}
}

func (c *Child) awaitReady(ctx context.Context, ready <-chan readyLine) error {
	select {
	case r := <-ready:
		if r.err != nil {
			return c.notReady(r)
		}
		c.Ready = r.value
		return nil
	case <-ctx.Done():
	}
	c.kill()
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("not ready within %v: raise the limit, or see why it hangs%s", c.spec.ReadyWithin, c.log.tail())
}

// notReady explains why stdout ended or had no ready line. If the child has ended, its exit status is the better
// explanation.
func (c *Child) notReady(r readyLine) error {
	if r.eof {
		if err := c.exitOr(r.err); !errors.Is(err, r.err) {
			return err
		}
	}
	c.kill()
	return fmt.Errorf("%w%s", r.err, c.log.tail())
}

// Exited returns a channel that is closed when the child has ended, for whatever reason.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Wait waits until the child has ended. It returns nil for exit status 0, and otherwise an error with the status and
// the last lines of the log.
func (c *Child) Wait(ctx context.Context) error {
	select {
	case <-c.exited:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.Name, c.describeExit("by itself"))
}

// Status describes how the child ended, "exit status 3" or "signal: killed"; it is empty after exit status 0. It waits
// for the end.
func (c *Child) Status() string {
	<-c.exited
	if c.err == nil {
		return ""
	}
	return c.err.Error()
}

// Tail returns the end of an error message about the child: the last lines of its log, or that it has none.
func (c *Child) Tail() string { return c.log.tail() }

// MaskSecrets masks, in place, the child's secrets in a text that it wrote.
func (c *Child) MaskSecrets(said []byte) []byte { return c.log.secrets.Fill(said) }

// Stop sends SIGTERM to the child's process group, and SIGKILL after Spec.Grace or the end of ctx. It returns when the
// child has been reaped; a child that has ended already is no error. Use Exited and Wait to notice an unexpected end.
func (c *Child) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.spec.Grace)
	defer cancel()
	if err := c.group.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", c.Name, err)
	}
	select {
	case <-c.exited:
	case <-ctx.Done():
		c.kill()
	}
	return nil
}

// Signal sends sig to the child's process group. After the child's end it does nothing.
func (c *Child) Signal(sig syscall.Signal) error {
	if err := c.group.signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", c.Name, err)
	}
	return nil
}

// kill ends the process group and waits for it. SIGKILL cannot fail for a child of the same user, so there is no error
// to return.
func (c *Child) kill() {
	_ = c.group.signal(syscall.SIGKILL) // only the end, awaited below, counts
	<-c.exited
}

// describeExit returns how the child ended as an error. The child must have exited.
func (c *Child) describeExit(when string) error {
	status := "exit status 0"
	if c.err != nil {
		status = c.err.Error()
	}
	return fmt.Errorf("ended %s (%s); run it manually to see more: %s%s", when, status, c.commandLine(), c.log.tail())
}

func (c *Child) commandLine() string {
	return strings.Join(append([]string{filepath.Base(c.spec.Path)}, c.spec.Args...), " ")
}
