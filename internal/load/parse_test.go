package load

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"tare/rigs/memtest"
)

// parsed is the result of parsing some bytes.
type parsed struct {
	status int
	body   string
	rest   string
	close  bool
	done   bool
	err    error
}

// parseIn feeds text in pieces of n bytes, and its end if it is complete only then.
func parseIn(text []byte, n int, head bool, t *template) parsed {
	var p parser
	p.begin(head)
	for len(text) > 0 {
		k := min(n, len(text))
		done, rest, err := p.feed(text[:k], t)
		text = text[k:]
		if err != nil {
			return parsed{err: err}
		}
		if done {
			return parsed{p.status, string(p.whole), string(rest) + string(text), p.close, true, nil}
		}
	}
	if p.eof() {
		return parsed{p.status, string(p.whole), "", true, true, nil}
	}
	return parsed{}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		head bool
		want parsed
	}{
		"sized":          {text: good, want: parsed{status: 200, body: "ok", done: true}},
		"pipelined rest": {text: good + "HTTP", want: parsed{status: 200, body: "ok", rest: "HTTP", done: true}},
		"bare line feeds": {
			text: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
			want: parsed{status: 200, body: "ok", done: true},
		},
		"no reason": {
			text: "HTTP/1.1 200\r\ncontent-length:2\r\n\r\nok",
			want: parsed{status: 200, body: "ok", done: true},
		},
		"close": {
			text: "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 0\r\n\r\n",
			want: parsed{status: 200, close: true, done: true},
		},
		"1.0": {
			text: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
			want: parsed{status: 200, body: "ok", close: true, done: true},
		},
		"1.0 keep-alive": {
			text: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
			want: parsed{status: 200, body: "ok", done: true},
		},
		"until close": {
			text: "HTTP/1.1 200 OK\r\n\r\nabc",
			want: parsed{status: 200, body: "abc", close: true, done: true},
		},
		"not modified": {
			text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
			want: parsed{status: 304, done: true},
		},
		"head": {
			text: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", head: true,
			want: parsed{status: 200, done: true},
		},
		"interim": {text: "HTTP/1.1 100 Continue\r\n\r\n" +
			good, want: parsed{status: 200, body: "ok", done: true}},
		"folded": {
			text: "HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\nContent-Length: 1\r\n\r\nz",
			want: parsed{status: 200, body: "z", done: true},
		},
		"chunked": {text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nA;n=v\r\n0123456789\r\n1 " +
			"\r\nx\r\n0\r\nT: 1\r\n\r\nrest", want: parsed{status: 200, body: "0123456789x", rest: "rest", done: true}},
		"chunked and sized": {
			text: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			want: parsed{status: 200, close: true, done: true},
		},
		"same length twice": {
			text: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
			want: parsed{status: 200, body: "x", done: true},
		},
		"incomplete":           {text: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"},
		"incomplete header":    {text: "HTTP/1.1 200 OK\r\nContent-Le"},
		"incomplete chunks":    {text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"},
		"garbage":              {text: "hello", want: parsed{err: errNotHTTP}},
		"HTTP/2":               {text: "HTTP/2 200\r\n\r\n", want: parsed{err: errNotHTTP}},
		"letters for a status": {text: "HTTP/1.1 2x0 OK\r\n\r\n", want: parsed{err: errNotHTTP}},
		"status too long":      {text: "HTTP/1.1 2000 OK\r\n\r\n", want: parsed{err: errNotHTTP}},
		"switching":            {text: "HTTP/1.1 101 Switching Protocols\r\n\r\n", want: parsed{err: errSwitching}},
		"no colon":             {text: "HTTP/1.1 200 OK\r\nhello\r\n\r\n", want: parsed{err: errHeader}},
		"two lengths": {
			text: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
			want: parsed{err: errLength},
		},
		"negative length": {text: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", want: parsed{err: errLength}},
		"overflowing length": {
			text: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
			want: parsed{err: errLength},
		},
		"coded 1.0": {
			text: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			want: parsed{err: errCoding},
		},
		"gzip coding": {
			text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
			want: parsed{err: errCoding},
		},
		"chunk size": {
			text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
			want: parsed{err: errChunk},
		},
		"huge chunk": {
			text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
			want: parsed{err: errChunk},
		},
		"chunk without its end": {
			text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
			want: parsed{err: errChunk},
		},
		"endless header": {
			text: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeader),
			want: parsed{err: errTooLong},
		},
		"endless chunk size": {text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
			strings.Repeat("x", maxLine), want: parsed{err: errChunk}},
		"endless trailers": {text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" +
			strings.Repeat("a: b\r\n", maxHeader/3), want: parsed{err: errTrailer}},
		"endless interim": {text: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxHeader/27+1) +
			good, want: parsed{err: errTooLong}},
		"some interim": {text: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxHeader/27-1) +
			good, want: parsed{status: 200, body: "ok", done: true}},
		"length beyond reading": {text: "HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n", want: parsed{err: errAnswer}},
		"TLS":                   {text: "\x15\x03\x01\x00\x02\x02\x46", want: parsed{err: errTLS}},
	} {
		t.Run(name, func(t *testing.T) {
			var reused template
			for _, n := range []int{1, 2, 3, 7, 64, 1 << 20, 1 << 20} { // the last one meets the template of those before
				if got := parseIn([]byte(c.text), n, c.head, &reused); got != c.want {
					t.Errorf("in pieces of %d: %+v, want %+v", n, got, c.want)
				}
			}
		})
	}
}

