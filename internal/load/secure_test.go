package load

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
)

// testTLS is the identity of all targets, which clients trust, and that of clients.
var testTLS = sync.OnceValue(func() (id struct {
	certificate tls.Certificate
	pool        *x509.CertPool
	server      *tls.Config
	sessions    tls.ClientSessionCache
},
) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"test"},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	id.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	if id.certificate.Leaf, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	id.pool = x509.NewCertPool()
	id.pool.AddCert(id.certificate.Leaf)
	id.server = &tls.Config{Certificates: []tls.Certificate{id.certificate}}
	id.sessions = tls.NewLRUClientSessionCache(0)
	return id
})

// testClientTLS returns what a client needs for every target. It resumes sessions.
func testClientTLS() *tls.Config {
	return &tls.Config{RootCAs: testTLS().pool, ClientSessionCache: testTLS().sessions}
}

// usesTLS reports whether set makes a stream use TLS.
func usesTLS(set func(*Config)) bool {
	var c Config
	set(&c)
	return c.Endpoint.TLS != nil
}

// acceptTLS waits for the first byte. If it begins a handshake, acceptTLS returns the connection within TLS, or nil if
// that fails.
func acceptTLS(c net.Conn) net.Conn {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil
	}
	first := make([]byte, 1)
	if err := raw.Read(func(fd uintptr) (done bool) {
		_, _, err := syscall.Recvfrom(int(fd), first, syscall.MSG_PEEK)
		return !errors.Is(err, syscall.EAGAIN)
	}); err != nil || first[0] != 0x16 {
		return c
	}
	s := tls.Server(c, testTLS().server)
	if s.Handshake() != nil {
		return nil
	}
	return s
}

// Each version of TLS works, with full handshakes and with resumed ones, as the client's configuration says.
func TestTLSVersionsAndSessions(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, resumes := range []bool{false, true} {
			t.Run(tls.VersionName(version)+map[bool]string{false: " full", true: " resumed"}[resumes], func(t *testing.T) {
				eachSecureEngine(t, func(t *testing.T, engine Engine) { sessions(t, engine, version, resumes) })
			})
		}
	}
}

// sessions makes calls on a connection each.
func sessions(t *testing.T, engine Engine, version uint16, resumes bool) {
	var full, resumed atomic.Int64
	srv := newTarget(t, requests(func(c net.Conn, _ *http.Request) bool {
		if c.(*tls.Conn).ConnectionState().DidResume {
			resumed.Add(1)
		} else {
			full.Add(1)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
		return false
	}))
	s := open(t, srv.addr, func(c *Config) {
		c.Engine, c.MaxConns = engine, 1
		c.Endpoint.TLS = &tls.Config{RootCAs: testTLS().pool, MinVersion: version, MaxVersion: version}
		if resumes {
			c.Endpoint.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		}
	})
	const n = 12
	offer(t, s, Constant{Rate: 200, Duration: n * 5 * time.Millisecond})
	if p := drain(t, s); p.Done[OK] != n {
		t.Errorf("%+v", p)
	}
	audit(t, s, 0)
	want := [2]int64{n, 0}
	if resumes {
		want = [2]int64{1, n - 1}
	}
	if got := [2]int64{full.Load(), resumed.Load()}; got != want {
		t.Errorf("%d full and %d resumed handshakes, want %d and %d", got[0], got[1], want[0], want[1])
	}
	if c := s.Fresh(t.Context(), 0, 1, time.Minute); c.Outcome != OK {
		t.Errorf("%+v", c)
	}
}

// eachSecureEngine runs f with each engine.
func eachSecureEngine(t *testing.T, f func(t *testing.T, engine Engine)) {
	t.Helper()
	for _, engine := range []Engine{Fast, Std} {
		if engine == Fast && fastMissing != "" {
			continue
		}
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			f(t, engine)
		})
	}
}

