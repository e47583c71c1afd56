package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/clock"
)

// mostBody bounds a review, in bytes. A review can hold an object twice; the API server stores objects of up to 1.5 MiB
// (limit of etcd requests), but sends up to 3 MiB each.
const mostBody = 8 << 20

// handler answers reviews, GET /counts and POST /latency.
type handler struct {
	clock   clock.Clock
	base    string // prefix of all paths; only the caller knows it
	latency atomic.Pointer[Latency]
	workers chan struct{} // holds one value for each review that is worked on; nil: any number is
	counts  *counter
	bodies  sync.Pool // of *bytes.Buffer
}

func newHandler(c clock.Clock, latency Latency, workers int) *handler {
	h := &handler{clock: c, counts: newCounter(), bodies: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	h.latency.Store(&latency)
	if workers > 0 {
		h.workers = make(chan struct{}, workers)
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, h.base)
	if !ok { // another client, which must not change the counts either
		http.NotFound(w, r)
		return
	}
	switch path {
	case CountsPath:
		h.counts.serve(w, r)
		return
	case LatencyPath:
		h.setLatency(w, r)
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
	if !h.work(r.Context(), arrived) {
		return // the caller has disconnected
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // an error means that the caller has disconnected
}

// work waits for a worker, and takes it for the latency; time already spent on the answer counts as part of the latency
// where nobody waits. It reports whether the caller still waits.
func (h *handler) work(ctx context.Context, arrived time.Time) bool {
	if h.workers != nil {
		select {
		case h.workers <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		defer func() { <-h.workers }()
		arrived = h.clock.Now()
	}
	d := h.latency.Load().draw()
	return d <= 0 || h.clock.Sleep(ctx, d-h.clock.Now().Sub(arrived)) == nil
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
