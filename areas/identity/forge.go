package identity

import (
	"crypto/rand"
	"crypto/sha256"
	mathrand "math/rand/v2"
	"strings"
	"unicode"
)

const (
	// madeUp is nobody's secret.
	madeUp = "tare-canary-this-is-not-the-secret"
	// shortSecret is the length below which a forgery might be somebody's secret.
	shortSecret = 8
)

// forgeryKey makes forgeries differ from process to process.
var forgeryKey = rand.Text()

// forgedSecret returns a secret that is nobody's and looks like a real one; of a JWT only the signature is forged.
func forgedSecret(secret string) string {
	if strings.Count(secret, ".") == 2 {
		return forgedFrom(secret)
	}
	if len(secret) < shortSecret {
		return madeUp
	}
	return alike(secret)
}

// forgedFrom returns a good token with an invalid signature: only a verification of the signature detects it.
func forgedFrom(token string) string {
	i := strings.LastIndex(token, ".")
	if i < 0 || len(token)-i < shortSecret {
		return k8sUnsigned + "forged"
	}
	head, sig, last := token[:i+1], token[i+1:len(token)-1], token[len(token)-1:]
	return head + alike(sig) + last // whose spare bits are those of a whole number of bytes
}

// alike returns a text as long as another, with digits, capitals and small letters in the same places, each of which
// occurs in the other: a server that does not check it cannot tell them apart. It is another text, and the same one
// each time.
func alike(text string) string {
	kinds := []func(rune) bool{unicode.IsDigit, unicode.IsUpper, unicode.IsLower}
	seed := sha256.Sum256([]byte(forgeryKey + text))
	random := mathrand.New(mathrand.NewChaCha8(seed)) //nolint:gosec // seeded by a secret of this process
	out := strings.Map(func(c rune) rune {
		for _, is := range kinds {
			if !is(c) {
				continue
			}
			all := []rune(strings.Map(func(c rune) rune {
				if is(c) {
					return c
				}
				return -1
			}, text))
			return all[random.IntN(len(all))]
		}
		return c
	}, text)
	if out != text {
		return out
	}
	return strings.Map(func(c rune) rune { // of a text such as "aaaa"
		if c == 'A' {
			return 'B'
		}
		return 'A'
	}, text)
}
