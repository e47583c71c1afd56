package kit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// shutWithin bounds how long ServeHTTP waits at the end for requests in flight.
const shutWithin = 2 * time.Second

// ServeHTTP serves srv on l, with TLS if it has a configuration, until ctx ends; then it waits for requests in flight.
// It calls ready once it serves. It returns why it ended, which may be ctx's error.
func ServeHTTP(ctx context.Context, l net.Listener, srv *http.Server, ready func() error) error {
	served := make(chan error, 1)
	go func() {
		if srv.TLSConfig != nil {
			served <- srv.ServeTLS(l, "", "")
			return
		}
		served <- srv.Serve(l)
	}()
	err := ready()
	if err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case err = <-served:
			served <- err
		}
	}
	return errors.Join(err, shut(srv, served))
}

// shut waits for requests in flight and then for the server's goroutine.
func shut(srv *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutWithin)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
