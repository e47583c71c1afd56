package workload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/proc"
)

// A Daemon is a server that is confined as a whole; its load comes from an unconfined process. Its owner runs Command
// in Dir as the leader of a process group, calls Ready, measures with Measure, and ends it by SIGTERM to its pid, which
// ends its workers too. After SIGKILL to the pid alone they would survive, so SIGKILL goes to the group.
type Daemon struct {
	// Name is one of Daemons.
	Name string
	// Command is the command line, with an absolute program path. The program stays in the foreground.
	Command []string
	// Dir is the working directory. The daemon writes nowhere else.
	Dir string
	// Port is the TCP port on which it listens, of 127.0.0.1; 0: it listens on a Unix socket in Dir.
	Port int

	protocol serverProtocol
	threads  int          // that answer requests, to be warmed up; 0: none
	release  func() error // frees the port; nil for a daemon on a Unix socket
	conns    []*conn      // to the daemon
	exchange exchange     // what Load does
}

// serverProtocol is how a daemon is asked.
type serverProtocol interface {
	// greet makes a request of no particular kind and checks the answer.
	greet(c *conn) error
	// prepare does over c what n requests of a kind need to have been done before.
	prepare(c *conn, kind string, n int) (exchange, error)
}

// An exchange is a kind of request, and what checks an answer to it.
type exchange struct {
	request func() string
	check   func(answer *bufio.Reader) error
}

// conn is a connection to a daemon.
type conn struct {
	net.Conn

	lines *bufio.Reader
}

// Daemons lists the names that NewDaemon knows.
func Daemons() []string { return []string{"apache", "nginx", "redis"} }

