package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/proc"
)

// A Daemon is a server that is confined as a whole, while its load comes from a process that is not. Whoever starts it runs Command in Dir as the leader of
// a process group, asks Ready, measures with Measure, and ends it by SIGTERM to its pid, which ends its workers too; after SIGKILL to the pid alone they
// would live on, so SIGKILL goes to the group.
type Daemon interface {
	// Name is "redis" or "nginx".
	Name() string
	// Command is the command line; it stays in the foreground. The program is an absolute path.
	Command() []string
	// Dir is the working directory, and the only place where the daemon writes.
	Dir() string
	// Ready connects, again and again until the daemon answers rightly or ctx ends.
	Ready(ctx context.Context, c clock.Clock) error
	// Load makes n requests one after another on one connection and checks every answer. After an error it is of no more use.
	Load(ctx context.Context, n int) error
	// Close ends the connection.
	Close() error
}

// Daemons lists the names that NewDaemon knows.
func Daemons() []string { return []string{"nginx", "redis"} }

// NewDaemon prepares the daemon of that name in dir, an empty directory that must exist. The error is a *Missing when the program is not installed.
func NewDaemon(name, dir string) (Daemon, error) {
	switch name {
	case "redis":
		return newRedis(dir)
	case "nginx":
		return newNginx(dir)
	}
	return nil, fmt.Errorf("unknown daemon %.40q", name)
}

// installed looks a program up in PATH and where daemons are.
func installed(program, debian string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", program))
	}
	if err != nil {
		return "", &Missing{Program: program, Package: debian}
	}
	return filepath.Abs(path)
}

// Measure makes n requests of d, whose process and descendants are tree, and returns their cost: wall time as the client sees it, and the CPU time of the
// daemon alone. What the daemon does beside, such as its timers, is part of it.
func Measure(ctx context.Context, d Daemon, tree *proc.Tree, n int) (Cost, error) {
	if n < 1 || n > maxCalls {
		return Cost{}, fmt.Errorf("measure %s: %d requests: must be 1 to %d", d.Name(), n, maxCalls)
	}
	cpu, err := tree.CPU()
	if err != nil {
		return Cost{}, fmt.Errorf("measure %s: %w", d.Name(), err)
	}
	began, err := read(unix.CLOCK_MONOTONIC)
	if err != nil {
		return Cost{}, err
	}
	if err := d.Load(ctx, n); err != nil {
		return Cost{}, fmt.Errorf("measure %s: %w", d.Name(), err)
	}
	ended, err := read(unix.CLOCK_MONOTONIC)
	if err != nil {
		return Cost{}, err
	}
	after, err := tree.CPU()
	if err != nil {
		return Cost{}, fmt.Errorf("measure %s: %w", d.Name(), err)
	}
	if err := tree.Unchanged(); err != nil {
		return Cost{}, fmt.Errorf("measure %s: %w", d.Name(), err)
	}
	return Cost{N: n, Wall: max(1, ended-began), CPU: after - cpu}, nil
}

// patience is the wait between attempts to reach a daemon that starts.
const patience = 10 * time.Millisecond

// session is a connection to a daemon's socket.
type session struct {
	dir, socket string
	conn        net.Conn
	lines       *bufio.Reader
}

// ready connects and asks until it gets the right answer.
func (s *session) ready(ctx context.Context, c clock.Clock, ask func() error) error {
	for {
		err := s.dial(ctx)
		if err == nil {
			err = s.within(ctx, ask)
		}
		if err == nil {
			return nil
		}
		_ = s.Close()
		if e := c.Sleep(ctx, patience); e != nil {
			return fmt.Errorf("it does not answer: %w (%w)", err, e)
		}
	}
}

// dial reaches the socket through a descriptor of its directory, because the path itself may be longer than the 107 bytes of an address.
func (s *session) dial(ctx context.Context) error {
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	at := filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), s.socket)
	var d net.Dialer
	if s.conn, err = d.DialContext(ctx, "unix", at); err != nil {
		return err
	}
	s.lines = bufio.NewReader(s.conn)
	return nil
}

// within runs f and closes the connection under it when ctx ends.
func (s *session) within(ctx context.Context, f func() error) error {
	if s.conn == nil {
		return net.ErrClosed
	}
	closed := make(chan struct{})
	conn := s.conn
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = conn.Close()
	})
	err := f()
	if !stop() {
		<-closed
		return context.Cause(ctx)
	}
	return err
}

// Close ends the connection.
func (s *session) Close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