func TestParserServesManyResponses(t *testing.T) {
	var p parser
	var tp template
	for i := range 3 {
		p.begin(false)
		long := strings.Repeat("x", keepBody+i)
		text := "HTTP/1.1 200 OK\r\nContent-Length: " + itoa(len(long)) + "\r\n\r\n" + long
		if done, _, err := p.feed([]byte(text[:100]), &tp); done || err != nil {
			t.Fatal(done, err)
		}
		done, rest, err := p.feed([]byte(text[100:]), &tp)
		if !done || err != nil || len(rest) != 0 || string(p.whole) != long {
			t.Fatalf("response %d: %v %v, %d bytes", i, done, err, len(p.whole))
		}
	}
}

// FuzzParse: the pieces in which a response arrives do not matter, nothing panics, and what net/http reads we read too.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		good, good + good, "HTTP/1.1 100 Continue\r\n\r\n" + good, "HTTP/1.0 200 OK\r\n\r\nbody",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 200 OK\nConnection: close\n\n", "GET / HTTP/1.1\r\n\r\n",
		strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 3) + good, "HTTP/1.1 200 OK\r\nContent-Length: 16777217\r\n\r\n",
		"\x15\x03\x01\x00\x02\x02\x46",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;xxxx\r\ny\r\n0\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, cut uint8) {
		defer memtest.Bound(t, len(text))()
		var a, b template
		whole := parseIn(text, len(text)+1, false, &a)
		pieces := parseIn(text, int(cut)+1, false, &b)
		again := parseIn(text, len(text)+1, false, &a)
		if whole != again {
			t.Fatalf("%+v at first, %+v with the template", whole, again)
		}
		// A malformed line may be recognized by its first bytes, or only once it is too long: the errors may differ.
		if (whole.err == nil) != (pieces.err == nil) || (whole.err == nil && whole != pieces) {
			t.Fatalf("whole: %+v\nin pieces: %+v", whole, pieces)
		}
		if theirs, ok := readHTTP(text); ok && whole.done && whole.err == nil &&
			theirs != (parsed{status: whole.status, body: whole.body}) {
			t.Fatalf("we read %+v, net/http %+v", whole, theirs)
		}
	})
}

func readHTTP(text []byte) (parsed, bool) {
	in := bufio.NewReader(bytes.NewReader(text))
	for {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return parsed{}, false
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode >= 200 {
			return parsed{status: r.StatusCode, body: string(body)}, err == nil || errors.Is(err, io.EOF)
		}
	}
}
