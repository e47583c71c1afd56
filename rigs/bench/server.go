//go:build linux

package bench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Mode is how the bench server answers.
type Mode string

// The modes.
const (
	Quick Mode = "fast"  // at once
	Stall Mode = "stall" // after a millisecond, and not at all in the last StallFor of every Period
	Limit Mode = "cap"   // one after another, Rate a second, from a queue without bound
)

// Server describes the server that the generators are measured against. It answers every request with the same short
// 200.
type Server struct {
	Mode     Mode          `json:"mode"`
	Rate     float64       `json:"rate,omitempty"`
	Period   time.Duration `json:"period,omitempty"`
	StallFor time.Duration `json:"stall_for,omitempty"`
	TLS      bool          `json:"tls,omitempty"` // in mode Quick
}

// Ready is what a server says once it listens.
type Ready struct {
	Port  int   `json:"port"`
	Start int64 `json:"start"` // CLOCK_REALTIME in ns at which its first period began
}

// base is the service time of a Stall server outside its stalls.
const base = time.Millisecond

const answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"

// server is one thread with raw epoll: it must never be the bottleneck.
type server struct {
	Server
	ep, listener int
	events       [512]unix.EpollEvent
	in           []byte
	conns        []peer // by descriptor
	queue        []reply
	head         int
	start, busy  int64 // monotonic ns
	tls          *tls.Config
	clear        []byte // decrypted
}

type peer struct {
	gen   uint32
	open  bool
	match uint8 // how much of "\r\n\r\n" has been seen
	layer *layer
}

type reply struct {
	fd  int32
	gen uint32
	at  int64
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

func realtime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &ts)
	return ts.Nano()
}

// Serve listens on a free loopback port, writes Ready to out as JSON, and answers until ctx ends.
func (s Server) Serve(ctx context.Context, out io.Writer) error {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	v := &server{Server: s, in: make([]byte, 64<<10), conns: make([]peer, 1<<16)}
	if s.TLS {
		if s.Mode != Quick {
			return fmt.Errorf("serve: mode %s has no TLS: use mode %s", s.Mode, Quick)
		}
		conf, err := selfSigned()
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		v.tls, v.clear = conf, make([]byte, 64<<10)
	}
	port, err := v.listen()
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer v.shut()
	v.start = monotonic()
	if err := json.NewEncoder(out).Encode(Ready{Port: port, Start: realtime()}); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	for ctx.Err() == nil {
		v.turn()
	}
	return nil
}

func (s *server) listen() (port int, err error) {
	if s.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return 0, err
	}
	if s.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, err
	}
	if err := unix.Bind(s.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	if err := unix.Listen(s.listener, 16384); err != nil {
		return 0, err
	}
	sa, err := unix.Getsockname(s.listener)
	if err != nil {
		return 0, err
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.listener)}
	return sa.(*unix.SockaddrInet4).Port, unix.EpollCtl(s.ep, unix.EPOLL_CTL_ADD, s.listener, &ev)
}

func (s *server) shut() {
	for fd, p := range s.conns {
		if p.open {
			_ = unix.Close(fd)
		}
	}
	_ = unix.Close(s.listener)
	_ = unix.Close(s.ep)
}

// turn waits for events, at most 100 ms, and answers what is due.
func (s *server) turn() {
	wait := int64(100e6)
	if s.head < len(s.queue) {
		wait = min(wait, max(0, s.queue[s.head].at-monotonic()))
	}
	ts := unix.NsecToTimespec(wait)
	n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(s.ep), uintptr(unsafe.Pointer(&s.events[0])),
		uintptr(len(s.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if e == 0 {
		for _, ev := range s.events[:n] {
			if int(ev.Fd) == s.listener {
				s.accept()
			} else {
				s.read(int(ev.Fd))
			}
		}
	}
	s.flush()
}

func (s *server) accept() {
	for {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		if fd >= len(s.conns) {
			_ = unix.Close(fd)
			continue
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		var l *layer
		if s.tls != nil {
			if l, err = s.shakeHands(fd); err != nil {
				_ = unix.Close(fd)
				continue
			}
		}
		s.conns[fd].match, s.conns[fd].open, s.conns[fd].layer = 0, true, l
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if unix.EpollCtl(s.ep, unix.EPOLL_CTL_ADD, fd, &ev) != nil {
			s.conns[fd].open = false
			_ = unix.Close(fd)
		} else if l != nil {
			s.readSecure(fd, nil) // a request that came with the end of the handshake
		}
	}
}

func (s *server) read(fd int) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&s.in[0])), uintptr(len(s.in)),
		0, 0, 0)
	if e == unix.EAGAIN {
		return
	}
	if e != 0 || n == 0 {
		s.conns[fd].gen++
		s.conns[fd].open = false
		_ = unix.Close(fd)
		return
	}
	if s.conns[fd].layer != nil {
		s.readSecure(fd, s.in[:n])
		return
	}
	s.match(fd, s.in[:n])
}

// match answers the requests that end in b.
func (s *server) match(fd int, b []byte) {
	p := &s.conns[fd]
	for _, b := range b {
		if b != "\r\n\r\n"[p.match] {
			p.match = 0
			if b != '\r' {
				continue
			}
		}
		if p.match++; p.match == 4 {
			p.match = 0
			s.request(fd)
		}
	}
}

func (s *server) request(fd int) {
	if l := s.conns[fd].layer; l != nil {
		_, _ = l.conn.Write(answerBytes)
		return
	}
	if s.Mode == Quick {
		write(fd)
		return
	}
	now := monotonic()
	var at int64
	if s.Mode == Limit {
		s.busy = max(s.busy, now) + int64(1e9/s.Rate)
		at = s.busy
	} else {
		at = s.start + int64(s.Due(time.Duration(now-s.start)))
	}
	s.queue = append(s.queue, reply{int32(fd), s.conns[fd].gen, at})
}

// Due is when a Stall server answers what reaches it at t after its start.
func (s *Server) Due(t time.Duration) time.Duration {
	if phase := t % s.Period; phase >= s.Period-s.StallFor {
		t += s.Period - phase
	}
	return t + base
}

func (s *server) flush() {
	for s.head < len(s.queue) && s.queue[s.head].at <= monotonic() {
		r := s.queue[s.head]
		if s.head++; s.conns[r.fd].gen == r.gen {
			write(int(r.fd))
		}
	}
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
}

var answerBytes = []byte(answer)

func write(fd int) {
	_, _, _ = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&answerBytes[0])),
		uintptr(len(answerBytes)), unix.MSG_NOSIGNAL, 0, 0)
}
