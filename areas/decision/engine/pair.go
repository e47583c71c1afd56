package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A Pair is a certificate for loopback that is its own authority, and its key, in PEM. A server and its callers know
// each other by it. It is a secret: it goes through the standard input of processes, and is written nowhere.
type Pair string

// NewPair makes a pair that is good at any time.
func NewPair() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	self := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tare"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	if err != nil {
		return "", fmt.Errorf("make a certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	return Pair(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})) +
		Pair(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), nil
}

// TLS is how a caller reaches the server; nil without a pair: in plaintext. What a handshake costs is not what is
// measured: sessions are resumed, and the group is the cheapest.
func (p Pair) TLS() (*tls.Config, error) {
	if p == "" {
		return nil, nil
	}
	cert, err := tls.X509KeyPair([]byte(p), []byte(p))
	if err != nil {
		return nil, errors.New("the pair of certificate and key cannot be read") // the error may quote it
	}
	c := &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1",
		MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519},
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	c.RootCAs.AddCert(cert.Leaf)
	return c, nil
}

// file is the pair as a file in memory, for a program that takes no secret in another way.
func (p Pair) file() (*os.File, error) {
	fd, err := unix.MemfdCreate("pair", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "pair")
	if _, err := f.WriteString(string(p)); err != nil {
		return nil, errors.Join(fmt.Errorf("write a file in memory: %w", err), f.Close())
	}
	return f, nil
}