// A target that wants a certificate of its client gets it, or the calls say that it wanted one.
func TestTLSClientCertificate(t *testing.T) {
	for _, c := range []struct {
		version uint16
		has     bool
		want    Cause
	}{
		{tls.VersionTLS12, true, 0},
		{tls.VersionTLS13, true, 0},
		{tls.VersionTLS12, false, CauseAlert}, // certificate_required is of TLS 1.3
		{tls.VersionTLS13, false, CauseClientCertificate},
	} {
		t.Run(tls.VersionName(c.version), func(t *testing.T) {
			eachSecureEngine(t, func(t *testing.T, engine Engine) {
				conf := testTLS().server.Clone()
				conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, testTLS().pool
				srv := rawTarget(t, func(raw net.Conn) {
					s := tls.Server(raw, conf)
					if s.Handshake() != nil {
						_, _ = io.Copy(io.Discard, raw) // what is unread would turn the alert into a reset
						return
					}
					says(good)(s)
				})
				s := open(t, srv.addr, func(to *Config) {
					to.Engine = engine
					to.Endpoint.TLS = &tls.Config{RootCAs: testTLS().pool, MinVersion: c.version, MaxVersion: c.version}
					if c.has {
						to.Endpoint.TLS.Certificates = []tls.Certificate{testTLS().certificate}
					}
				})
				offer(t, s, Constant{Rate: 200, Duration: 50 * time.Millisecond})
				drain(t, s)
				want := OK
				if !c.has {
					want = ConnFailed
				}
				for _, call := range append(audit(t, s, 0), s.Fresh(t.Context(), 0, 1, time.Minute)) {
					if call.Outcome != want || call.Cause != c.want || call.Errno != 0 {
						t.Errorf("%+v, want %v, %q", call, want, c.want.Text(nil))
					}
				}
			})
		})
	}
}

// A target that accepts connections and never answers the handshake: calls time out for that, and no connection is
// left. Reset and Close end handshakes in progress.
func TestTLSHandshakeHangs(t *testing.T) {
	eachSecureEngine(t, func(t *testing.T, engine Engine) {
		const timeout = 500 * time.Millisecond
		srv := rawTarget(t, hang)
		set := func(c *Config) { c.Engine, c.Endpoint.TLS = engine, testClientTLS() }
		s := open(t, srv.addr, set, func(c *Config) { c.Timeout = timeout })
		offer(t, s, Constant{Rate: 200, Duration: 100 * time.Millisecond})
		if p := s.Progress(); p.Established == 0 {
			t.Errorf("connections in the handshake do not count as established: %+v", p)
		}
		drain(t, s)
		handshaking := 0
		for _, c := range audit(t, s, timeout) { // a busy host may not come to connect for some of them
			waited := c.Cause == CauseNoConnection || c.Cause == CauseDialing
			if c.Cause == CauseHandshaking {
				handshaking++
			}
			if c.Outcome != Timeout || !c.Unsent() || c.Cause != CauseHandshaking && !waited {
				t.Errorf("%+v", c)
			}
		}
		if handshaking == 0 {
			t.Error("no call ended in the handshake")
		}
		eventually(t, func() bool { p := s.Progress(); return p.Established+p.Connecting == 0 })
		for name, end := range map[string]func(Stream){
			"reset": Stream.Reset,
			"close": func(s Stream) {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			},
		} {
			s := open(t, srv.addr, set)
			offer(t, s, Constant{Rate: 200, Duration: 20 * time.Millisecond})
			eventually(t, func() bool { return s.Progress().Established > 0 })
			end(s)
			if engine == Fast || name == "close" { // after a reset, engine std may be about to dial for a call that has ended
				eventually(t, func() bool { p := s.Progress(); return p.Established+p.Connecting == 0 })
			}
			if p := s.Progress(); name == "reset" && p.Done[ConnFailed] != p.Due {
				t.Errorf("after a reset: %+v", p)
			}
		}
	})
}

