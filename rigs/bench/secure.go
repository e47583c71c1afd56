//go:build linux

package bench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// layer is the TLS of one connection of the server. It blocks while it shakes hands, and is in memory afterwards.
type layer struct {
	conn     *tls.Conn
	fd       int
	blocking bool
	in, out  []byte
}

// again is the error of a Read that has to be repeated when more has arrived.
type again struct{}

func (again) Error() string   { return "nothing has arrived" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

func (l *layer) Read(b []byte) (int, error) {
	if !l.blocking {
		if len(l.in) == 0 {
			return 0, again{}
		}
		n := copy(b, l.in)
		l.in = l.in[n:]
		return n, nil
	}
	n, err := unix.Read(l.fd, b)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

func (l *layer) Write(b []byte) (int, error) {
	if l.blocking {
		return unix.Write(l.fd, b)
	}
	l.out = append(l.out, b...)
	return len(b), nil
}

func (l *layer) Close() error                     { return nil }
func (l *layer) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (l *layer) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (l *layer) SetDeadline(time.Time) error      { return nil }
func (l *layer) SetReadDeadline(time.Time) error  { return nil }
func (l *layer) SetWriteDeadline(time.Time) error { return nil }

// shakeHands establishes TLS on a new connection. The other connections wait, at most a second.
func (s *server) shakeHands(fd int) (*layer, error) {
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, err
	}
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &unix.Timeval{Sec: 1}); err != nil {
			return nil, err
		}
	}
	l := &layer{fd: fd, blocking: true}
	l.conn = tls.Server(l, s.tls)
	if err := l.conn.Handshake(); err != nil { //nolint:noctx // the socket has a timeout
		return nil, err
	}
	l.blocking = false
	return l, unix.SetNonblock(fd, true)
}

// readSecure answers the requests in records that have arrived.
func (s *server) readSecure(fd int, b []byte) {
	l := s.conns[fd].layer
	l.in = b
	for {
		n, err := l.conn.Read(s.clear)
		if err != nil {
			break // the end shows on the socket
		}
		s.match(fd, s.clear[:n])
	}
	if len(l.out) > 0 {
		_, _ = unix.Write(fd, l.out)
		l.out = l.out[:0]
	}
}

// selfSigned returns what a server with a certificate of its own needs.
func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}
