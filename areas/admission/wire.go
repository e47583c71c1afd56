package admission

import (
	"strconv"
	"sync/atomic"

	"tare/internal/load"
)

// A wire is one operation as requests that are rendered in advance. Its methods do not allocate.
type wire struct {
	// numbered are the requests; call n uses number n modulo their count. Marks in it become n, which is unique: the
	// engine's own numbers repeat with the fresh calls of a search.
	numbered []request
	caller   *caller
	next     *atomic.Uint64
	judge    judge
}

var (
	_ load.Wire = (*wire)(nil)
	_ load.Wire = (*wire)(nil)
)

// A request is the part before and the part after the caller's credentials.
type request struct{ line, rest *load.Template }

// A caller holds the headers that identify the caller, which may change while calls are made.
type caller struct{ headers atomic.Pointer[[]byte] }

func (c *caller) set(headers []byte) { c.headers.Store(&headers) }

// ConnKey implements load.Wire: all connections belong to the same caller.
func (*wire) ConnKey(uint64) int { return 0 }

// Render implements load.Wire.
func (w *wire) Render(dst []byte, _ uint64) []byte {
	if len(w.numbered) == 0 {
		return dst // no request: the engine reports it
	}
	n := w.next.Add(1) - 1
	r := &w.numbered[n%uint64(len(w.numbered))]
	dst = r.line.AppendTo(dst, n)
	if h := w.caller.headers.Load(); h != nil {
		dst = append(dst, *h...)
	}
	return r.rest.AppendTo(dst, n)
}

// Check implements load.Wire.
func (w *wire) Check(_ uint64, status int, body []byte) load.Outcome {
	o, _ := w.judge.answer(status, body)
	return o
}

// Explain implements load.Wire, with the indexes of causes.
func (w *wire) Explain(_ uint64, status int, body []byte) int {
	_, why := w.judge.answer(status, body)
	return int(why)
}

// newRequest renders a request without the caller's headers. A mark in path or body becomes the call's number.
func newRequest(method, path, host, contentType string, body []byte) request {
	line := method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n"
	rest := "User-Agent: tare\r\nAccept: application/json\r\n"
	if contentType != "" {
		rest += "Content-Type: " + contentType + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	rest += "\r\n"
	return request{line: load.NewTemplate([]byte(line)), rest: load.NewTemplate(append([]byte(rest), body...))}
}

// serial returns how number n is written in place of a mark.
func serial(n uint64) string {
	return string(load.NewTemplate([]byte(load.CallMark)).AppendTo(nil, n))
}
