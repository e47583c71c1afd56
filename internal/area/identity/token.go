package identity

import (
	"bytes"
	"encoding/base64"
)

// maxClaims bounds the header and the claims of identity tokens, in bytes after decoding.
const maxClaims = 16 << 10

// accessToken returns the token of a well-formed OAuth token response (RFC 6749, section 5.1) that is still good: a token of type
// Bearer, and expires_in above 0. ok is false otherwise. Whether the token is visible is left to the caller. It does not allocate.
func accessToken(body []byte) (token []byte, ok bool) {
	bearer, lives := false, false
	m := walk(body)
	for {
		key, value, more := m.next()
		if !more {
			break
		}
		switch string(key) {
		case "access_token":
			token = text(value)
		case "token_type":
			bearer = bytes.EqualFold(text(value), []byte("Bearer"))
		case "expires_in":
			s, number := whole64(value)
			lives = number && s > 0
		}
	}
	return token, m.whole() && bearer && lives
}

// visible reports whether b is one or more printable ASCII characters: what a token is made of (RFC 6749, appendix A.12).
func visible(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(b) > 0
}

// A wantedIdentity is what an identity token has to say.
type wantedIdentity struct {
	audience []byte
	email    string // empty: unknown
	now      int64  // seconds since 1970
}

// identityToken reports whether body is a signed JWT (RFC 7519) for the audience and the account that were asked for, valid at now.
// The signature is not verified: the question is what the endpoint's answer costs, and the token's reader will verify it. It does not allocate.
func identityToken(body []byte, want wantedIdentity) bool {
	body = bytes.TrimSpace(body)
	i := bytes.IndexByte(body, '.')
	if i < 0 {
		return false
	}
	j := bytes.IndexByte(body[i+1:], '.')
	if j < 0 || !base64url(body[i+1+j+1:]) {
		return false
	}
	var buf [maxClaims]byte
	header, ok := decode(buf[:], body[:i])
	if !ok || !signedHeader(header) {
		return false
	}
	claims, ok := decode(buf[:], body[i+1:i+1+j])
	return ok && claimsMatch(claims, want)
}

func decode(dst, src []byte) ([]byte, bool) {
	if base64.RawURLEncoding.DecodedLen(len(src)) > len(dst) {
		return nil, false
	}
	n, err := base64.RawURLEncoding.Decode(dst, src)
	return dst[:n], err == nil
}

// base64url reports whether b is one or more characters of that alphabet.
func base64url(b []byte) bool {
	for _, c := range b {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(b) > 0
}

// signedHeader refuses "alg": "none" (RFC 8725, section 3.2).
func signedHeader(header []byte) bool {
	signed := false
	m := walk(header)
	for {
		key, value, more := m.next()
		if !more {
			return m.whole() && signed
		}
		if string(key) == "alg" {
			alg := text(value)
			signed = len(alg) > 0 && !bytes.EqualFold(alg, []byte("none"))
		}
	}
}

func claimsMatch(claims []byte, want wantedIdentity) bool {
	var email, sub []byte
	aud, lives := false, false
	m := walk(claims)
	for {
		key, value, more := m.next()
		if !more {
			break
		}
		switch string(key) {
		case "aud":
			aud = bytes.Equal(text(value), want.audience)
		case "exp":
			exp, number := whole64(value)
			lives = number && exp > want.now
		case "email":
			email = text(value)
		case "sub":
			sub = text(value)
		}
	}
	return m.whole() && aud && lives && len(sub) > 0 && (want.email == "" || string(email) == want.email)
}
