package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"syscall"
)

// handshakeError is a TLS handshake that failed.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// answerError is an answer that cannot be parsed.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

var errRequest = errors.New("the operation rendered no valid HTTP/1.1 request")

// handshake establishes TLS on c.
func handshake(ctx context.Context, c net.Conn, conf *tls.Config) (net.Conn, error) {
	secure := tls.Client(c, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, &handshakeError{err}
	}
	return secure, nil
}

// classify returns how an error ends a call, depending on whether it was sent and whether any part of an answer had
// arrived. A connection that could not be established, or was lost with an errno, is ConnFailed.
func classify(err error, sent, answered bool) (Outcome, uint16, Cause) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return Timeout, 0, 0
	}
	if errors.Is(err, context.Canceled) {
		return ConnFailed, uint16(syscall.ECONNABORTED), CauseAbandoned
	}
	if errors.Is(err, errRequest) {
		return Failed, 0, CauseRequest
	}
	if bad, ok := errors.AsType[*answerError](err); ok {
		return Failed, 0, parseCause(bad.err)
	}
	why := tlsCause(err, answered)
	switch {
	case why != 0:
	case !sent:
		why = CauseConnect
	case answered:
		why = CauseClosedWithin
	default:
		why = CauseClosedEarly
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return ConnFailed, uint16(e), why
	}
	if !sent || (why != CauseClosedEarly && why != CauseClosedWithin) {
		return ConnFailed, 0, why
	}
	return Failed, 0, why
}

// tlsCause returns the cause of a TLS error, 0 for any other error. The target may reject a certificate, or its
// absence, only after the client has sent its request (RFC 8446, section 4.4.2.4): that is an alert too, as long as no
// answer has begun.
func tlsCause(err error, answered bool) Cause {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		remote    *net.OpError
		shake     *handshakeError
	)
	switch {
	case errors.As(err, &authority):
		return CauseUnknownAuthority
	case errors.As(err, &name):
		return CauseNameMismatch
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return CauseExpired
	case errors.As(err, &remote) && remote.Op == "remote error" && !answered:
		if remote.Err != nil && remote.Err.Error() == certificateRequired.Error() {
			return CauseClientCertificate
		}
		return CauseAlert
	case errors.As(err, &record) && errors.As(err, &shake):
		return CauseNotTLS
	case errors.As(err, &shake):
		return CauseTLS
	}
	return 0
}

// certificateRequired is alert 116 of RFC 8446, section 6.
const certificateRequired = tls.AlertError(116)
