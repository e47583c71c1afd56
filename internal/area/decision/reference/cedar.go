// Package reference holds the decision points that are in tare's own binary: Cedar behind AuthZEN, and a reference of
// ONAP's decision API.
package reference

import (
	"context"
	"fmt"
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

// RunCedar serves AuthZEN's Authorization API 1.0 on cfg.Addr with the Cedar policies in cfg.File, until ctx ends.
// ready is called once, when it answers. It returns ctx's error if that is why it ended.
func RunCedar(ctx context.Context, cfg engine.Config, ready func(engine.Ready) error) error {
	c := clock.System{}
	return serve(ctx, c, "cedar", cfg, ready, func() (http.Handler, error) {
		d, err := newCedar(c, cfg)
		if err != nil {
			return nil, err
		}
		return d.handler(), nil
	})
}

// A cedarPoint is a decision point: policies, and what was planted in it.
type cedarPoint struct {
	policies *cedar.PolicySet
	// scopes are the same policies without their conditions, only for the fault "not-applicable-as-permit": what matches
	// none of them is a request that no policy is about.
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
		return nil, fmt.Errorf("planted answer %q is not one of %s, %s, %s", cfg.Answer, alwaysPermit, notApplicableAsPermit,
			indeterminate)
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
