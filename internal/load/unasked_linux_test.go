//go:build amd64 || arm64 || riscv64

package load

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An answer that left the target before the request had arrived there is distinguished from the request's own: here the
// kernel holds the second request back, as a long way to the target would, while a second answer to the first one comes
// in.
func TestAnswerBeforeItsRequest(t *testing.T) {
	for _, name := range []string{"fast", "fast-precise", "std"} {
		t.Run(name, func(t *testing.T) { answerBeforeItsRequest(t, engines[name]) })
	}
}

func answerBeforeItsRequest(t *testing.T, set func(*Config)) {
	again := make(chan struct{})
	srv := newTarget(t, func(c net.Conn) {
		go func() {
			for range again {
				_, _ = io.WriteString(c, good)
			}
		}()
		says(good)(c)
	})
	s := open(t, srv.addr, set, func(c *Config) { c.MaxConns = 1 })
	const before = 20 // the kernel paces no connection that has sent less than ten segments
	offer(t, s, Burst{Calls: before, Duration: time.Millisecond})
	drain(t, s)
	holdBack(t, s)
	// The first paced segment goes out at once, and pays for the next: one second for each 100 bytes.
	offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
	drain(t, s)
	offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
	eventually(t, func() bool { return s.Progress().InFlight == 1 })
	again <- struct{}{}
	close(again)
	drain(t, s)
	for i, c := range audit(t, s, 0) {
		if want := [...]Outcome{OK, Failed}[i/(before+1)]; c.Outcome != want ||
			(c.Cause == CauseUnasked) != (want == Failed) {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	eventually(t, func() bool { return s.Progress().Established == 0 })
}

// holdBack has the kernel send no more than 100 bytes a second on the only connection, which is idle.
func holdBack(t *testing.T, s Stream) {
	t.Helper()
	pace := func(fd int) {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 100); err != nil {
			t.Error(err)
		}
	}
	switch e := s.(*stream).engine.(type) {
	case *fast:
		e.each(func(_ int, sh *shard) {
			pace(sh.pool.idle.first.fd)
			sh.pool.idle.first.probation = 2 // as if it were new
		})
	case *std:
		e.mu.Lock()
		defer e.mu.Unlock()
		for l := range e.links.all {
			raw, err := l.raw.Conn.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			if err := raw.Control(func(fd uintptr) { pace(int(fd)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What the peer's kernel has taken is acknowledged, whether its process reads or not.
func TestUnacknowledged(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return unacknowledgedOn(c) == 0 })
	much := make([]byte, 64<<20)
	eventually(t, func() bool { // a host that stands still writes nothing before the deadline
		_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := c.Write(much); err == nil {
			t.Fatal("64 MiB were taken")
		}
		return unacknowledgedOn(c) > 0
	})
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	eventually(t, func() bool { return unacknowledgedOn(c) == 0 })
}
