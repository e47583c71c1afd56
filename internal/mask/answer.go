package mask

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// ErrTLS is about a server that answers a request without TLS by an alert of TLS.
var ErrTLS = errors.New("the server speaks TLS at this port")

// Answer returns an error of a connection or of an HTTP client without the URL and without what the server has sent:
// the names in its certificate and what is not HTTP are the server's choice, and may repeat a secret that it was sent.
// errors.Is and errors.As find in it what they find in err.
func Answer(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if err == nil || isOwn(err) {
		return err
	}
	if strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`) { // net/http quotes the alert
		return ErrTLS
	}
	return &answerError{answerWords(err), err}
}

// isOwn reports an error whose text the server has no part in.
func isOwn(err error) bool {
	for _, own := range []error{
		io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded, http.ErrSchemeMismatch, ErrTLS,
	} {
		if errors.Is(err, own) {
			return true
		}
	}
	return errors.As(err, new(*answerError)) || errors.As(err, new(net.Error)) ||
		errors.As(err, new(tls.RecordHeaderError)) ||
		errors.As(err, new(tls.AlertError))
}

// answerWords says what is wrong in words that the server has not chosen.
func answerWords(err error) string {
	var (
		name    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &name):
		return "x509: the certificate is not valid for " + name.Host
	case errors.As(err, &unknown):
		return "x509: certificate signed by unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // times, which Go has formatted
		return invalid.Error()
	case errors.As(err, &invalid):
		return firstClause(invalid.Error(), "x509: ")
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "x509: the certificate cannot be verified"
	case strings.HasPrefix(err.Error(), "tls: "):
		return firstClause(err.Error(), "tls: ")
	}
	return "the answer is not HTTP"
}

// firstClause returns what begins a text and what follows up to the next colon: Go's own packages have written both.
func firstClause(text, begin string) string {
	clause, _, _ := strings.Cut(strings.TrimPrefix(text, begin), ": ")
	return begin + clause
}

// An answerError is an error in words of our own. It does not show the one that it stands for.
type answerError struct {
	text string
	of   error
}

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.of }
