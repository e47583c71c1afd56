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

// A Daemon is a server that is confined as a whole; its load comes from an unconfined process. Its owner runs Command
// in Dir as the leader of a process group, calls Ready, measures with Measure, and ends it by SIGTERM to its pid, which
// ends its workers too. After SIGKILL to the pid alone they would survive, so SIGKILL goes to the group.
type Daemon interface {
	// Name is "redis" or "nginx".
	Name() string
	// Command is the command line, with an absolute program path. The program stays in the foreground.
	Command() []string
	// Dir is the working directory. The daemon writes nowhere else.
	Dir() string
	// Ready connects repeatedly until the daemon answers correctly or ctx ends.
	Ready(ctx context.Context, c clock.Clock) error
	// Load makes n requests in sequence on one connection and checks every answer. After an error it must not be called
	// again.
	Load(ctx context.Context, n int) error
	// Close ends the connection.
	Close() error
}

// Daemons lists the names that NewDaemon knows.
func Daemons() []string { return []string{"nginx", "redis"} }

// NewDaemon prepares the daemon of that name in dir, an empty directory that must exist. The error is a *Missing when
// the program is not installed.
func NewDaemon(name, dir string) (Daemon, error) {
	switch name {
	case "redis":
		return newRedis(dir)
	case "nginx":
		return newNginx(dir)
	}
	return nil, fmt.Errorf("unknown daemon %.40q", name)
}

// installed looks a program up in PATH and in the usual folders of daemons.
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

// Measure makes n requests of d, whose processes are tree, and returns their cost: wall time at the client, and the CPU
// time of the daemon, including its background work such as timers.
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

// patience is the interval between attempts to connect to a starting daemon.
const patience = 10 * time.Millisecond

// daemonConn is a connection to a daemon's socket.
type daemonConn struct {
	dir, socket string
	conn        net.Conn
	lines       *bufio.Reader
}

// ready connects and calls ask until the answer is right.
func (s *daemonConn) ready(ctx context.Context, c clock.Clock, ask func() error) error {
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

// dial connects through a descriptor of the socket's directory, because the path may exceed the 107 bytes of an
// address.
func (s *daemonConn) dial(ctx context.Context) error {
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

// within runs f and closes its connection when ctx ends.
func (s *daemonConn) within(ctx context.Context, f func() error) error {
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
func (s *daemonConn) Close() error {
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
