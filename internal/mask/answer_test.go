package mask

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
)

// TestAnswersAreNotQuoted: what the server has chosen is in no error, and its kind and what tare's own host says are.
func TestAnswersAreNotQuoted(t *testing.T) {
	const secret = "s3cr3t"
	verify := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	for want, err := range map[string]error{
		"x509: the certificate is not valid for h": verify(x509.HostnameError{
			Host: "h", Certificate: &x509.Certificate{DNSNames: []string{secret}},
		}),
		"x509: certificate signed by unknown authority": verify(x509.UnknownAuthorityError{}),
		"x509: a root or intermediate certificate is not authorized to sign for this name": verify(
			x509.CertificateInvalidError{Reason: x509.CANotAuthorizedForThisName, Detail: secret}),
		"x509: certificate has expired or is not yet valid: current time": verify(
			x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time"}),
		"x509: the certificate cannot be verified":        verify(errors.New("x509: “s3cr3t” is not trusted")),
		"tls: cannot parse certificate from server":       errors.New("tls: cannot parse certificate from server: " + secret),
		"tls: server selected unsupported version 301":    errors.New("tls: server selected unsupported version 301"),
		"the answer is not HTTP":                          errors.New("malformed MIME header: (remote error: tls: s3cr3t"),
		"the server speaks TLS at this port":              errors.New(`malformed HTTP response "\x15\x03s3cr3t"`),
		"EOF":                                             &url.Error{Op: "Get", URL: "http://h/?" + secret, Err: io.EOF},
		"no answer: context canceled":                     fmt.Errorf("no answer: %w", context.Canceled),
		"dial: connection refused":                        &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"remote error: tls: certificate required":         &net.OpError{Op: "remote error", Err: tls.AlertError(116)},
		"tls: first record is no TLS":                     tls.RecordHeaderError{Msg: "first record is no TLS"},
		"tls: server's certificate has a key of int type": errors.New("tls: server's certificate has a key of int type"),
	} {
		got := Answer(err)
		if got.Error() != want || strings.Contains(got.Error(), secret) {
			t.Errorf("%v: %v, want %s", err, got, want)
		}
		if again := Answer(fmt.Errorf("ask: %w", got)); again.Error() != "ask: "+want {
			t.Errorf("%v, once more: %v", err, again)
		}
	}
	if !errors.As(Answer(verify(x509.UnknownAuthorityError{})), new(x509.UnknownAuthorityError)) || Answer(nil) != nil {
		t.Error("the kind of an error is lost, or there is one of none")
	}
}
