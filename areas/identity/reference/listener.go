package reference

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"tare/internal/files"
	"tare/internal/kit"
)

// listen opens addr with the given listen(2) backlog and returns the backlog in force. Go always asks for
// net.core.somaxconn; a second listen(2) on the same socket changes its backlog, which the kernel clips to somaxconn.
func listen(ctx context.Context, addr string, backlog int) (net.Listener, int, error) {
	l, err := kit.Listen(ctx, addr)
	if err != nil {
		return nil, 0, err
	}
	limit := MaxBacklog()
	if backlog == 0 {
		return l, limit, nil
	}
	if err := setBacklog(l, backlog); err != nil {
		return nil, 0, fmt.Errorf("set the listen backlog: %w", err)
	}
	return l, min(backlog, limit), nil
}

func setBacklog(l net.Listener, backlog int) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("not a TCP listener: %T", l)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) }); err != nil {
		return err
	}
	return failed
}

// MaxBacklog returns net.core.somaxconn: the kernel's limit of listen backlogs, or its default of 4096 where it cannot
// be read.
func MaxBacklog() int {
	b, err := files.Kernel("/proc/sys/net/core/somaxconn")
	if err != nil {
		return 4096
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 4096
	}
	return n
}

// A limitListener accepts a connection only when fewer than a given number are open, as the LimitListener of
// golang.org/x/net does: it waits for a free slot first. Connections beyond it stay in the kernel's listen queue, where
// they look established to the client.
type limitListener struct {
	net.Listener
	slots chan struct{} // nil: no limit
	done  chan struct{}
	once  sync.Once
	open  atomic.Int64
}

func newLimitListener(l net.Listener, limit int) *limitListener {
	ll := &limitListener{Listener: l, done: make(chan struct{})}
	if limit > 0 {
		ll.slots = make(chan struct{}, limit)
	}
	return ll
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
		case <-l.done:
			return nil, net.ErrClosed
		}
	}
	c, err := l.Listener.Accept()
	if err != nil {
		l.release()
		return nil, err
	}
	l.open.Add(1)
	return &limitConn{Conn: c, release: sync.OnceFunc(func() { l.open.Add(-1); l.release() })}, nil
}

func (l *limitListener) release() {
	if l.slots != nil {
		<-l.slots
	}
}

// Close implements net.Listener.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type limitConn struct {
	net.Conn
	release func()
}

// Close frees the slot, once.
func (c *limitConn) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}
