// Package mask takes secrets out of texts of somebody else, who may send back what was sent to him.
package mask

import (
	"bytes"
	"encoding/base64"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A Mask finds secrets in a text: as they are, and in each form that a JSON string can give them.
type Mask [][]byte

// leastPart is the least length in bytes of a part of a secret that is masked where it stands alone.
const leastPart = 8

// Of returns the mask of those secrets that have at least so many bytes: shorter ones occur in ordinary words.
func Of(least int, secrets ...string) (m Mask) {
	for _, s := range secrets {
		m = m.and(s, least)
		for _, part := range parts(s) {
			m = m.and(part, max(least, leastPart))
		}
	}
	return m
}

func (m Mask) and(secret string, least int) Mask {
	if len(secret) < max(least, 1) {
		return m
	}
	m = append(m, []byte(secret))
	if !utf8.ValidString(secret) {
		m = append(m, []byte(string([]rune(secret)))) // as encoding/json writes it
	}
	return m
}

// parts returns what is secret by itself in a header's value: what follows a scheme (Bearer TOKEN), the values of pairs
// (a cookie's, a signature's), and the password that Basic encodes.
func parts(secret string) (found []string) {
	scheme, rest, ok := strings.Cut(secret, " ")
	if ok {
		found = append(found, rest)
	}
	if pair, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		_, password, _ := strings.Cut(string(pair), ":")
		found = append(found, string(pair), password)
	}
	for _, field := range strings.FieldsFunc(secret, func(r rune) bool { return strings.ContainsRune(" ,;", r) }) {
		if _, value, ok := strings.Cut(field, "="); ok {
			found = append(found, value, strings.Trim(value, `"`))
		}
	}
	return found
}

// Fill overwrites the secrets in a text with asterisks, in place. JSON stays JSON.
func (m Mask) Fill(text []byte) []byte {
	for from, to := range m.spans(text) {
		copy(text[from:], bytes.Repeat([]byte{'*'}, to-from))
	}
	return text
}

// Replace returns a text with a word in place of the secrets.
func (m Mask) Replace(text, word string) string {
	var out []byte
	end := 0
	for from, to := range m.spans([]byte(text)) {
		out = append(append(out, text[end:from]...), word...)
		end = to
	}
	return string(append(out, text[end:]...))
}

// Longest returns how many bytes of a text a secret can take at most.
func (m Mask) Longest() (n int) {
	for _, s := range m {
		n = max(n, len(s)*len(`\u0000`))
	}
	return n
}

// spans yields the parts of a text that are secret. One secret may begin with another, or overlap with it.
func (m Mask) spans(text []byte) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from, to := 0, 0
		for i := range text {
			n := m.begins(text[i:])
			if n == 0 {
				continue
			}
			if i > to {
				if from < to && !yield(from, to) {
					return
				}
				from = i
			}
			to = max(to, i+n)
		}
		if from < to {
			yield(from, to)
		}
	}
}

// begins returns the length of the longest secret with which a text begins; 0: it begins with none.
func (m Mask) begins(text []byte) (n int) {
	for _, s := range m {
		if text[0] != s[0] && text[0] != '\\' {
			continue
		}
		if bytes.HasPrefix(text, s) {
			n = max(n, len(s))
		}
		n = max(n, quoted(text, s))
	}
	return n
}

// quoted returns how many bytes at the begin of a text are the secret as a JSON string has it; 0: it begins otherwise.
func quoted(text, secret []byte) (n int) {
	for len(secret) > 0 {
		c, size := unquote(text[n:])
		if size == 0 || !bytes.HasPrefix(secret, c) {
			return 0
		}
		secret, n = secret[len(c):], n+size
	}
	return n
}

// unquote returns the first byte of the inside of a JSON string or, if that begins an escape, the character which the
// escape is for, and its size in the text; 0: there is none.
func unquote(text []byte) (c []byte, size int) {
	switch {
	case len(text) > 0 && text[0] != '\\':
		return text[:1], 1
	case len(text) < 2:
		return nil, 0
	case text[1] != 'u':
		c = text[1:2]
		if i := bytes.IndexByte([]byte("bfnrt"), c[0]); i >= 0 {
			c = []byte("\b\f\n\r\t"[i : i+1])
		}
		return c, 2
	}
	r, size := unit(text), 6
	switch {
	case r < 0:
		return nil, 0
	case utf16.IsSurrogate(r):
		if r = utf16.DecodeRune(r, unit(text[size:])); r != utf8.RuneError {
			size *= 2
		}
	}
	return utf8.AppendRune(nil, r), size
}

// unit returns the UTF-16 code unit of an escape \u0000 at the begin of a text; less than 0: there is none.
func unit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	u, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(u)
}
