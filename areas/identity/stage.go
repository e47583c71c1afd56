package identity

import (
	"context"
	"fmt"

	"tare/area"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
)

// Stages is area.Says.Stages: tare cannot empty the cache of an endpoint behind a URL, but it can fill it.
func (s *Spec) Stages() []area.Stage {
	if s.URL != "" {
		return []area.Stage{area.Warm}
	}
	return []area.Stage{area.Warm, area.Cold, area.Renewed, area.Rebooted}
}

// Stage is area.Can.Stage.
func (t *target) Stage(ctx context.Context, tr design.Treatment, s area.Stage) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.staged = true
	t.mu.Unlock()
	if s != area.Warm && p.url != nil {
		return fmt.Errorf("the endpoint behind %s cannot be made %q", p.url.Host, s)
	}
	switch s {
	case area.Warm:
		return p.warm(ctx)
	case area.Cold:
		return p.flush(ctx)
	case area.Renewed:
		if err := p.flush(ctx); err != nil {
			return err
		}
		return p.warm(ctx)
	case area.Rebooted:
		return p.reboot(ctx)
	}
	return fmt.Errorf("an endpoint has no stage %q", s)
}

func (p *arm) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.child(serverEndpoint).admin.Flush(ctx)
}

// reboot replaces the endpoint. The stand-in for the kubelet must not do so at the same time.
func (p *arm) reboot(ctx context.Context) error {
	return p.paused(func() error { return p.restart(ctx) })
}

// paused lets do replace the endpoint while nobody watches whether it lives.
func (p *arm) paused(do func() error) error {
	if p.stopWatch != nil {
		p.stopWatch()
		defer p.watch()
	}
	return do()
}

// counts is what the embedded servers count themselves. Those of an endpoint that was started anew begin at 0, so that
// their difference is unknown; the STS lives on.
type counts struct{ p *arm }

var _ probe.Probe = counts{}

// Subject implements probe.Probe.
func (counts) Subject() string { return serverEndpoint }

// Read implements probe.Probe.
func (c counts) Read(ctx context.Context) ([]metric.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sts, err := c.p.child(serverSTS).admin.Counters(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the STS's counters: %w", err)
	}
	end, err := c.p.child(serverEndpoint).admin.Counters(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the endpoint's counters: %w", err)
	}
	sample := func(q probe.Quantity, n int64) metric.Sample {
		return metric.Sample{Subject: serverEndpoint, Metric: q.Name, Value: float64(n)}
	}
	return []metric.Sample{
		sample(probe.Upstream, sts.Asked),
		sample(probe.CacheHits, end.Hits), sample(probe.CacheMisses, end.Misses), sample(probe.CacheRenewed, end.Refreshes),
	}, nil
}