// NewDaemon prepares the daemon of that name in dir, an empty directory that must exist. It accepts that many
// connections. The error is a *Missing when the program is not installed.
func NewDaemon(name, dir string, connections int) (*Daemon, error) {
	switch name {
	case "redis":
		return newRedis(dir, connections)
	case "nginx":
		return newNginx(dir, connections)
	case "apache":
		return newApache(dir, connections)
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
func Measure(ctx context.Context, d *Daemon, tree *proc.Tree, l Load, n int) (Cost, error) {
	cost, err := d.measure(ctx, tree, l, n)
	if err != nil {
		return Cost{}, fmt.Errorf("measure %s: %w", l.Name(), err)
	}
	return cost, nil
}

func (d *Daemon) measure(ctx context.Context, tree *proc.Tree, l Load, n int) (Cost, error) {
	if n < 1 || n > maxCalls {
		return Cost{}, fmt.Errorf("%d requests: must be 1 to %d", n, maxCalls)
	}
	if err := d.Prepare(ctx, l, n); err != nil {
		return Cost{}, err
	}
	cpu, err := tree.CPU()
	if err != nil {
		return Cost{}, err
	}
	began, err := read(unix.CLOCK_MONOTONIC)
	if err != nil {
		return Cost{}, err
	}
	if err := d.Load(ctx, n); err != nil {
		return Cost{}, err
	}
	ended, err := read(unix.CLOCK_MONOTONIC)
	if err != nil {
		return Cost{}, err
	}
	after, err := tree.CPU()
	if err != nil {
		return Cost{}, err
	}
	return Cost{N: n, Wall: max(1, ended-began), CPU: after - cpu}, tree.Unchanged()
}

// patience is the interval between attempts to connect to a starting daemon.
const patience = 10 * time.Millisecond

// Ready connects repeatedly until the daemon answers correctly or ctx ends.
func (d *Daemon) Ready(ctx context.Context, c clock.Clock) error {
	for {
		_ = d.hangUp() // what is left of the last attempt
		err := d.connect(ctx, 1)
		if err == nil {
			err = d.warmUp(ctx, c)
		}
		if err == nil {
			return nil
		}
		if c.Sleep(ctx, patience) != nil {
			return fmt.Errorf("reach %s: it does not answer: %w (%w)%s", d.Name, err, context.Cause(ctx), d.lastError())
		}
	}
}

// warmUp lets each thread of a web server answer a request, since its first costs about a third more. A thread that has
// got the first line of a request waits for the rest, so all threads are busy at once.
func (d *Daemon) warmUp(ctx context.Context, c clock.Clock) error {
	for len(d.conns) < d.threads {
		one, err := d.dial(ctx)
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", len(d.conns)+1, d.threads, err)
		}
		d.conns = append(d.conns, one)
	}
	if d.threads == 0 {
		return nil
	}
	return within(ctx, d.conns, func() error {
		if err := d.sendAll(pageLine); err != nil {
			return err
		}
		const each = 100 * time.Microsecond // to be given to a thread
		if err := c.Sleep(ctx, time.Duration(d.threads)*each); err != nil {
			return err
		}
		if err := d.sendAll(pageRest); err != nil {
			return err
		}
		for _, one := range d.conns {
			if err := d.exchange.check(one.lines); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *Daemon) sendAll(text string) error {
	for _, c := range d.conns {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
	}
	return nil
}

// lastError returns "; it logged: " and the last line of the daemon's error log, or "" if the log is empty.
func (d *Daemon) lastError() string {
	text, err := files.Read(filepath.Join(d.Dir, errorLog), mostErrorLog)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if last := lines[len(lines)-1]; err == nil && len(last) > 0 {
		return fmt.Sprintf("; it logged: %.300s", last)
	}
	return ""
}

// errorLog is the log of a web server, in its directory.
const (
	errorLog = "error.log"
	// mostErrorLog bounds what is read of it, in bytes.
	mostErrorLog = 64 << 20
)

// Prepare opens as many connections as l has, closes all others, and does what n requests need. After an error of
// Prepare or Load neither must be called again.
func (d *Daemon) Prepare(ctx context.Context, l Load, n int) error {
	if err := d.connect(ctx, l.Width()); err != nil {
		return fmt.Errorf("prepare %d requests: %w", n, err)
	}
	err := within(ctx, d.conns, func() (err error) {
		d.exchange, err = d.protocol.prepare(d.conns[0], l.Kind, n)
		return err
	})
	if err != nil {
		return fmt.Errorf("prepare %d requests: %w", n, err)
	}
	return nil
}

// Load makes n requests in rounds: it sends one on each connection, and then reads and checks the answer on each. So a
// connection has at most one request in flight.
func (d *Daemon) Load(ctx context.Context, n int) error {
	return within(ctx, d.conns, func() error {
		for n > 0 {
			round := d.conns[:min(n, len(d.conns))]
			for i, c := range round {
				if _, err := io.WriteString(c, d.exchange.request()); err != nil {
					return fmt.Errorf("connection %d of %d: %w", i+1, len(d.conns), err)
				}
			}
			for i, c := range round {
				if err := d.exchange.check(c.lines); err != nil {
					return fmt.Errorf("connection %d of %d: %w", i+1, len(d.conns), err)
				}
			}
			n -= len(round)
		}
		return nil
	})
}

// connect opens or closes connections until there are as many as wanted, and lets the daemon finish with each.
func (d *Daemon) connect(ctx context.Context, want int) error {
	if len(d.conns) > want {
		closing := d.conns[want:]
		d.conns = d.conns[:want]
		for _, c := range closing {
			_ = c.Close() // nothing is buffered
		}
		for _, c := range d.conns { // a daemon that answers has noticed what happened before
			if err := d.greet(ctx, c); err != nil {
				return err
			}
		}
	}
	for len(d.conns) < want {
		c, err := d.dial(ctx)
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", len(d.conns)+1, want, err)
		}
		d.conns = append(d.conns, c)
		if err := d.greet(ctx, c); err != nil {
			return fmt.Errorf("connection %d of %d: %w", len(d.conns), want, err)
		}
	}
	return nil
}

func (d *Daemon) greet(ctx context.Context, c *conn) error {
	return within(ctx, []*conn{c}, func() error { return d.protocol.greet(c) })
}

// dial connects to a Unix socket through a descriptor of its directory, because the path may exceed the 107 bytes of an
// address. A TCP connection ends by reset, which leaves no TIME_WAIT.
func (d *Daemon) dial(ctx context.Context) (*conn, error) {
	var dialer net.Dialer
	if d.Port > 0 {
		c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port)))
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			err = tcp.SetLinger(0)
		}
		return &conn{c, bufio.NewReader(c)}, err
	}
	dir, err := files.ForReading(d.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	c, err := dialer.DialContext(ctx, "unix", filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), socketFile))
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

// socketFile is the Unix socket of a daemon, in its directory.
const socketFile = "socket"

// within runs f and closes the connections when ctx ends.
func within(ctx context.Context, conns []*conn, f func() error) error {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		for _, c := range conns {
			_ = c.Close()
		}
	})
	err := f()
	if !stop() {
		<-closed
		return context.Cause(ctx)
	}
	return err
}

// Close ends all connections and frees the port.
func (d *Daemon) Close() error {
	err := d.hangUp()
	if d.release != nil {
		err = errors.Join(err, d.release())
		d.release = nil
	}
	return err
}

func (d *Daemon) hangUp() error {
	var errs []error
	for _, c := range d.conns {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	d.conns = nil
	return errors.Join(errs...)
}
