package reference

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Algorithm is a JWS signature algorithm (RFC 7518, section 3.1).
type Algorithm string

// The algorithms.
const (
	RS256 Algorithm = "RS256"
	ES256 Algorithm = "ES256"
)

// skew is how far clocks of issuer and verifier may differ.
const skew = time.Minute

// Claims are the registered claims (RFC 7519, section 4.1) that the servers use, and the e-mail address of identity
// tokens.
type Claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	Email    string `json:"email,omitempty"`
	Verified bool   `json:"email_verified,omitempty"`
}

// A Signer signs JWTs with a private key that never leaves memory.
type Signer struct {
	alg Algorithm
	key crypto.Signer
}

// NewSigner makes a key for alg.
func NewSigner(alg Algorithm) (*Signer, error) {
	switch alg {
	case RS256:
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, fmt.Errorf("make an RSA key: %w", err)
		}
		return &Signer{alg, key}, nil
	case ES256:
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("make an ECDSA key: %w", err)
		}
		return &Signer{alg, key}, nil
	}
	return nil, fmt.Errorf("make a key: unknown algorithm %q", alg)
}

// ParseSigner reads a private key in PKCS #8 form.
func ParseSigner(der []byte) (*Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("read the signing key: not a PKCS #8 private key") // the parser's error may quote the key
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return &Signer{RS256, key}, nil
	case *ecdsa.PrivateKey:
		return &Signer{ES256, key}, nil
	}
	return nil, fmt.Errorf("read the signing key: unsupported kind %T", key)
}

// Private returns the key in PKCS #8 form, to be handed to a child through memory.
func (s *Signer) Private() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(s.key) }

// Public returns the public key in PKIX form.
func (s *Signer) Public() ([]byte, error) { return x509.MarshalPKIXPublicKey(s.key.Public()) }

// Sign returns c as a compact JWS (RFC 7515, section 3.1).
func (s *Signer) Sign(c Claims) (string, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode claims: %w", err)
	}
	b64 := base64.RawURLEncoding
	in := b64.EncodeToString([]byte(`{"alg":"`+string(s.alg)+`","typ":"JWT"}`)) + "." + b64.EncodeToString(body)
	digest := sha256.Sum256([]byte(in))
	var sig []byte
	switch key := s.key.(type) {
	case *rsa.PrivateKey:
		sig, err = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	case *ecdsa.PrivateKey:
		var r, v *big.Int
		if r, v, err = ecdsa.Sign(rand.Reader, key, digest[:]); err == nil {
			sig = append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...)
		}
	}
	if err != nil {
		return "", fmt.Errorf("sign a JWT: %w", err)
	}
	return in + "." + b64.EncodeToString(sig), nil
}

// A Verifier checks JWTs against one public key.
type Verifier struct{ key crypto.PublicKey }

// ParseVerifier reads a public key in PKIX form.
func ParseVerifier(der []byte) (*Verifier, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("read the trusted key: %w", err)
	}
	switch key.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey:
		return &Verifier{key}, nil
	}
	return nil, fmt.Errorf("read the trusted key: unsupported kind %T", key)
}

// Verify returns the claims of a JWT that the key has signed and that is valid at now. It does not judge issuer and
// audience. Its errors never quote the token.
func (v *Verifier) Verify(token string, now time.Time) (Claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}, errors.New("not a compact JWS of three parts")
	}
	var header struct {
		Algorithm Algorithm `json:"alg"`
	}
	if err := decodePart(parts[0], &header); err != nil {
		return Claims{}, fmt.Errorf("header: %w", err)
	}
	sig, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return Claims{}, errors.New("signature: not base64url")
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !v.signed(header.Algorithm, digest[:], sig) {
		return Claims{}, errors.New("signature: does not match the trusted key")
	}
	var c Claims
	if err := decodePart(parts[1], &c); err != nil {
		return Claims{}, fmt.Errorf("claims: %w", err)
	}
	switch {
	case !now.Before(time.Unix(c.Expires, 0)):
		return Claims{}, errors.New("claims: expired")
	case time.Unix(c.IssuedAt, 0).After(now.Add(skew)):
		return Claims{}, errors.New("claims: issued in the future")
	}
	return c, nil
}

// signed takes the algorithm from the key and only compares it with the header's: a header must not choose (RFC 8725,
// section 3.1).
func (v *Verifier) signed(alg Algorithm, digest, sig []byte) bool {
	switch key := v.key.(type) {
	case *rsa.PublicKey:
		return alg == RS256 && rsa.VerifyPKCS1v15(key, crypto.SHA256, digest, sig) == nil
	case *ecdsa.PublicKey:
		if alg != ES256 || len(sig) != 64 {
			return false
		}
		return ecdsa.Verify(key, digest, new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
	}
	return false
}

func decodePart(part string, into any) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return errors.New("not base64url")
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(into); err != nil {
		return errors.New("not the JSON that was expected")
	}
	return nil
}
