package reference

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"tare/areas/decision/engine"
	"tare/internal/clock"
)

// pdpxBase is where ONAP's policy decision point has its API.
const pdpxBase = "/policy/pdpx/v1"

// RunPDPX serves ONAP's decision API (policy/xacml-pdp: /policy/pdpx/v1) on cfg.Addr until ctx ends, with cfg.N
// monitoring policies, a min/max guard policy and two frequency limiters, as model describes them. ready is called
// once, when it answers. It returns ctx's error if that is why it ended.
//
// It answers as ONAP's does, the trap included: a guard request that no policy is about counts as NotApplicable and is
// answered {"status":"Permit"}. Planted faults: "always-permit" permits without looking; "not-applicable-as-permit" has
// no guard policies at all, so that every guard request falls into that trap, as in the published test, or has them
// undeployed after cfg.AnswerAfter; "indeterminate"
// counts Indeterminate, which a guard answers with Permit and monitoring with an error and its message. During
// cfg.Delay decisions are answered 409 with an empty body, as long as policies are being loaded; healthcheck and
// statistics are not.
func RunPDPX(ctx context.Context, cfg engine.Config, ready func(engine.Ready) error) error {
	c := clock.System{}
	return serve(ctx, c, "pdpx", cfg, ready, func() (http.Handler, error) {
		p, err := newPDPX(c, cfg)
		if err != nil {
			return nil, err
		}
		return managed(p.handler(), cfg.Admin, engine.ReloadPath, p.reload), nil
	})
}

// A pdpx is a decision point: applications by action, and what was planted in it.
type pdpx struct {
	name               string // of this instance, as healthcheck says it
	username, password string
	monitoring, guard  *application
	undeployed         *application                // guard without its policies
	replaced           atomic.Pointer[application] // what took the place of guard; nil: nothing yet
	history            *history
	gap                time.Duration // planted: how long there are no guard policies whenever they are replaced
	answer             string        // planted
	plantedAt          time.Time     // when that begins
	readyAt            time.Time     // until then decisions are answered 409
	clock              clock.Clock
	counts             pdpxCounts
}

func newPDPX(c clock.Clock, cfg engine.Config) (*pdpx, error) {
	switch cfg.Answer {
	case "", alwaysPermit, notApplicableAsPermit, indeterminate:
	default:
		return nil, fmt.Errorf("planted answer %q is not one of %s, %s, %s", cfg.Answer, alwaysPermit, notApplicableAsPermit,
			indeterminate)
	}
	if cfg.N < 0 {
		return nil, fmt.Errorf("%d monitoring policies: give 0 or more", cfg.N)
	}
	monitoring, err := newMonitoring(cfg.N)
	if err != nil {
		return nil, err
	}
	now, h := c.Now(), newHistory(c)
	p := &pdpx{
		history: h, gap: seconds(cfg.Gap),
		name: "xacml-" + newUUID(), username: cfg.Username, password: cfg.Password, answer: cfg.Answer, clock: c,
		readyAt:    now.Add(time.Duration(cfg.Delay * float64(time.Second))),
		plantedAt:  now.Add(time.Duration(cfg.AnswerAfter * float64(time.Second))),
		monitoring: monitoring, guard: newGuard(h, true), undeployed: newGuard(nil, false),
	}
	return p, nil
}

// planted returns the planted answer if its time has come.
func (p *pdpx) planted() string {
	if p.answer == "" || p.clock.Now().Before(p.plantedAt) {
		return ""
	}
	return p.answer
}

// guards returns the guard policies that are in force.
func (p *pdpx) guards() *application {
	if p.planted() == notApplicableAsPermit {
		return p.undeployed
	}
	if a := p.replaced.Load(); a != nil {
		return a
	}
	return p.guard
}

// reload replaces the guard policies by the same ones. While there are none, every guard request is NotApplicable, and
// answered with Permit.
func (p *pdpx) reload(ctx context.Context) (err error) {
	if p.gap > 0 {
		p.replaced.Store(p.undeployed)
		err = p.clock.Sleep(ctx, p.gap)
	}
	p.replaced.Store(newGuard(p.history, true))
	return err
}

// policies returns how many policies are deployed.
func (p *pdpx) policies() int { return len(p.monitoring.policies) + len(p.guards().policies) }

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: crypto/rand ends the process instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