// rawTarget is a target that never accepts TLS by itself: talk does.
func rawTarget(t *testing.T, talk func(net.Conn)) *target {
	t.Helper()
	return newTargetWith(t, func(c net.Conn) net.Conn { return c }, talk)
}

// Both engines count the bytes of connections with TLS and its handshake, and those of calls without.
func TestTLSBytes(t *testing.T) {
	type count struct{ in, out uint64 }
	const calls = 10
	stream := map[Engine]count{}
	var mu sync.Mutex
	t.Run("each", func(t *testing.T) {
		eachSecureEngine(t, func(t *testing.T, engine Engine) {
			s := open(t, newTarget(t, says(good)).addr, func(c *Config) {
				c.Engine, c.MaxConns, c.Endpoint.TLS = engine, 1, &tls.Config{RootCAs: testTLS().pool}
			})
			offer(t, s, Constant{Rate: 200, Duration: calls * 5 * time.Millisecond})
			p := drain(t, s)
			in, out, n := sums(s.Take())
			if n != calls || in != calls*uint64(len(good)) || out != calls*uint64(len(wire{}.Render(nil, 0))) {
				t.Errorf("%d calls with %d bytes in and %d out", n, in, out)
			}
			mu.Lock()
			stream[engine] = count{p.BytesIn, p.BytesOut}
			mu.Unlock()
		})
	})
	const record = 22 // around each request and answer
	for engine, c := range stream {
		// The signature in the handshake varies by a few bytes.
		if d := int(c.in) - int(stream[Std].in); d < -16 || d > 16 || c.out != stream[Std].out ||
			c.in < calls*uint64(len(good)+record) {
			t.Errorf("%s counts %+v, std %+v", engine, c, stream[Std])
		}
	}
}

