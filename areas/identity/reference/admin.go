package reference

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
)

// Counters are what a server's /debug reports, since its start. Counters of the other server are zero.
type Counters struct {
	Requests    int64 `json:"requests"`
	InFlight    int64 `json:"in_flight"`
	Connections int64 `json:"connections"` // accepted and open
	Hits        int64 `json:"hits"`
	Misses      int64 `json:"misses"`    // requests that started a way through the STS
	Refreshes   int64 `json:"refreshes"` // renewals before expiry
	Asked       int64 `json:"asked"`     // at the STS: exchanges that were tried
	Exchanges   int64 `json:"exchanges"` // at the STS: well-formed and within the quota
	OverQuota   int64 `json:"over_quota"`
	Invalid     int64 `json:"invalid"` // exchanges with a bad token
	Dropped     int64 `json:"dropped"`
	Unavailable int64 `json:"unavailable"`
	Failed      int64 `json:"failed"`

	ThrottledPeriods int64 `json:"throttled_periods"` // of the throttle inside the process
	Periods          int64 `json:"periods"`

	Endpoint *EndpointKnobs `json:"endpoint,omitempty"` // the knobs in force
	STS      *STSKnobs      `json:"sts,omitempty"`
}

// servers are the HTTP servers of one process, which stop together.
type servers struct {
	list []*http.Server
	errs chan error
	n    int
}

// newServer makes an HTTP server whose requests live no longer than life. It logs nothing: what it could log are
// clients' mistakes.
func newServer(life context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return life },
	}
}

// adminHandler answers /healthz and /debug, and does what it is asked by POST: all of it below a path that only the
// parent is told, since every user of the host can connect.
func adminHandler(secret string, count func() Counters, does map[string]func(url.Values) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, "ok") })
	mux.HandleFunc("GET /debug", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, count()) })
	for name, do := range does {
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			if err := do(r.URL.Query()); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			writeText(w, "done")
		})
	}
	return http.StripPrefix("/"+secret, mux)
}

// newSecret makes what a caller has to know.
func newSecret() string { return rand.Text() }

// adminBase returns the address of an admin server with the path that its handler wants.
func adminBase(l net.Listener, secret string) string { return l.Addr().String() + "/" + secret }

// serve runs srv on l until shut.
func (s *servers) serve(srv *http.Server, l net.Listener) {
	if s.errs == nil {
		s.errs = make(chan error, 4)
	}
	s.list = append(s.list, srv)
	s.n++
	go func() { s.errs <- srv.Serve(l) }()
}

// wait returns when ctx ends, or with the error of the first server that fails.
func (s *servers) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.errs:
		s.n--
		return err
	}
}

// shut closes all connections and waits for the servers.
func (s *servers) shut() error {
	var errs []error
	for _, srv := range s.list {
		errs = append(errs, srv.Close())
	}
	for ; s.n > 0; s.n-- {
		if err := <-s.errs; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
