package kit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"tare/area"
	"tare/internal/files"
	"tare/internal/mask"
	"tare/internal/secretfile"
)

// TLS says whom to trust as a target behind https, and how tare proves who it is. The zero TLS trusts the host's
// authorities.
type TLS struct {
	CA         string      `yaml:"ca,omitempty" json:"ca,omitempty" tare:"path" jsonschema_description:"File with the certificates (PEM) of the authorities to trust, instead of the host's."`
	Cert       string      `yaml:"cert,omitempty" json:"cert,omitempty" tare:"path" jsonschema_description:"File with the client certificate and its chain (PEM)."`
	Key        area.Secret `yaml:"key,omitempty" json:"key,omitzero" jsonschema_description:"The client certificate's private key (PEM): {file: path} or {env: NAME}."`
	ServerName string      `yaml:"server_name,omitempty" json:"server_name,omitempty" jsonschema_description:"Name that the server's certificate must have. Default: the URL's host."`
	Insecure   bool        `yaml:"insecure,omitempty" json:"insecure,omitempty" jsonschema_description:"Do not verify the server's certificate. Every report will say so."`
}

// NoteInsecure must be in every report of a run that verified no certificate.
const NoteInsecure = "the server's certificate was not verified (tls.insecure)"

// WarnInsecure returns the finding about a section that verifies no certificate.
func WarnInsecure() area.Finding {
	return area.Finding{
		Path: "tls.insecure", Severity: area.Warning,
		Message: NoteInsecure + ": what is sent, credentials too, goes to whoever answers",
		Hint:    "name the authority instead: tls: {ca: file.pem}",
	}
}

// Validate reports what is wrong with t as it stands in the file. The error begins with the field's name.
func (t *TLS) Validate() error {
	switch {
	case t == nil:
		return nil
	case t.Cert != "" && t.Key.IsZero():
		return errors.New("key: a client certificate needs its private key: key: {file: path}")
	case t.Cert == "" && !t.Key.IsZero():
		return errors.New("cert: a private key needs its certificate")
	case t.Insecure && (t.CA != "" || t.ServerName != ""):
		return errors.New("insecure: nothing is verified, so ca and server_name have no effect: leave out one or the other")
	}
	return nil
}

// Config reads the files and secrets of t and returns the configuration for clients of host. Only HTTP/1.1 is offered,
// and no session is resumed: each new connection costs a whole handshake, as a workload's first one does. Its errors
// hold nothing of a key.
func (t *TLS) Config(host string, getenv func(name string) (string, bool)) (*tls.Config, error) {
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t == nil {
		return c, nil
	}
	c.InsecureSkipVerify = t.Insecure
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	if t.CA != "" {
		if err := secretfile.CheckAuthorities(t.CA); err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		pem, err := readPEM(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read tls.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read tls.ca: %s holds no certificate in PEM", t.CA)
		}
	}
	if t.Cert == "" {
		return c, nil
	}
	pair, err := t.pair(getenv)
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

func (t *TLS) pair(getenv func(string) (string, bool)) (tls.Certificate, error) {
	pem, err := readPEM(t.Cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read tls.cert: %w", err)
	}
	key, err := t.Key.Resolve(getenv)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read tls.key: %w", err)
	}
	pair, err := tls.X509KeyPair(pem, []byte(key))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tls.cert and tls.key: %s does not hold a certificate for the key of %s, "+
			"both in PEM", t.Cert, t.Key)
	}
	return pair, nil
}

// readPEM reads certificates. They may stand behind any link, as those of the host do.
func readPEM(path string) ([]byte, error) {
	const most = 4 << 20
	f, err := regular(files.ForReading(path))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	return files.ReadAll(f, most)
}

// ExplainTLS says what is wrong with a connection that failed, by the field of `tls` that mends it, and the next step.
// ok is false when err does not come from TLS. It repeats nothing that the server has chosen.
func ExplainTLS(err error) (f area.Finding, ok bool) {
	err = mask.Answer(err)
	f.Severity = area.Error
	var (
		unknown  x509.UnknownAuthorityError
		name     x509.HostnameError
		invalid  x509.CertificateInvalidError
		plain    tls.RecordHeaderError
		alert    tls.AlertError
		remote   *net.OpError // of crypto/tls: an alert, whose type is not exported
		verified *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &unknown):
		f.Path, f.Message = "tls.ca", "the server's certificate is signed by an authority that is not trusted"
		f.Hint = "name the authority's certificate: tls: {ca: file.pem}"
	case errors.As(err, &name):
		f.Path, f.Message = "tls.server_name", "the server's certificate is not valid for "+name.Host
		f.Hint = "name what the certificate says: tls: {server_name: …}, or use that name in the URL"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		f.Path, f.Message = "url", "the server's certificate has expired, or is not valid yet: "+invalid.Detail
		f.Hint = "renew it, or set this host's clock"
	case errors.As(err, &verified):
		f.Path, f.Message = "tls.ca", "the server's certificate is not valid: "+err.Error()
		f.Hint = "renew it"
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		f.Path, f.Message = "url", "the server does not speak TLS at this port"
		f.Hint = "write http:// instead of https://, or another port"
	case errors.Is(err, mask.ErrTLS):
		f.Path, f.Message = "url", mask.ErrTLS.Error()
		f.Hint = "write https:// instead of http://, or another port"
	case errors.As(err, &alert):
		return explainAlert(f, alert), true
	case errors.As(err, &remote) && remote.Op == "remote error":
		return explainAlert(f, remote.Err), true
	default:
		return area.Finding{}, false
	}
	return f, true
}

// explainAlert returns f with the message of a server that ended the TLS handshake, or the connection right after it.
func explainAlert(f area.Finding, alert error) area.Finding {
	words := strings.TrimPrefix(alert.Error(), "tls: ")
	f.Path, f.Message = "tls.cert", "the server ended the TLS handshake: "+words
	switch {
	case strings.Contains(words, "certificate required"), strings.Contains(words, "bad certificate"),
		strings.Contains(words, "handshake failure"):
		f.Hint = "it may want a client certificate that it trusts: tls: {cert: client.pem, key: {file: client.key}}"
	case strings.Contains(words, "certificate"), strings.Contains(words, "authority"):
		f.Hint = "it does not trust the client certificate: use one from an authority that it knows"
	case strings.Contains(words, "unrecognized name"):
		f.Path, f.Hint = "tls.server_name", "name a server that it has: tls: {server_name: …}"
	default:
		f.Hint = "look at the server's log"
	}
	return f
}