// What a target sends over TLS ends calls alike on both engines.
func TestTLSRecords(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	large := "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + string(bytes.Repeat([]byte("x"), 200_000))
	for name, c := range map[string]struct {
		answer func(f *forger) (goesOn bool)
		wire   wire
		want   Outcome
		status uint16
		cause  Cause
		fresh  bool // a connection serves one call only
	}{
		"plain": {func(f *forger) bool { return f.send(f.data(good)) }, wire{}, OK, 200, 0, false},
		"ticket before the answer": {
			func(f *forger) bool { return f.send(f.ticket(), f.data(good)) }, wire{}, OK, 200, 0, false,
		},
		"ticket with the answer": {
			func(f *forger) bool { return f.send(f.data(good), f.ticket()) }, wire{}, OK, 200, 0, false,
		},
		"key update before the answer": {
			func(f *forger) bool { return f.send(f.keyUpdate(), f.data(good)) }, wire{}, OK, 200, 0, false,
		},
		"key update with the answer": {
			func(f *forger) bool { return f.send(f.data(good), f.keyUpdate()) }, wire{}, OK, 200, 0, false,
		},
		"empty record": {
			func(f *forger) bool { return f.send(f.data(""), f.data(good), f.data("")) }, wire{}, OK, 200, 0, false,
		},
		"a record each byte": {func(f *forger) bool {
			var all [][]byte
			for i := range len(good) {
				all = append(all, f.data(good[i:i+1]))
			}
			return f.send(all...)
		}, wire{}, OK, 200, 0, false},
		"records in pieces": {
			func(f *forger) bool { return f.slowly(11, f.ticket(), f.data(good[:20]), f.data(good[20:])) },
			wire{},
			OK, 200, 0, false,
		},
		"large": {func(f *forger) bool {
			var all [][]byte
			for rest := large; rest != ""; {
				n := min(len(rest), 16<<10)
				all, rest = append(all, f.data(rest[:n])), rest[n:]
			}
			return f.send(all...)
		}, wire{want: 200_000}, OK, 200, 0, false},
		"two answers": {
			func(f *forger) bool { return f.send(f.data(good), f.data(good)) }, wire{}, OK, 200, 0, true,
		},
		"goodbye with the answer": {
			func(f *forger) bool { return f.send(f.data(good), f.alert(1, 0)) }, wire{}, OK, 200, 0, true,
		},
		"goodbye ends the body": {
			func(f *forger) bool { f.send(f.data("HTTP/1.0 200 OK\r\n\r\nok"), f.alert(1, 0)); return false },
			wire{},
			OK, 200, 0, true,
		},
		"close ends the body": {
			func(f *forger) bool { f.send(f.data("HTTP/1.0 200 OK\r\n\r\nok")); return false }, wire{}, OK, 200, 0, true,
		},
		"close within a record": {
			func(f *forger) bool { f.send(f.data("HTTP/1.0 200 OK\r\n\r\nok"), f.data("more")[:9]); return false },
			wire{},
			Failed, 200, CauseClosedWithin, true,
		},
		"goodbye": {
			func(f *forger) bool { return f.send(f.alert(1, 0)) }, wire{}, Failed, 0, CauseClosedEarly, true,
		},
		"alert": {func(f *forger) bool { return f.send(f.alert(2, 80)) }, wire{}, ConnFailed, 0, CauseAlert, true},
		"alert after a ticket": {
			func(f *forger) bool { return f.send(f.ticket(), f.alert(2, 80)) }, wire{}, ConnFailed, 0, CauseAlert, true,
		},
		"alert within the answer": {
			func(f *forger) bool { return f.send(f.data(good[:len(good)-1]), f.alert(2, 80)) },
			wire{},
			Failed, 200, CauseClosedWithin, true,
		},
		"forged record": {func(f *forger) bool {
			b := f.data(good)
			b[len(b)-1] ^= 1
			return f.send(b)
		}, wire{}, Failed, 0, CauseClosedEarly, true},
		"plaintext": {
			func(f *forger) bool { return f.send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			wire{},
			Failed, 0, CauseClosedEarly, true,
		},
		"reset": {func(f *forger) bool { return resets(f.raw, nil) }, wire{}, ConnFailed, 0, CauseClosedEarly, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachSecureEngine(t, func(t *testing.T, engine Engine) {
				srv := forgingTarget(t, c.answer)
				s := open(t, srv.addr, func(to *Config) {
					to.Engine, to.Endpoint.TLS, to.Operations[0].Wire = engine, forgedClientTLS(), c.wire
				})
				const n = 5
				for range 2 {
					offer(t, s, Constant{Rate: 200, Duration: n * 5 * time.Millisecond})
					drain(t, s)
				}
				for i, call := range audit(t, s, 0) {
					if call.Outcome != c.want || call.Status != c.status || call.Cause != c.cause || call.Unsent() {
						t.Errorf("call %d: %+v, %q; want %v, status %d, %q", i, call, call.Cause.Text(nil), c.want, c.status,
							c.cause.Text(nil))
					}
				}
				switch {
				case c.fresh:
					eventually(t, func() bool { return srv.connections() >= 2*n })
				default:
					if got := srv.connections(); got >= 2*n {
						t.Errorf("%d connections for %d calls", got, 2*n)
					}
				}
			})
		})
	}
}

