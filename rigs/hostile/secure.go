package hostile

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"strings"
	"time"

	"tare/internal/load"
)

// secure are servers that speak TLS when they should not, or not as they should.
func secure() []Server {
	cut := then(ok+"Content-Length: 9\r\n\r\nhalf", closes)
	return []Server{
		one("TLS where plaintext was asked for", func(_ context.Context, c *conn) {
			if _, asked := c.ask(); asked {
				c.say("\x15\x03\x01\x00\x02\x02\x46") // a fatal alert: protocol version
			}
		}, load.Failed, 0, load.CauseSpeaksTLS),
		tlsServer("TLS", issue{}, nil, good, load.OK, 200),
		tlsServer("plaintext where TLS was asked for", issue{}, nil, nil, load.ConnFailed, 0,
			load.CauseNotTLS).with(func(_ context.Context, c *conn) {
			if _, err := c.Read(make([]byte, 4<<10)); err == nil {
				c.say("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
			}
		}),
		tlsServer("self-signed certificate", issue{alone: true}, nil, good, load.ConnFailed, 0, load.CauseUnknownAuthority),
		tlsServer("expired certificate", issue{expired: true}, nil, good, load.ConnFailed, 0, load.CauseExpired),
		tlsServer("certificate of another", issue{name: "other.test"}, nil, good, load.ConnFailed, 0, load.CauseNameMismatch),
		tlsServer("client certificate required", issue{},
			func(c *tls.Config) { c.ClientAuth = tls.RequireAndVerifyClientCert }, good,
			load.ConnFailed, 0, load.CauseClientCertificate),
		tlsServer("handshake refused", issue{}, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }, good,
			load.ConnFailed, 0, load.CauseAlert),
		tlsServer("handshake hangs", issue{}, nil, nil, load.Timeout, 0, load.CauseHandshaking).with(hangs),
		tlsServer("handshake closed", issue{}, nil, nil, load.ConnFailed, 0, load.CauseTLS).with(func(_ context.Context,
			c *conn,
		) {
			_, _ = c.Read(make([]byte, 4<<10))
		}),
		tlsServer("TLS, closes after the request", issue{}, nil, afterRequest(closes), load.Failed, 0, load.CauseClosedEarly),
		tlsServer("TLS, cut in the body", issue{}, nil, cut, load.Failed, 200, load.CauseClosedWithin),
		tlsServer("TLS, hangs in the body", issue{}, nil, then(ok+"Content-Length: 9\r\n\r\nhalf", hangs), load.Timeout, 0,
			load.CauseNoEnd),
		tlsServer("TLS, two answers at once", issue{}, nil,
			each(func(p string) string { return answer(p) + answer("again") }), load.OK, 200),
		tlsServer("TLS, endless body", issue{}, nil, then(ok+"\r\n", goesOn(strings.Repeat("x", 16<<10))), load.Failed, 200,
			load.CauseTooLong),
	}
}

// tlsServer speaks TLS with a certificate like i, as change wants it, and then talk; its authority is trusted by
// clients.
func tlsServer(name string, i issue, change func(*tls.Config), talk talker, o load.Outcome, status uint16,
	why ...load.Cause,
) Server {
	s := one(name, nil, o, status, why...)
	s.begin = func(ctx context.Context) (*Running, error) {
		ca, err := newAuthority()
		if err != nil {
			return nil, err
		}
		certificate, err := ca.certificate(i)
		if err != nil {
			return nil, err
		}
		valid, err := ca.certificate(issue{})
		if err != nil {
			return nil, err
		}
		conf := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS10}
		if change != nil {
			change(conf)
		}
		r, err := serve(ctx, secured(conf, talk))
		if err != nil {
			return nil, err
		}
		r.better = secured(&tls.Config{Certificates: []tls.Certificate{valid}, MinVersion: tls.VersionTLS12}, good)
		r.TLS = &tls.Config{RootCAs: ca.pool, ServerName: Host, MinVersion: tls.VersionTLS12}
		return r, nil
	}
	return s
}

// with has raw speak instead, without TLS, though clients expect it.
func (s Server) with(raw talker) Server {
	begin := s.begin
	s.begin = func(ctx context.Context) (*Running, error) {
		r, err := begin(ctx)
		if err == nil {
			r.mu.Lock()
			r.talk = raw
			r.mu.Unlock()
		}
		return r, err
	}
	return s
}

// secured speaks TLS first. It says no goodbye: what ends is cut.
func secured(conf *tls.Config, talk talker) talker {
	return func(ctx context.Context, c *conn) {
		s := tls.Server(c.Conn, conf)
		if s.HandshakeContext(ctx) == nil {
			talk(ctx, &conn{Conn: s, of: c.of})
			return
		}
		// What the client has sent meanwhile is read: unread, it would turn the alert into a reset.
		c.hang(ctx)
	}
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	root *x509.Certificate
	pool *x509.CertPool
}

// issue says what is wrong with a certificate.
type issue struct {
	name           string // instead of Host
	alone, expired bool   // signed by itself; of the past
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	plan := template(1, "authority", issue{})
	plan.IsCA, plan.KeyUsage, plan.BasicConstraintsValid = true, x509.KeyUsageCertSign, true
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	a := &authority{key: key, root: root, pool: x509.NewCertPool()}
	a.pool.AddCert(root)
	return a, nil
}

func template(serial int64, name string, i issue) *x509.Certificate {
	t := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if i.expired {
		t.NotAfter = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

func (a *authority) certificate(i issue) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	if i.name == "" {
		i.name = Host
	}
	plan := template(2, i.name, i)
	parent, signer := a.root, a.key
	if i.alone {
		parent, signer = plan, key
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, parent, &key.PublicKey, signer)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
