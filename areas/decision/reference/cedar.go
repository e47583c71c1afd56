// Package reference holds the decision points that are in tare's own binary: Cedar behind AuthZEN, and a reference of
// ONAP's decision API.
package reference

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/cedar-policy/cedar-go"

	"tare/areas/decision/cedarset"
	"tare/areas/decision/engine"
	"tare/areas/decision/replica"
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
		return managed(d.handler(), cfg.Admin, engine.ReloadPath, d.reload), nil
	})
}

// A cedarPoint is a decision point: policies, and what was planted in it.
type cedarPoint struct {
	file     string
	data     *replica.Data // how often the entities are there; nil: once
	policies atomic.Pointer[cedarPolicies]
	cache    *cache        // planted; nil: none
	gap      time.Duration // planted: how long it has no policies whenever they are replaced
	answer   string
	// readyAt is when it stops answering 503.
	readyAt time.Time
	clock   clock.Clock
	counts  cedarCounts
}

// cedarPolicies are what decides.
type cedarPolicies struct {
	*cedarset.Set
	// scopes are the same policies without their conditions, only for the fault "not-applicable-as-permit": what matches
	// none of them is a request that no policy is about.
	scopes *cedar.PolicySet
}

// The faults that Config.Answer can plant.
const (
	alwaysPermit          = "always-permit"
	notApplicableAsPermit = "not-applicable-as-permit"
	indeterminate         = "indeterminate"
)

func newCedar(c clock.Clock, cfg engine.Config) (*cedarPoint, error) {
	d := &cedarPoint{
		file: cfg.File, data: cfg.Data, answer: cfg.Answer, clock: c, readyAt: c.Now().Add(seconds(cfg.Delay)),
		cache: newCache(c, seconds(cfg.Cache)), gap: seconds(cfg.Gap),
	}
	switch cfg.Answer {
	case "", alwaysPermit, notApplicableAsPermit, indeterminate:
	default:
		return nil, fmt.Errorf("planted answer %q is not one of %s, %s, %s", cfg.Answer, alwaysPermit, notApplicableAsPermit,
			indeterminate)
	}
	p, err := d.load()
	d.policies.Store(p)
	return d, err
}

// seconds returns a duration of a Config.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// load reads the policies.
func (d *cedarPoint) load() (*cedarPolicies, error) {
	set, err := cedarset.Read(d.file)
	if err != nil {
		return nil, fmt.Errorf("load policies: %w", err)
	}
	if d.data.Grows() {
		if err := set.Replicate(d.data); err != nil {
			return nil, fmt.Errorf("copy entities: %w", err)
		}
	}
	p := &cedarPolicies{Set: set}
	if d.answer == notApplicableAsPermit {
		p.scopes = withoutConditions(p.Policies)
	}
	return p, nil
}

// reload replaces the policies by those that its file holds now.
func (d *cedarPoint) reload(ctx context.Context) error {
	p, err := d.load()
	if err != nil {
		return err
	}
	if d.gap > 0 {
		none := cedar.NewPolicySet()
		d.policies.Store(&cedarPolicies{&cedarset.Set{Policies: none}, none})
		err = d.clock.Sleep(ctx, d.gap)
	}
	d.policies.Store(p)
	return err
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
