package load

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// reset closes c so that the peer sees a reset.
func resets(c net.Conn, _ *http.Request) bool {
	if s, ok := c.(*tls.Conn); ok {
		c = s.NetConn()
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	return false
}

func slowly(text string, n int) func(net.Conn) {
	return requests(func(c net.Conn, _ *http.Request) bool {
		for rest := text; rest != ""; {
			k := min(n, len(rest))
			if _, err := io.WriteString(c, rest[:k]); err != nil {
				return false
			}
			rest = rest[k:]
			time.Sleep(100 * time.Microsecond)
		}
		return true
	})
}

func once(text string) func(net.Conn) {
	return requests(func(c net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(c, text)
		return false
	})
}

// Both engines must say the same about the same servers, and every call weighs what its request and its answer weigh,
// in whatever pieces they come.
func TestOutcomes(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	const long, longer = 3 << 20, 12 << 20
	for name, c := range map[string]struct {
		talk   func(net.Conn)
		wire   wire
		want   Outcome
		status uint16
		errno  syscall.Errno
		fresh  bool // a connection serves one call only
		in     int  // bytes of an answer; 0: any
	}{
		"sized":      {talk: says(good), want: OK, status: 200, in: len(good)},
		"no body":    {talk: says("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), want: Denied, status: 403, in: 38},
		"no content": {talk: says("HTTP/1.1 204 No Content\r\n\r\n"), want: Failed, status: 204},
		"chunked": {talk: says("HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n1;x=y\r\no\r\n1\r\nk\r\n0\r\nA: b\r\n\r\n"), want: OK, status: 200},
		"interim": {
			talk: says("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + good),
			want: OK, status: 200,
		},
		"wrong": {talk: says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"), want: Wrong, status: 200},
		"refused": {
			talk: says("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"),
			want: Refused, status: 429,
		},
		"redirect": {
			talk: says("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"),
			want: Failed, status: 302,
		},
		"in pieces": {talk: slowly(good, 7), want: OK, status: 200, in: len(good)},
		"chunked in pieces": {
			talk: slowly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 5),
			want: OK, status: 200,
		},
		"long body": {talk: says("HTTP/1.1 200 OK\r\nContent-Length: " + itoa(long) + "\r\n\r\n" +
			strings.Repeat("x", long)), wire: wire{want: maxBody}, want: OK, status: 200},
		"long request": {
			talk: func(c net.Conn) {
				time.Sleep(20 * time.Millisecond) // until the buffers of both sockets are full
				says(good)(c)
			},
			wire: wire{body: strings.Repeat("y", longer)}, want: OK, status: 200, in: len(good),
		},
		"close": {
			talk: once("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), want: OK,
			status: 200, fresh: true,
		},
		"until close": {talk: once("HTTP/1.0 200 OK\r\n\r\nok"), want: OK, status: 200, fresh: true},
		"cut short": {
			talk: once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), want: Failed,
			status: 200, fresh: true, in: 40,
		},
		"no answer":     {talk: once(""), want: Failed, fresh: true},
		"half a header": {talk: once("HTTP/1.1 200 OK\r\nConte"), want: Failed, fresh: true},
		"garbage":       {talk: says("SSH-2.0-OpenSSH_9.6\r\n\r\n"), want: Failed, fresh: true},
		"bad length":    {talk: says("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok"), want: Failed, fresh: true},
		"long header": {talk: says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeader) +
			"\r\nContent-Length: 2\r\n\r\nok"), want: Failed, fresh: true},
		"reset": {talk: requests(resets), want: ConnFailed, errno: syscall.ECONNRESET, fresh: true},
		"hang":  {talk: hang, want: Timeout, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachEngine(t, func(t *testing.T, set func(*Config)) {
				srv := newTarget(t, c.talk)
				const timeout = 800 * time.Millisecond
				n := 5
				if c.wire.body != "" {
					n = 1
				}
				s := open(t, srv.addr, set, func(conf *Config) {
					conf.Operations[0].Wire = c.wire
					if c.want == Timeout {
						conf.Timeout = timeout
					}
				})
				for range 2 {
					offer(t, s, Constant{Rate: 200, Duration: time.Duration(n) * 5 * time.Millisecond})
					drain(t, s)
				}
				sent := 0
				calls, cells := auditAll(t, s, timeout)
				if c.in > 0 {
					wantWeight(t, cells, s.Progress(), c.in, len(c.wire.Render(nil, 0)), usesTLS(set))
				}
				for i, call := range calls {
					if !call.Unsent() {
						sent++
					} else if c.want == Timeout {
						continue // a busy host may need the whole time to connect
					}
					if call.Outcome != c.want || call.Status != c.status || call.Errno != uint16(c.errno) || call.Unsent() {
						t.Errorf("call %d: %+v (%v), want %v, status %d, errno %d", i, call, syscall.Errno(call.Errno), c.want,
							c.status, c.errno)
					}
				}
				if sent == 0 {
					t.Error("no call was sent")
				}
				if c.fresh {
					eventually(t, func() bool { return srv.connections() >= sent })
				} else if got := srv.connections(); got >= 2*n {
					t.Errorf("%d connections for %d calls", got, 2*n)
				}
				if c.fresh {
					eventually(t, func() bool { return s.Progress().Established <= 2*n-sent+1 }) // the others' may come yet
				}
			})
		})
	}
}

// wantWeight checks that each call of cells, which are all that a stream had, weighs in bytes in and out bytes out.
func wantWeight(t *testing.T, cells []Cell, p Progress, in, out int, secure bool) {
	t.Helper()
	allIn, allOut, calls := sums(cells)
	if calls != p.Due || allIn != calls*uint64(in) || allOut != calls*uint64(out) {
		t.Errorf("%d calls of %d: %d bytes in, want %d each; %d out, want %d each", calls, p.Due, allIn, in, allOut, out)
	}
	if allIn >= p.BytesIn && secure || !secure && (allIn != p.BytesIn || allOut != p.BytesOut) {
		t.Errorf("the stream counts %d bytes in and %d out, the cells %d and %d", p.BytesIn, p.BytesOut, allIn, allOut)
	}
}

// nobody returns an address at which nobody listens.
func nobody(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody has connected
	return netip.MustParseAddrPort(l.Addr().String())
}

func TestCallsWithoutAConnection(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{
		"nobody listens": syscall.ECONNREFUSED, "no such source address": syscall.EADDRNOTAVAIL,
	} {
		t.Run(name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, set func(*Config)) {
				s := open(t, nobody(t), set, func(c *Config) {
					if errno == syscall.EADDRNOTAVAIL {
						c.Endpoint.Local = func(int) netip.Addr { return netip.MustParseAddr("192.0.2.1") }
					}
				})
				offer(t, s, Constant{Rate: 200, Duration: 50 * time.Millisecond})
				drain(t, s)
				for _, c := range audit(t, s, 0) {
					if c.Outcome != ConnFailed || syscall.Errno(c.Errno) != errno || !c.Unsent() {
						t.Fatalf("%+v", c)
					}
				}
			})
		})
	}
}

