package admission

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"

	"tare/areas/admission/webhook"
)

// newReviewer connects to the webhook server under its own certificate authority.
func newReviewer(r webhook.Ready) (*reviewer, error) {
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(r.CA) {
		return nil, errors.New("the webhook server's authority is no certificate in PEM")
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return &reviewer{
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1"},
			DisableKeepAlives: true,
		}},
		url: "https://" + net.JoinHostPort(host, port) + r.Base,
	}, nil
}
