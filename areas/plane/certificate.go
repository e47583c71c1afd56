package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// validFor is the certificates' lifetime: longer than any experiment, and too short to rely on otherwise.
	validFor = 30 * 24 * time.Hour
	// validBefore allows for a clock that steps back a little while the plane runs.
	validBefore = time.Hour
)

// An authority is a certificate authority made for one plane.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte // the certificate
}

// newAuthority makes a root certificate that signs servers' certificates only.
func newAuthority(now time.Time) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := certificate("tare-plane", now)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.MaxPathLenZero = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	return &authority{key: key, cert: cert, pem: block("CERTIFICATE", der)}, nil
}

// server signs a certificate for the names and addresses of the plane's components, and returns it with its key, both
// PEM.
func (a *authority) server(now time.Time) (cert, key []byte, err error) {
	k, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template, err := certificate("kube-apiserver", now)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a server's certificate: %w", err)
	}
	text, err := encodePrivate(k)
	return block("CERTIFICATE", der), text, err
}

// certificate returns the fields that all certificates share.
func certificate(name string, now time.Time) (*x509.Certificate, error) {
	const serialBits = 127 // RFC 5280, 4.1.2.2: positive, at most 20 octets
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-validBefore), NotAfter: now.Add(validFor), BasicConstraintsValid: true,
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// encodePrivate encodes a key as "EC PRIVATE KEY" (SEC 1), which every version of Kubernetes reads, also for service
// accounts.
func encodePrivate(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	return block("EC PRIVATE KEY", der), nil
}

// encodePublic encodes the public key as "PUBLIC KEY" (PKIX).
func encodePublic(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	return block("PUBLIC KEY", der), nil
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
