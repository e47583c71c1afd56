package memtest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// saying is a connection to a server that says one thing, whatever it is asked.
type saying struct {
	net.Conn
	io.Reader
}

func (s saying) Read(b []byte) (int, error)  { return s.Reader.Read(b) }
func (s saying) Write(b []byte) (int, error) { return len(b), nil }
func (s saying) Close() error                { return nil }

// endless gives a text again and again, and counts what was taken of it.
type endless struct {
	text string
	n    int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.text[e.n%len(e.text):])
	e.n += n
	return n, nil
}

// EndlessAnswers tests that ask stops reading an HTTP answer of which any part does not end, before it has read so many
// bytes, and fails.
func EndlessAnswers(t *testing.T, most int, ask func(net.Conn) error) {
	t.Helper()
	for name, c := range map[string]struct{ begins, goesOn string }{
		"status line": {"HTTP/1.1 200 ", "O"},
		"header":      {"HTTP/1.1 200 OK\r\nA: ", "a"},
		"headers":     {"HTTP/1.1 200 OK\r\n", "A: b\r\n"},
		"chunk size":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0"},
		"trailers":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n"},
	} {
		e := &endless{text: c.goesOn}
		err := ask(saying{Reader: io.MultiReader(strings.NewReader(c.begins), io.LimitReader(e, int64(most)))})
		if err == nil || e.n >= most {
			t.Errorf("%s: %d bytes were read, want fewer than %d; error %v", name, e.n, most, err)
		}
	}
}

// FuzzAnswers feeds ask with HTTP answers: it neither panics nor takes more memory than Bound allows.
func FuzzAnswers(f *testing.F, ask func(net.Conn) error) {
	f.Helper()
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 999\r\nContent-Length: 99999999999\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer Bound(t, len(b))()
		_ = ask(saying{Reader: bytes.NewReader(b)})
	})
}
