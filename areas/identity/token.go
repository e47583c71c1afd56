package identity

import (
	"bytes"
	"encoding/base64"

	"tare/internal/jsonscan"
)

// maxClaims bounds the header and the claims of identity tokens, in bytes after decoding.
const maxClaims = 16 << 10

// accessToken returns the token of an OAuth token response (RFC 6749, section 5.1), or what is wrong with it. The token
// must be of type Bearer and of visible characters, and expires_in a number above 0. It does not allocate.
func accessToken(body []byte) (token []byte, v verdict) {
	a, ok := readOAuth(body)
	switch {
	case !ok:
		return nil, malformed(body)
	case len(a.token) == 0:
		return nil, noToken
	case !visible(a.token):
		return nil, notVisible
	case !bytes.EqualFold(a.kind, []byte("Bearer")):
		return nil, notBearer
	case !a.dated || a.quoted:
		return nil, noLifetime
	case a.expires <= 0:
		return nil, hasExpired
	}
	return a.token, noCause
}

// visible reports whether b is one or more printable ASCII characters: what a token is made of (RFC 6749, appendix
// A.12).
func visible(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(b) > 0
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
	raw, ok := jsonscan.Member(header, "alg")
	alg := jsonscan.Text(raw)
	return ok && len(alg) > 0 && !bytes.EqualFold(alg, []byte("none"))
}
