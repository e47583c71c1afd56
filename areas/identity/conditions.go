package identity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/proc"
)

const (
	// conditionRotate is the condition that the token service's keys are replaced.
	conditionRotate = "rotate"
	// starvedTo is what is left of the endpoint's CPU limit, at least leastShare of a CPU.
	starvedTo, leastShare = 0.1, 0.01
	// leverFactor is by how much the endpoint's CPU limit is raised to try whether it sets the rate.
	leverFactor = 2
	// slowBy is how much longer each of the two hops behind the endpoint takes.
	slowBy = time.Second
	// longestStale bounds the life of tokens for which it is waited until the endpoint gives a withdrawn one no more.
	longestStale = 30 * time.Second
	// staleEvery is the pause before each of the staleOnes that were withdrawn is asked for again, staleWithin bounds one
	// answer, and staleBeyond is how long they are asked for beyond their life.
	staleEvery  = 20 * time.Millisecond
	staleOnes   = 5
	staleWithin = time.Second
	staleBeyond = 2 * time.Second
)

// Conditions is area.Says.Conditions: what can be done to the embedded endpoint and to the token service behind it.
func (s *Spec) Conditions() []string {
	if s.URL != "" {
		return nil
	}
	return []string{
		area.Restart, area.ColdStart, area.Starved, area.Slow, area.Partition, area.Revoke,
		conditionRotate,
	}
}

// Conditions is area.Can.Conditions.
func (t *target) Conditions(tr design.Treatment) []area.Condition {
	p, err := t.arms.Of(tr)
	if err != nil || p.url != nil {
		return nil
	}
	out := []area.Condition{{
		Name: area.Restart, Does: "the endpoint's process is ended, and started again",
		Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, p.reboot(ctx) },
	}}
	if p.knobs.Cache {
		out = append(out, area.Condition{
			Name: area.ColdStart, Does: "the endpoint's cache is emptied",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, p.flush(ctx) },
		})
	}
	if p.group != nil {
		out = append(out, area.Condition{
			Name: area.Starved, Does: fmt.Sprintf("the endpoint gets %.3g of a CPU instead of %.3g", p.starved().Share,
				p.knobs.CPUQuota), Impose: p.starve,
		})
	}
	out = append(out,
		area.Condition{
			Name: area.Slow, Does: fmt.Sprintf("each hop behind the endpoint takes %v longer", slowBy), Impose: p.slow,
		},
		area.Condition{
			Name: area.Partition, Does: "the token service behind the endpoint is stopped, and answers nobody",
			Impose: p.part,
		})
	return append(out, p.withdrawals()...)
}

// withdrawals are conditions under which tokens are good no more. They are offered where tokens do not outlive the wait
// for the endpoint to notice.
func (p *arm) withdrawals() []area.Condition {
	hold := staleBeyond
	if p.knobs.Cache {
		hold += p.knobs.TTL
	}
	if hold > longestStale+staleBeyond || len(p.spec.Callers) > 0 || p.identities+2*staleOnes > maxIdentities {
		return nil
	}
	revoke := &stale{p: p, from: p.identities, withdraw: p.revoke, restore: func(ctx context.Context) error {
		return p.child(serverSTS).admin.Restore(ctx)
	}}
	rotate := &stale{
		p: p, from: p.identities + staleOnes, void: true,
		withdraw: func(ctx context.Context) error { return p.child(serverSTS).admin.Rotate(ctx) },
	}
	return []area.Condition{
		{
			Name: area.Revoke, Hold: hold, Impose: revoke.impose, Figures: revoke.figures,
			Does: fmt.Sprintf("%d workloads beside those of the load lose the right to a token", staleOnes),
		},
		{
			Name: conditionRotate, Hold: hold, Impose: rotate.impose, Figures: rotate.figures,
			Does: "the token service gets new keys: tokens of the old ones are good no more",
		},
	}
}

func (p *arm) starved() proc.Quota {
	return proc.Quota{Share: max(leastShare, p.knobs.CPUQuota*starvedTo)}
}

// starve cuts the limit of the endpoint's control group.
func (p *arm) starve(context.Context) (func(context.Context) error, error) {
	lift := func(context.Context) error { return p.group.SetQuota(proc.Quota{Share: p.knobs.CPUQuota}) }
	return lift, p.group.SetQuota(p.starved())
}

// Levers is area.Can.Levers: the CPU limit of the endpoint's control group is doubled where the endpoint can use that.
func (t *target) Levers(tr design.Treatment) []area.Lever {
	p, err := t.arms.Of(tr)
	if err != nil || p.url != nil || p.group == nil {
		return nil
	}
	from, to := proc.Quota{Share: p.knobs.CPUQuota}, proc.Quota{Share: leverFactor * p.knobs.CPUQuota}
	if to.Share > float64(min(p.child(serverEndpoint).ready.Procs, runtime.NumCPU())) {
		return nil
	}
	return []area.Lever{{
		Limit: "cpu-quota", From: cpuText(from), To: cpuText(to), Factor: leverFactor,
		Move: func(context.Context) (func(context.Context) error, error) {
			if err := p.group.SetQuota(to); err != nil {
				return nil, errors.Join(err, p.group.SetQuota(from))
			}
			return func(context.Context) error { return p.group.SetQuota(from) }, nil
		},
	}}
}