// Dials that fail at once must not spin.
func TestFailingDialsDoNotSpin(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, nobody(t), set)
		g, err := s.Cycle(t.Context(), Closed{Workers: 4, Duration: 200 * time.Millisecond}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if drain(t, s); g.Offered > 220 || g.Offered < 4 {
			t.Errorf("%d dials in 200 ms", g.Offered)
		}
	})
}

// A process that runs out of descriptors blames them, not the target.
func TestOutOfDescriptors(t *testing.T) {
	eachEngineAlone(t, func(t *testing.T, set func(*Config)) {
		s := open(t, deafListener(t, 64), set)
		probe, err := syscall.Dup(0)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Close(probe)
		var old syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
		short := old
		short.Cur = uint64(probe) // the lowest free descriptor is beyond it
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &short); err != nil {
			t.Fatal(err)
		}
		_, err = s.Offer(t.Context(), Constant{Rate: 200, Duration: 50 * time.Millisecond}, 0, nil)
		p := drain(t, s)
		if e := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); e != nil || err != nil {
			t.Fatal(e, err)
		}
		for _, c := range audit(t, s, 0) {
			if c.Outcome != ConnFailed || syscall.Errno(c.Errno) != syscall.EMFILE {
				t.Fatalf("%+v of %+v", c, p)
			}
		}
	})
}

// A listener that nobody accepts from holds backlog + 1 connections that look established: their calls are sent and
// hang. The rest cannot connect: their calls are never sent.
func TestAcceptQueue(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		if usesTLS(set) {
			return // no call is sent before the handshake
		}
		const backlog, n = 4, 20
		patiently(t, 400*time.Millisecond, func(timeout time.Duration) (slow bool) {
			s := open(t, deafListener(t, backlog), set, func(c *Config) { c.Timeout = timeout })
			offer(t, s, Constant{Rate: 400, Duration: n * 2500 * time.Microsecond})
			drain(t, s)
			sent := 0
			for _, c := range audit(t, s, timeout) {
				if c.Outcome != Timeout {
					t.Fatalf("%+v", c)
				}
				if !c.Unsent() {
					sent++
				}
			}
			if sent > backlog+1 {
				t.Errorf("%d calls were sent, want %d", sent, backlog+1)
			}
			return sent < backlog+1
		})
	})
}

func deafListener(t *testing.T, backlog int) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, backlog); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(sa.(*syscall.SockaddrInet4).Port))
}
