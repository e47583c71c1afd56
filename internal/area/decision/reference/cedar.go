// Package reference holds the decision points that are in tare's own binary: Cedar behind AuthZEN, and a reference of ONAP's decision API.
package reference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/cedar-policy/cedar-go"

	"tare/internal/area/decision/engine"
	"tare/internal/clock"
)

// The paths of AuthZEN's Authorization API 1.0.
const (
	evaluationPath  = "/access/v1/evaluation"
	evaluationsPath = "/access/v1/evaluations"
	metadataPath    = "/.well-known/authzen-configuration"
)

// shutWithin bounds how long answers that are under way at the end are waited for.
const shutWithin = 2 * time.Second

// RunCedar serves AuthZEN's Authorization API 1.0 on cfg.Addr with the Cedar policies in cfg.File, until ctx ends. ready is called once, when it
// answers. It returns ctx's error if that is why it ended.
func RunCedar(ctx context.Context, cfg engine.Config, ready func(engine.Ready) error) error {
	return runCedar(ctx, clock.System{}, cfg, ready)
}

func runCedar(ctx context.Context, c clock.Clock, cfg engine.Config, ready func(engine.Ready) error) error {
	began := c.Now()
	d, err := newCedar(c, cfg)
	if err != nil {
		return fmt.Errorf("cedar: %w", err)
	}
	loaded := c.Now().Sub(began)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("cedar: %w", err)
	}
	grown := startCedarLeak(c, cfg.Leak)
	srv := newCedarServer(d)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	err = ready(engine.Ready{Addr: l.Addr().String(), LoadSeconds: loaded.Seconds()})
	if err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case err = <-served:
			served <- err
		}
	}
	return errors.Join(err, shutCedar(srv, served), grown.stop())
}

// newCedarServer bounds what a caller can make the process hold: headers, and the time for a request and for its answer. A connection may be
// idle for as long as a run can last: closing it would fail a call that is just being sent.
func newCedarServer(d *cedarPoint) *http.Server {
	return &http.Server{
		Handler: d.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second,
		IdleTimeout: 48 * time.Hour, MaxHeaderBytes: 64 << 10,
	}
}

// shutCedar lets answers under way be finished and then waits for the server's goroutine.
func shutCedar(srv *http.Server, served <-chan error) error {
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

// A cedarPoint is a decision point: policies, and what was planted in it.
type cedarPoint struct {
	policies *cedar.PolicySet
	// scopes are the same policies without their conditions, only for the fault "not-applicable-as-permit": what matches none of
	// them is a request that no policy is about.
	scopes *cedar.PolicySet
	answer string
	// readyAt is when it stops answering 503.
	readyAt time.Time
	clock   clock.Clock
	counts  cedarCounts
}

// The faults that Config.Answer can plant.
const (
	alwaysPermit          = "always-permit"
	notApplicableAsPermit = "not-applicable-as-permit"
	indeterminate         = "indeterminate"
)

func newCedar(c clock.Clock, cfg engine.Config) (*cedarPoint, error) {
	d := &cedarPoint{answer: cfg.Answer, clock: c, readyAt: c.Now().Add(time.Duration(cfg.Delay * float64(time.Second)))}
	switch cfg.Answer {
	case "", alwaysPermit, notApplicableAsPermit, indeterminate:
	default:
		return nil, fmt.Errorf("planted answer %q is none of %s, %s, %s", cfg.Answer, alwaysPermit, notApplicableAsPermit, indeterminate)
	}
	text, err := os.ReadFile(cfg.File)
	if err != nil {
		return nil, fmt.Errorf("load policies of %s: %w", cfg.File, err)
	}
	if d.policies, err = cedar.NewPolicySetFromBytes(cfg.File, text); err != nil {
		return nil, fmt.Errorf("load policies of %s: %w", cfg.File, err)
	}
	if cfg.Answer == notApplicableAsPermit {
		d.scopes = withoutConditions(d.policies)
	}
	return d, nil
}

func withoutConditions(all *cedar.PolicySet) *cedar.PolicySet {
	out := cedar.NewPolicySet()
	for id, p := range all.All() {
		scope := *p.AST()
		scope.Conditions = nil
		out.Add(id, cedar.NewPolicyFromAST(&scope))
	}
	return out
}
