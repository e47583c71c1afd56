package reference

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"tare/areas/decision/engine"
	"tare/internal/clock"
)

// upstreamConns bounds the idle connections that an enforcement point keeps to its decision point.
const upstreamConns = 4096

// RunEnforcer serves an enforcement point on cfg.Addr until ctx ends: as Envoy's external authorization over HTTP it
// hands each question to the decision point at cfg.Upstream and its answer back. With a cfg.Path it hands on what is
// posted there and nothing else: other users of the host can connect to it, and the decision point takes it for tare.
// Where the answer takes longer than cfg.Within, cannot be had, or is a server error (5xx), it gives cfg.Fallback with
// status 200 instead: what Envoy's failure_mode_allow decides. From a POST to engine.SlowPath until one to
// engine.PromptPath it holds each answer of the decision point back.
func RunEnforcer(ctx context.Context, cfg engine.Config, ready func(engine.Ready) error) error {
	secure, err := cfg.Pair.TLS()
	if err != nil {
		return fmt.Errorf("enforcer: %w", err)
	}
	upstream := "http://" + cfg.Upstream
	if secure != nil {
		upstream = "https://" + cfg.Upstream
	}
	transport := &http.Transport{
		MaxIdleConns: upstreamConns, MaxIdleConnsPerHost: upstreamConns, DisableCompression: true, TLSClientConfig: secure,
	}
	defer transport.CloseIdleConnections()
	e := &enforcer{
		upstream: upstream, question: cfg.Path, within: seconds(cfg.Within), fallback: []byte(cfg.Fallback),
		client: http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
	slow := func(on bool) func(context.Context) error {
		return func(context.Context) error { e.slow.Store(on); return nil }
	}
	h := managed(managed(e, cfg.Admin, engine.SlowPath, slow(true)), cfg.Admin, engine.PromptPath, slow(false))
	return serve(ctx, clock.System{}, "enforcer", cfg, ready, func() (http.Handler, error) { return h, nil })
}

type enforcer struct {
	upstream string
	question string // the path of the only one that is handed on; empty: any is
	within   time.Duration
	fallback []byte
	client   http.Client
	slow     atomic.Bool
	held     atomic.Uint64 // answers that were held back
}

// hold keeps an answer back while the enforcement point is slow: for up to twice the time that it waits, spread evenly
// over the answers. The error is that of ctx.
func (e *enforcer) hold(ctx context.Context) error {
	if !e.slow.Load() {
		return nil
	}
	_, part := math.Modf(float64(e.held.Add(1)) * (math.Phi - 1))
	return clock.System{}.Sleep(ctx, time.Duration(2*part*float64(e.within)))
}

// ServeHTTP implements http.Handler.
func (e *enforcer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.question != "" && (r.Method != http.MethodPost || r.RequestURI != e.question) {
		http.Error(w, "tare hands on the question of its run only", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status, media, answer := e.ask(r, body)
	if status == 0 || status >= http.StatusInternalServerError {
		status, media, answer = http.StatusOK, r.Header.Get("Accept"), e.fallback
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(answer) // a caller that has gone away is its own concern
}

// ask hands a question to the decision point; status 0: there is no answer in time.
func (e *enforcer) ask(r *http.Request, body []byte) (status int, media string, answer []byte) {
	ctx, cancel := context.WithTimeout(r.Context(), e.within)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, r.Method, e.upstream+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return 0, "", nil
	}
	out.Header = r.Header.Clone()
	resp, err := e.client.Do(out)
	if err != nil {
		return 0, "", nil
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	if answer, err = io.ReadAll(resp.Body); err != nil || e.hold(ctx) != nil {
		return 0, "", nil
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), answer
}
