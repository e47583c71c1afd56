package webhook

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
	"time"
)

// life is a certificate's validity before and after now: clocks of hosts differ, and runs are long.
const life = 365 * 24 * time.Hour

// certificate makes an authority and a server's certificate for these IP addresses and DNS names. It discards the
// authority's key.
func certificate(now time.Time, names []string) (leaf tls.Certificate, ca []byte, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return leaf, nil, fmt.Errorf("make the authority's key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return leaf, nil, fmt.Errorf("make the server's key: %w", err)
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tare webhook authority"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return leaf, nil, fmt.Errorf("make the authority: %w", err)
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "tare webhook"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, server, authority, &key.PublicKey, caKey)
	if err != nil {
		return leaf, nil, fmt.Errorf("make the server's certificate for %q: %w", names, err)
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}

// An Identity is what a webhook is known by: its certificate with the key, its authority, and the path below which it
// answers. A process that replaces another one takes its identity over. It holds a key: it goes through the standard
// input of a process, and is written nowhere.
type Identity struct {
	Names []string `json:"names"` // IP addresses and DNS names of the certificate
	Base  string   `json:"base"`
	CA    []byte   `json:"ca"`   // PEM
	Cert  []byte   `json:"cert"` // PEM
	Key   []byte   `json:"key"`  // PEM
}

// NewIdentity makes an identity for these IP addresses and DNS names; none: 127.0.0.1.
func NewIdentity(now time.Time, names []string) (*Identity, error) {
	if len(names) == 0 {
		names = []string{"127.0.0.1"}
	}
	leaf, ca, err := certificate(now, names)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("write the server's key: %w", err)
	}
	return &Identity{
		Names: names, Base: "/" + rand.Text(), CA: ca,
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, nil
}

// leaf returns the certificate with its key.
func (i *Identity) leaf() (tls.Certificate, error) {
	if len(i.Names) == 0 || len(i.Base) < 2 || len(i.CA) == 0 {
		return tls.Certificate{}, errors.New("the identity lacks names, base or authority")
	}
	leaf, err := tls.X509KeyPair(i.Cert, i.Key)
	if err != nil {
		return leaf, errors.New("the identity's certificate and key do not belong together")
	}
	return leaf, nil
}
