// Package hostile holds servers that do what no client should rely on them not doing: they refuse, hang, lie about
// lengths, never end, and speak out of turn. They are for tests: whoever talks to them must count what happens, within
// its timeout and its memory.
package hostile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"tare/internal/load"
)

// A Server is one kind of hostility.
type Server struct {
	Name string
	// Want is how calls to it must end.
	Want Want
	// Big: the request must be larger than what buffers between two sockets hold.
	Big   bool
	begin func(ctx context.Context) (*Running, error)
}

// Want is how calls end. With several Outcomes or Causes, the kernel's timing decides between them.
type Want struct {
	Outcomes []load.Outcome
	Causes   []load.Cause
	Status   uint16
}

// Running is a Server that has been started on a loopback address.
type Running struct {
	Addr netip.AddrPort
	// TLS is what a client must use, nil: plaintext. It trusts the server's authority and knows it as Host.
	TLS *tls.Config

	talk   talker
	better talker                       // once it is mended
	listen func() (net.Listener, error) // of a server that listens only once it is mended

	ctx      context.Context
	cancel   context.CancelFunc
	mu       sync.Mutex
	listener net.Listener
	release  func() // what else is to be closed
	open     map[net.Conn]bool
	requests int
	mended   bool
	all      sync.WaitGroup
}

// Host is the name in the servers' certificates.
const Host = "target.test"

// A talker has a connection to itself, until it returns or ctx ends; then the connection is closed.
type talker func(ctx context.Context, c *conn)

// Start runs the server until Stop is called or ctx ends.
func (s Server) Start(ctx context.Context) (*Running, error) {
	r, err := s.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("start hostile server %s: %w", s.Name, err)
	}
	return r, nil
}

// Requests is how many requests have been read.
func (r *Running) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// Connections is how many connections the server holds open.
func (r *Running) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open)
}

// Mend turns the server into a good one, at the same address. Connections of before are closed.
func (r *Running) Mend() error {
	r.mu.Lock()
	r.mended = true
	r.mu.Unlock()
	r.closeAll()
	if r.listen == nil {
		return nil
	}
	l, err := r.listen()
	if err != nil {
		return fmt.Errorf("mend hostile server: %w", err)
	}
	r.accept(l)
	return nil
}

// Stop ends the server and waits for it.
func (r *Running) Stop() {
	r.cancel()
	r.mu.Lock()
	if r.listener != nil {
		_ = r.listener.Close()
	}
	if r.release != nil {
		r.release()
	}
	r.mu.Unlock()
	r.closeAll()
	r.all.Wait()
}

func (r *Running) closeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		_ = c.Close()
	}
}

func newRunning(ctx context.Context, talk talker) *Running {
	r := &Running{talk: talk, better: good, open: map[net.Conn]bool{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// serve listens at once, and has talk speak on every connection.
func serve(ctx context.Context, talk talker) (*Running, error) {
	r := newRunning(ctx, talk)
	var conf net.ListenConfig
	l, err := conf.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		r.cancel()
		return nil, err
	}
	r.Addr = netip.MustParseAddrPort(l.Addr().String())
	r.accept(l)
	return r, nil
}

// accept takes connections from l until it is closed.
func (r *Running) accept(l net.Listener) {
	r.mu.Lock()
	r.listener = l
	r.mu.Unlock()
	context.AfterFunc(r.ctx, func() { _ = l.Close() })
	r.all.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) || r.ctx.Err() != nil {
				return
			}
			if err != nil {
				continue
			}
			r.all.Go(func() { r.handle(c) })
		}
	})
}

func (r *Running) handle(c net.Conn) {
	r.mu.Lock()
	r.open[c] = true
	talk := r.talk
	if r.mended {
		talk = r.better
	}
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	interrupt := context.AfterFunc(ctx, func() { _ = c.Close() })
	talk(ctx, &conn{Conn: c, of: r})
	interrupt()
	_ = c.Close()
	r.mu.Lock()
	delete(r.open, c)
	r.mu.Unlock()
}