// cpuText returns a quota as it is written in a file.
func cpuText(q proc.Quota) string {
	text, _ := CPU(q.Share).MarshalText() // it never fails
	return string(text)
}

// slow makes the hops behind the endpoint take longer.
func (p *arm) slow(ctx context.Context) (func(context.Context) error, error) {
	admin := p.child(serverSTS).admin
	return func(ctx context.Context) error { return admin.Slow(ctx, 0) }, admin.Slow(ctx, slowBy)
}

// part stops the token service. Should tare end meanwhile, undo kills it as any other process of the run.
func (p *arm) part(ctx context.Context) (func(context.Context) error, error) {
	return p.child(serverSTS).Freeze(ctx)
}

// revoke takes the right to a token from the workloads that stale asks for.
func (p *arm) revoke(ctx context.Context) error {
	var errs []error
	for key := range staleOnes {
		errs = append(errs, p.child(serverSTS).admin.Revoke(ctx, reference.WorkloadOf(sourceOf(p.identities+key))))
	}
	return errors.Join(errs...)
}

// stale watches how long the endpoint gives tokens that were withdrawn. It asks as workloads that the load has not, so
// that no call of the load is refused for it.
type stale struct {
	p        *arm
	from     int // the first of the workloads
	withdraw func(context.Context) error
	restore  func(context.Context) error // nil: there is nothing to restore
	void     bool                        // the endpoint may give tokens, but no void ones

	mu    sync.Mutex
	found []area.Span // from the withdrawal to the last withdrawn token
}

// impose obtains a token for each workload, at different times of a token's life, and withdraws them.
func (x *stale) impose(ctx context.Context) (func(context.Context) error, error) {
	for key := range staleOnes {
		if _, err := x.token(ctx, x.from+key); err != nil {
			return nil, fmt.Errorf("obtain a token to withdraw: %w", err)
		}
		if x.p.knobs.Cache {
			if err := x.p.env.Clock.Sleep(ctx, x.p.knobs.TTL/(2*staleOnes)); err != nil {
				return nil, err
			}
		}
	}
	if err := x.withdraw(ctx); err != nil {
		return nil, errors.Join(err, x.lift(context.WithoutCancel(ctx)))
	}
	since := x.p.env.Clock.Now()
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for key := range staleOnes {
		wg.Go(func() { x.follow(watch, x.from+key, since) })
	}
	return func(ctx context.Context) error {
		stop()
		wg.Wait()
		return x.lift(ctx)
	}, nil
}

func (x *stale) lift(ctx context.Context) error {
	if x.restore == nil {
		return nil
	}
	return x.restore(ctx)
}

// follow asks for one workload's token until ctx ends.
func (x *stale) follow(ctx context.Context, key int, since time.Time) {
	span := area.Span{Most: math.Inf(1)}
	for ctx.Err() == nil {
		asked := x.p.env.Clock.Now().Sub(since).Seconds()
		bad, err := x.given(ctx, key)
		switch {
		case err != nil: // an endpoint that does not answer gives nothing, and has not refused
		case bad:
			span = area.Span{Least: asked, Most: math.Inf(1)}
		default:
			span.Most = min(span.Most, x.p.env.Clock.Now().Sub(since).Seconds())
		}
		_ = x.p.env.Clock.Sleep(ctx, staleEvery) // it ends with ctx
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.found = append(x.found, span)
}

// given reports whether the endpoint gives a token that was withdrawn.
func (x *stale) given(ctx context.Context, key int) (bool, error) {
	token, err := x.token(ctx, key)
	if err != nil || !x.void {
		return token != "", err
	}
	asker := x.p.exchanger()
	defer asker.Close()
	_, err = asker.Email(ctx, token)
	if refused, ok := errors.AsType[*reference.UpstreamError](err); ok && refused.Status == http.StatusBadRequest {
		return true, nil
	}
	return false, err
}

// token asks for the access token of a workload; empty: it was refused.
func (x *stale) token(ctx context.Context, key int) (string, error) {
	s := x.p.session("stale")
	s.operation, s.emails = opToken, make([]string, key+1)
	s.account = accountDefault
	got, err := x.p.client(key).Do(ctx, gceAsk(s, key), staleWithin)
	if err != nil {
		return "", err
	}
	if got.Status == http.StatusForbidden {
		return "", nil
	}
	token, v := accessToken(got.Body)
	if got.Status != http.StatusOK || v != noCause {
		return "", fmt.Errorf("status %d without a token", got.Status)
	}
	return string(token), nil
}

// figures returns how long withdrawn tokens were given.
func (x *stale) figures() map[string][]area.Span {
	x.mu.Lock()
	defer x.mu.Unlock()
	return map[string][]area.Span{metric.Revoke.Name: x.found}
}
