package webhook

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/internal/clock"
)

// mostBody bounds a review, in bytes. A review can hold an object twice; the API server stores objects of up to 1.5 MiB
// (limit of etcd requests), but sends up to 3 MiB each.
const mostBody = 8 << 20

// handler answers reviews and GET /counts.
type handler struct {
	clock   clock.Clock
	base    string // prefix of all paths; only the caller knows it
	latency time.Duration
	counts  *counter
	bodies  sync.Pool // of *bytes.Buffer
}

func newHandler(c clock.Clock, latency time.Duration) *handler {
	return &handler{
		clock: c, latency: latency, counts: newCounter(),
		bodies: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, h.base)
	if !ok { // another client, which must not change the counts either
		http.NotFound(w, r)
		return
	}
	if path == CountsPath {
		h.counts.serve(w, r)
		return
	}
	arrived := h.clock.Now()
	short, mutates, ok := policy(path)
	if !ok {
		h.counts.bad()
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		h.counts.bad()
		http.Error(w, "a review is POSTed", http.StatusMethodNotAllowed)
		return
	}
	req, code, err := h.read(w, r)
	if err != nil {
		h.counts.bad()
		http.Error(w, err.Error(), code)
		return
	}
	text, err := decide(req, short, mutates)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.counts.review(path, r.ProtoMajor)
	if h.latency > 0 {
		// Time already spent on the answer counts as part of the latency.
		if h.clock.Sleep(r.Context(), h.latency-h.clock.Now().Sub(arrived)) != nil {
			return // the caller has disconnected
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // an error means that the caller has disconnected
}

// read reads and parses the body; code is the status to answer an error with.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (req *request, code int, err error) {
	body, ok := h.bodies.Get().(*bytes.Buffer)
	if !ok {
		body = new(bytes.Buffer)
	}
	defer h.bodies.Put(body)
	body.Reset()
	if _, err := io.Copy(body, http.MaxBytesReader(w, r.Body, mostBody)); err != nil {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return nil, http.StatusRequestEntityTooLarge, err
		}
		return nil, http.StatusBadRequest, err
	}
	req, err = parse(body.Bytes()) // copies what it keeps
	return req, http.StatusBadRequest, err
}
