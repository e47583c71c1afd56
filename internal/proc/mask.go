package proc

import (
	"bytes"
	"encoding/json"
	"slices"

	"tare/internal/files"
)

// shortestSecret is the least length in bytes of a value that is masked.
const shortestSecret = 8

// secretMask masks secrets, both verbatim and as JSON strings: the longest first, since one may begin with another.
type secretMask [][]byte

func newSecretMask(secrets []string) secretMask {
	var v secretMask
	for _, s := range secrets {
		if len(s) < shortestSecret {
			continue
		}
		v = append(v, []byte(s))
		if quoted, err := json.Marshal(s); err == nil && string(quoted) != `"`+s+`"` {
			v = append(v, bytes.Trim(quoted, `"`), bytes.Trim(unescaped(s), "\"\n"))
		}
	}
	slices.SortFunc(v, func(a, b []byte) int { return len(b) - len(a) })
	return v
}

// unescaped returns a text as JSON without HTML escapes.
func unescaped(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string cannot fail
	return b.Bytes()
}

// apply masks the secrets in a text, in place.
func (v secretMask) apply(text []byte) []byte {
	for _, secret := range v {
		for from := 0; ; {
			i := bytes.Index(text[from:], secret)
			if i < 0 {
				break
			}
			for k := range secret {
				text[from+i+k] = '*'
			}
			from += i + len(secret)
		}
	}
	return text
}

// longest returns the length of the longest secret.
func (v secretMask) longest() (n int) {
	for _, s := range v {
		n = max(n, len(s))
	}
	return n
}

// maskedAtOnce is how much of a log is read at a time, in bytes.
const maskedAtOnce = 1 << 20

// mask hides the secrets in what the child has written to its log.
func (l *childLog) mask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maskHeld()
}

// maskHeld is mask while mu is held. A part that cannot be read or written stays as it is: the log is the user's own
// file.
func (l *childLog) maskHeld() {
	if l.path == "" || len(l.secrets) == 0 {
		return
	}
	f, err := files.Edit(l.path)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // see above
	overlap := l.secrets.longest() - 1
	text := make([]byte, maskedAtOnce+overlap)
	for at := l.start; ; at += maskedAtOnce {
		n, _ := f.ReadAt(text, at)
		if n == 0 {
			return
		}
		was := bytes.Clone(text[:n])
		if l.secrets.apply(text[:n]); !bytes.Equal(was, text[:n]) {
			if _, err := f.WriteAt(text[:n], at); err != nil {
				return
			}
		}
	}
}
