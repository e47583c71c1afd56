package cluster

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// An extent is how much an answer holds: bytes, and in JSON values and those of them that are elements of arrays. Bytes
// alone bound no memory: "{}," as an element of a list of pods takes 4 kB, and as a member of an object 300 bytes.
type extent struct{ bytes, values, elements int }

var (
	// mostListed is for answers to lists, and for metrics: a page of 500 objects is a tenth of it. Decoded, it takes
	// up to 300 MiB.
	mostListed = extent{bytes: 64 << 20, values: 1 << 20, elements: 1 << 16}
	// mostAnswered is for other answers, of which 32 may arrive at once: the largest objects are a tenth of it.
	mostAnswered = extent{bytes: 8 << 20, values: 1 << 17, elements: 1 << 16}
)

// mostEvent is for an event of a watch. The pods that are watched are tare's own, with what policies add to them: a
// hundredth of it.
var mostEvent = extent{bytes: 256 << 10, values: 1 << 17, elements: 1 << 16}

// protobuf is the format of watches. In other answers it is not asked for: its values can only be counted by one who
// knows what they are.
const protobuf = "application/vnd.kubernetes.protobuf"

// asksText reports whether a request asks for text, which nobody decodes: metrics.
func asksText(r *http.Request) bool { return r.Header.Get("Accept") == textType }

const (
	textType = "text/plain"
	jsonType = "application/json"
)

func watches(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// askCountable returns the request without protobuf among what it accepts, unless it is a watch.
func askCountable(r *http.Request) *http.Request {
	if watches(r) || !strings.Contains(r.Header.Get("Accept"), protobuf) {
		return r
	}
	r = r.Clone(r.Context())
	accepted := slices.DeleteFunc(strings.Split(r.Header.Get("Accept"), ","),
		func(form string) bool { return strings.HasPrefix(strings.TrimSpace(form), protobuf) })
	r.Header.Set("Accept", strings.Join(accepted, ","))
	return r
}

// bound bounds the answer to a request. What is not text, or a watch in protobuf, is to be read as JSON, whatever the
// server calls it.
func bound(r *http.Request, res *http.Response) {
	form, stream := res.Header.Get("Content-Type"), watches(r) && res.StatusCode == http.StatusOK
	if stream && strings.HasPrefix(form, protobuf) {
		res.Body = &frames{ReadCloser: res.Body}
		return
	}
	if !strings.HasPrefix(form, "text/") {
		res.Header.Set("Content-Type", jsonType)
	}
	b := &bounded{ReadCloser: res.Body, most: mostAnswered, counts: !asksText(r), stream: stream}
	switch {
	case stream:
		b.most = mostEvent
	case r.URL.Query().Has("limit"), asksText(r):
		b.most = mostListed
	}
	res.Body = b
}

var errLongEvent = fmt.Errorf("an event of the server's watch is longer than %d KiB", mostEvent.bytes>>10)

// bounded ends answers that hold too much.
type bounded struct {
	io.ReadCloser
	most, is extent
	counts   bool
	stream   bool // of documents, each of which may hold so much

	open            []byte // the brackets that are open
	quoted, escaped bool   // within a string, after a backslash
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 32<<10)]) // a long document does not begin and end within one
	b.is.bytes += n
	if b.counts {
		b.count(p[:n])
	}
	switch {
	case b.is.bytes > b.most.bytes && b.stream:
		return 0, errLongEvent
	case b.is.bytes > b.most.bytes:
		return 0, fmt.Errorf("the server's answer is longer than %d MiB", b.most.bytes>>20)
	case b.is.values > b.most.values || b.is.elements > b.most.elements:
		return 0, fmt.Errorf("the server's answer holds more than %d values, or %d in arrays", b.most.values,
			b.most.elements)
	}
	return n, err
}

// count counts the values of JSON, or a few more: one for each bracket that opens, and for each comma. What is no JSON
// is not decoded.
func (b *bounded) count(text []byte) {
	for i, c := range text {
		switch {
		case b.escaped:
			b.escaped = false
		case b.quoted:
			b.escaped, b.quoted = c == '\\', c != '"'
		case c == '"':
			b.quoted = true
		case c == '{', c == '[':
			b.open = append(b.open, c)
			b.value()
		case c == ',':
			b.value()
		case (c == '}' || c == ']') && len(b.open) > 0:
			if b.open = b.open[:len(b.open)-1]; b.stream && len(b.open) == 0 {
				b.is = extent{bytes: len(text) - i - 1}
			}
		}
	}
}

func (b *bounded) value() {
	b.is.values++
	if n := len(b.open); n > 0 && b.open[n-1] == '[' {
		b.is.elements++
	}
}

// frames ends watches with an event that is too long. Each is preceded by its length, in four bytes.
type frames struct {
	io.ReadCloser
	head   uint32 // of the next event, as far as it was read
	digits int
	left   int // of the event
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	for at := 0; at < n; {
		if f.left > 0 {
			part := min(f.left, n-at)
			f.left, at = f.left-part, at+part
			continue
		}
		f.head = f.head<<8 | uint32(p[at])
		at++
		if f.digits++; f.digits < 4 {
			continue
		}
		if int64(f.head) > int64(mostEvent.bytes) {
			return 0, errLongEvent
		}
		f.left, f.head, f.digits = int(f.head), 0, 0
	}
	return n, err
}
