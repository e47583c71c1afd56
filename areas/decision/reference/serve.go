package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tare/areas/decision/engine"
	"tare/internal/clock"
	"tare/internal/kit"
)

// serve loads what a decision point decides by, listens on cfg.Addr, says that it is ready, and answers until ctx ends.
// It returns ctx's error if that is why it ended.
func serve(ctx context.Context, c clock.Clock, name string, cfg engine.Config, ready func(engine.Ready) error,
	point func() (http.Handler, error),
) error {
	began := c.Now()
	h, err := point()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	loaded := c.Now().Sub(began)
	l, err := kit.Listen(ctx, cfg.Addr)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	grown := startLeak(c, cfg.Leak)
	err = kit.ServeHTTP(ctx, l, newServer(h), func() error {
		return ready(engine.Ready{Addr: l.Addr().String(), LoadSeconds: loaded.Seconds()})
	})
	return errors.Join(err, grown.stop())
}

// newServer bounds what a caller can make the process hold: headers, and the time for a request and for its answer. A
// connection may be idle for as long as a run can last: closing it would fail a call that is just being sent.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second,
		IdleTimeout: 48 * time.Hour, MaxHeaderBytes: 64 << 10,
	}
}
