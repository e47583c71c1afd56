package toy

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"tare/internal/kit"
)

const (
	serverName = "server"
	// slower is the path that says how much longer a call takes from now on: "/slower/20ms".
	slower = "/slower/"
)

// serverConfig says how long a call takes.
type serverConfig struct{ Takes time.Duration }

// serve runs the toy's own server on loopback.
func serve(ctx context.Context, config json.RawMessage, ready func(any) error) error {
	var c serverConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: Server(c.Takes), ReadHeaderTimeout: time.Second}
	return kit.ServeHTTP(ctx, l, srv, func() error { return ready("http://" + l.Addr().String()) })
}

// Server returns a server of the protocol: it answers whoever has the right, after a time.
func Server(takes time.Duration) http.Handler {
	var longer atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+slower+"{by}", func(w http.ResponseWriter, r *http.Request) {
		by, err := time.ParseDuration(r.PathValue("by"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		longer.Store(int64(by))
	})
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(takes + time.Duration(longer.Load()))
		if r.Header.Get("X-Right") == "no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"toy":"1"}`)) // the caller may be gone
	})
	return mux
}