// On a connection without a call, tickets and key updates are no answers, wherever they are cut; data is one that
// nobody asked for, and the connection is not used again.
func TestTLSRecordsOnIdleConnection(t *testing.T) {
	const second = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"
	for name, c := range map[string]struct {
		late   func(f *forger) [][]byte
		reused bool
	}{
		"tickets":    {func(f *forger) [][]byte { return [][]byte{f.ticket(), f.ticket()} }, true},
		"key update": {func(f *forger) [][]byte { return [][]byte{f.keyUpdate()} }, true},
		"ticket in pieces": {func(f *forger) [][]byte {
			b := f.ticket()
			return [][]byte{b[:3], b[3:20], b[20:]}
		}, true},
		"data":    {func(f *forger) [][]byte { return [][]byte{f.data(second)} }, false},
		"goodbye": {func(f *forger) [][]byte { return [][]byte{f.alert(1, 0)} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachSecureEngine(t, func(t *testing.T, engine Engine) {
				var said atomic.Int64
				srv := forgingTarget(t, func(f *forger) bool {
					f.send(f.data(good))
					time.Sleep(2 * time.Millisecond)
					for _, b := range c.late(f) {
						f.send(b)
						time.Sleep(2 * time.Millisecond)
					}
					said.Add(1)
					return true
				})
				s := open(t, srv.addr, func(to *Config) { to.Engine, to.Endpoint.TLS = engine, forgedClientTLS() })
				const n = 6
				for i := range int64(n) {
					offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
					drain(t, s)
					eventually(t, func() bool { return said.Load() > i })
				}
				for i, call := range audit(t, s, 0) {
					// On engine std, data that comes at the same time as the request is taken for its answer.
					if call.Outcome != OK && (engine == Fast || c.reused) {
						t.Errorf("call %d: %+v", i, call)
					}
				}
				if got := srv.connections(); engine == Fast && (got == 1) != c.reused {
					t.Errorf("%d connections for %d calls", got, n)
				}
			})
		})
	}
}

// A part of a record arrives, then a call is sent, then the rest, which is data: it does not answer the call.
func TestTLSDataBegunBeforeTheRequest(t *testing.T) {
	if fastMissing != "" {
		hosttest.Missing(t, fastMissing, "run on Linux")
	}
	const late = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"
	var rest []byte
	begun := make(chan struct{}, 1)
	srv := forgingTarget(t, func(f *forger) bool {
		if rest != nil {
			return f.send(rest, f.data(good))
		}
		f.send(f.data(good))
		b := f.data(late)
		rest = b[9:]
		time.Sleep(2 * time.Millisecond)
		f.send(b[:9])
		begun <- struct{}{}
		return true
	})
	s := open(t, srv.addr, func(c *Config) { c.Engine, c.MaxConns, c.Endpoint.TLS = Fast, 1, forgedClientTLS() })
	offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
	drain(t, s)
	<-begun
	offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
	drain(t, s)
	var got []Cause
	for _, c := range audit(t, s, 0) {
		got = append(got, c.Cause)
	}
	if d := cmp.Diff([]Cause{0, CauseUnasked}, got); d != "" {
		t.Error(d)
	}
}

// TestTLSKeyUpdatesAreBounded: a target that has many keys updated within an answer, and reads none of the replies,
// fails the call: the replies would fill the memory.
func TestTLSKeyUpdatesAreBounded(t *testing.T) {
	if fastMissing != "" {
		hosttest.Missing(t, fastMissing, "run on Linux")
	}
	for _, c := range []struct {
		rounds int // of 16 key updates, after which crypto/tls wants data
		want   Outcome
	}{{10, OK}, {100, Failed}} {
		over := make(chan struct{})
		srv := forgingTarget(t, func(f *forger) bool {
			goesOn := f.send(f.data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
			for i := 0; i < c.rounds && goesOn; i++ {
				var all [][]byte
				for range 16 {
					all = append(all, f.keyUpdate())
				}
				goesOn = f.send(append(all, f.data("1\r\nx\r\n"))...)
			}
			f.send(f.data("0\r\n\r\n"))
			<-over
			return false
		})
		s := open(t, srv.addr, func(to *Config) {
			to.Engine, to.Endpoint.TLS = Fast, forgedClientTLS()
			to.Operations[0].Wire = wire{want: c.rounds}
		})
		offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
		drain(t, s)
		close(over)
		for _, call := range audit(t, s, 0) {
			if call.Outcome != c.want {
				t.Errorf("%d updates: %+v, want %v", 16*c.rounds, call, c.want)
			}
		}
	}
}
