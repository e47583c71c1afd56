package identity

import (
	"context"

	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/probe"
	"tare/internal/signature"
)

// Probes implements area.Target.
func (t *target) Probes(tr design.Treatment) []probe.Probe {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil
	}
	var out []probe.Probe
	if p.addr.Addr().IsLoopback() {
		out = append(out, p.listenQueue())
	}
	if p.tally != nil {
		out = append(out, p.tally)
	}
	if p.url != nil {
		return out
	}
	out = append(out, counts{p}) // before the processes' CPU time: to answer costs some
	if p.group != nil {
		out = append(out, p.groupProbe())
	}
	for _, name := range []string{serverEndpoint, serverSTS} {
		out = append(out, kit.Restartable{Name: name, Now: func() probe.Probe {
			c := p.child(name)
			return probe.Process{Name: name, PID: c.PID, StartTicks: c.StartTicks}
		}})
	}
	return out
}

func (p *arm) listenQueue() probe.ListenQueue {
	return probe.ListenQueue{Name: serverEndpoint, Port: p.addr.Port()}
}

func (p *arm) groupProbe() probe.Probe {
	return probe.Cgroup{Name: serverEndpoint, Paths: []string{p.group.Path()}}
}

// throttling counts CFS periods, or those of the throttle that stands in for them.
type throttling struct{ periods, throttled float64 }

// throttling returns the counters; ok is false if nothing limits the CPU.
func (p *arm) throttling(ctx context.Context) (throttling, bool) {
	switch {
	case p.group != nil:
		samples, err := p.groupProbe().Read(ctx)
		if err != nil {
			return throttling{}, false
		}
		periods, ok1 := probe.Find(samples, serverEndpoint, probe.Periods)
		throttled, ok2 := probe.Find(samples, serverEndpoint, probe.ThrottledPeriods)
		return throttling{periods, throttled}, ok1 && ok2
	case p.throttled:
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		c, err := p.child(serverEndpoint).admin.Counters(ctx)
		return throttling{float64(c.Periods), float64(c.ThrottledPeriods)}, err == nil
	}
	return throttling{}, false
}

// Observe reads what probes on the target's own host can tell a classifier of failures: the listen queue as it is now,
// and the share of CPU periods since the last Enter in which the endpoint was throttled. What cannot be read is absent.
func (t *target) Observe(ctx context.Context, tr design.Treatment) signature.Local {
	var local signature.Local
	p, err := t.arms.Of(tr)
	if err != nil {
		return local
	}
	if p.addr.Addr().IsLoopback() {
		local.ListenQueue = kit.QueueDepth(ctx, p.listenQueue())
	}
	if now, ok := p.throttling(ctx); ok && p.entered != nil && now.periods > p.entered.periods {
		share := (now.throttled - p.entered.throttled) / (now.periods - p.entered.periods)
		local.Throttled = &share
	}
	return local
}
