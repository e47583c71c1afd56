package identity

import (
	"bytes"
	"math"
	"strconv"

	"tare/internal/jsonscan"
)

// claims judges the claims of a JWT (RFC 7519). An opaque token is accepted when no claims are expected; promised
// reports whether the answer gave its life. The signature is not verified: the question is what the endpoint's answer
// costs, and the token's reader will verify it. It does not allocate.
func claims(token []byte, want wanted, promised bool) verdict {
	var buf [maxClaims]byte
	payload, ok := payloadOf(buf[:], token)
	if !ok {
		switch {
		case want.signed || want.subject != "" || len(want.audience) > 0 || want.issuer != "":
			return notSigned
		case !promised:
			return noLifetime
		}
		return noCause
	}
	return readClaims(payload, want, promised)
}

// readClaims compares what the payload says.
func readClaims(payload []byte, want wanted, promised bool) verdict {
	var sub, iss, email []byte
	exp, given, dated, heard := int64(0), false, false, false
	m := jsonscan.Object(payload)
	for {
		key, value, more := m.Next()
		if !more {
			break
		}
		switch {
		case jsonscan.Is(key, "aud"):
			heard = holds(value, want.audience)
		case jsonscan.Is(key, "exp"):
			given = true
			exp, dated = seconds(value)
		case jsonscan.Is(key, "email"):
			email = jsonscan.Text(value)
		case jsonscan.Is(key, "sub"):
			sub = jsonscan.Text(value)
		case jsonscan.Is(key, "iss"):
			iss = jsonscan.Text(value)
		}
	}
	switch {
	case !m.Whole():
		return notSigned
	case !dated && (given || !promised): // no reader would accept an expiry that is no number
		return noLifetime
	case dated && exp <= want.now:
		return hasExpired
	case want.subject != "" && string(sub) != want.subject, want.email != "" && string(email) != want.email, want.named &&
		len(sub) == 0:
		return otherSubject
	case len(want.audience) > 0 && !heard:
		return otherAudience
	case want.issuer != "" && string(iss) != want.issuer:
		return otherIssuer
	}
	return noCause
}

// payloadOf decodes the claims of a signed JWT into dst; ok is false for anything else.
func payloadOf(dst, token []byte) (payload []byte, ok bool) {
	i := bytes.IndexByte(token, '.')
	if i < 0 {
		return nil, false
	}
	j := bytes.IndexByte(token[i+1:], '.')
	if j < 0 || !base64url(token[i+1+j+1:]) {
		return nil, false
	}
	if header, ok := decode(dst, token[:i]); !ok || !signedHeader(header) {
		return nil, false
	}
	return decode(dst, token[i+1:i+1+j])
}

// subjectOf returns the claim sub of a signed JWT, "" if it has none.
func subjectOf(token []byte) string {
	var buf [maxClaims]byte
	payload, _ := payloadOf(buf[:], token)
	sub, _ := jsonscan.Member(payload, "sub")
	return string(jsonscan.Text(sub))
}

// holds reports whether a string value, or one of a list of them, is want.
func holds(value, want []byte) bool {
	if len(want) == 0 || len(value) == 0 || value[0] != '[' {
		return len(want) > 0 && jsonscan.Is(value, want)
	}
	list := jsonscan.Array(value)
	for {
		_, element, more := list.Next()
		if !more || jsonscan.Is(element, want) {
			return more
		}
	}
}

// farAway bounds what seconds returns.
const farAway = 1e17

// seconds returns a number of seconds, such as a NumericDate (RFC 7519, section 2), rounded up: a token that lives for
// half a second has not expired. ok is false for what is no finite number.
func seconds(value []byte) (n int64, ok bool) {
	if !jsonscan.IsNumber(value) {
		return 0, false
	}
	if n, ok = jsonscan.Int(value); ok {
		return min(max(n, -farAway), farAway), true
	}
	v, err := strconv.ParseFloat(string(value), 64)
	return int64(math.Ceil(min(max(v, -farAway), farAway))), err == nil
}
