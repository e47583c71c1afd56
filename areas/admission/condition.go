package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
	"time"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/webhook"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/proc"
)

const (
	// changeGroup is the kind of changes that are control groups.
	changeGroup = "cgroup"
	// awayFor is how long a killed webhook or engine is away.
	awayFor = 3 * time.Second
	// engineRestart is the condition in which the engines of the user's policies are killed, and started again.
	engineRestart = "engine-restart"
	// slowSpread is the spread of a slow webhook, whose median is half of its time-out: 19 % of its answers are late.
	slowSpread = 0.8
	// The shares of one processor that a starved webhook and a starved API server get.
	webhookShare = 0.005
	serverShare  = 0.2
	// starvedPeriod is the period of their quota: the kernel grants at least 1 ms of each.
	starvedPeriod = 500 * time.Millisecond
)

// Conditions is area.Says.Conditions.
func (s *Spec) Conditions() []string {
	if s.Kubeconfig != "" {
		return nil
	}
	return []string{
		area.Restart, area.ColdStart, area.Slow, area.Starved, area.Reload, area.Revoke, area.Partition, engineRestart,
	}
}

// Conditions is area.Can.Conditions: what can be done to the control and to what it depends on, on a control plane
// that tare has started. The control is the webhook's process, and of other mechanisms kube-apiserver, with the engines
// beside it.
func (t *target) Conditions(tr design.Treatment) []area.Condition {
	p, err := t.arms.Of(tr)
	if err != nil || p.foreign {
		return nil
	}
	out := p.serverConditions()
	if p.webhook != nil {
		out = p.webhookConditions()
	}
	if p.webhook != nil || p.kind == mechanism.VAP {
		out = append(out, p.reload(), p.revoke())
	}
	if len(p.engines) > 0 && p.kind == mechanism.Own {
		out = append(out, p.restartOfEngines())
	}
	return out
}

// restartOfEngines kills the engines that decide about requests. What runs beside them stays.
func (p *arm) restartOfEngines() area.Condition {
	var titles []string
	for _, e := range p.engines {
		titles = append(titles, e.kind.Title)
	}
	who := strings.Join(titles, " and ")
	return area.Condition{
		Name: engineRestart, Title: "restart of " + who, Hold: awayFor,
		Does: fmt.Sprintf("%s, which evaluates the policies, is killed, and started again after %v; the condition ends when "+
			"the policies are in force again", who, awayFor),
		Impose: func(ctx context.Context) (func(context.Context) error, error) {
			var errs []error
			for _, e := range p.engines {
				errs = append(errs, e.Signal(syscall.SIGKILL), e.Stop(ctx))
			}
			return p.engineBack, errors.Join(errs...)
		},
	}
}

// engineBack starts engines that were killed, and waits until their policies are in force.
func (p *arm) engineBack(ctx context.Context) error {
	for _, e := range p.engines {
		if err := p.startProgram(ctx, &e.engineProcess); err != nil {
			return err
		}
	}
	return p.awaitProof(ctx, p.policies.proof, "the policies do not come into force again")
}

// webhookConditions are those of the reference webhook.
func (p *arm) webhookConditions() []area.Condition {
	out := []area.Condition{
		{
			Name: area.Restart, Title: "restart of the webhook", Hold: awayFor,
			Does: fmt.Sprintf("the webhook's process is killed, and started again after %v", awayFor),
			Impose: func(ctx context.Context) (func(context.Context) error, error) {
				if err := p.webhook.Signal(syscall.SIGKILL); err != nil {
					return nil, err
				}
				return p.startWebhook, p.webhook.Stop(ctx)
			},
		},
		{
			Name: area.ColdStart, Title: "cold start of the webhook", Idle: true,
			Does: "the webhook's process is replaced by a new one, and the load begins when that is ready",
			Impose: func(ctx context.Context) (func(context.Context) error, error) {
				return nil, errors.Join(p.webhook.Stop(ctx), p.startWebhook(ctx))
			},
		},
		{
			Name: area.Partition, Title: "partition from the webhook",
			Does:   "the webhook's process is stopped: it takes connections and answers nothing",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return p.webhook.Freeze(ctx) },
		},
	}
	if !p.unsteady() {
		slow := webhook.Latency{Median: p.timeout() / 2, Spread: slowSpread}
		out = append(out, area.Condition{
			Name: area.Slow, Title: "slow webhook",
			Does: fmt.Sprintf("the webhook's latency is %v: %.0f %% of its answers exceed the time-out of %v", slow,
				100*slow.Above(p.timeout()), p.timeout()),
			Impose: func(ctx context.Context) (func(context.Context) error, error) {
				return func(ctx context.Context) error { return p.setLatency(ctx, p.latency) }, p.setLatency(ctx, slow)
			},
		})
	}
	return p.withStarved(out, "the webhook", webhookShare, func() int { return p.webhook.PID })
}

// serverConditions are those of the control plane.
func (p *arm) serverConditions() []area.Condition {
	return p.withStarved([]area.Condition{
		{
			Name: area.Restart, Title: "restart of kube-apiserver", Does: "kube-apiserver is killed, and started again",
			Impose: func(ctx context.Context) (func(context.Context) error, error) {
				return nil, p.control.RestartServer(ctx)
			},
		},
		{
			Name: area.ColdStart, Title: "cold start of kube-apiserver", Idle: true,
			Does: "kube-apiserver is killed and started again, and the load begins when its readyz says that it is ready",
			Impose: func(ctx context.Context) (func(context.Context) error, error) {
				return nil, p.control.RestartServer(ctx)
			},
		},
		p.partition(),
	}, plane.APIServer, serverShare, func() int {
		for _, c := range p.control.Processes() {
			if c.Name == plane.APIServer {
				return c.PID
			}
		}
		return 0
	})
}

// partition takes away what the policies depend on: their parameter, or the API server's store.
func (p *arm) partition() area.Condition {
	if p.kind == mechanism.VAP && p.cel.Param {
		return area.Condition{
			Name: area.Partition, Title: "partition from the parameter",
			Does:   "the parameter of the policies is deleted, and created again",
			Impose: p.withoutParam,
		}
	}
	return area.Condition{
		Name: area.Partition, Title: "partition from etcd",
		Does: "etcd's process is stopped: it takes connections and answers nothing",
		Impose: func(ctx context.Context) (func(context.Context) error, error) {
			return p.control.Freeze(ctx, plane.Etcd)
		},
	}
}

// withoutParam deletes the policies' parameter, and creates it again when the condition is lifted. The namespace, which
// is on a control plane of tare's own, ends with that.
func (p *arm) withoutParam(ctx context.Context) (lift func(context.Context) error, err error) {
	param := mechanism.Param(p.scope())
	body, err := param.MarshalJSON()
	if err != nil {
		return nil, err
	}
	path := p.prefix + "/api/v1/namespaces/" + p.namespace + "/configmaps"
	lift = func(ctx context.Context) error { return p.set(ctx, http.MethodPost, path, jsonType, body) }
	if err := p.set(ctx, http.MethodDelete, path+"/"+param.GetName(), "", nil); err != nil {
		return nil, err
	}
	return lift, nil
}

// withStarved adds the condition in which a process gets a share of one processor, if this host allows control groups.
func (p *arm) withStarved(out []area.Condition, who string, share float64, pid func() int) []area.Condition {
	name := proc.CgroupName(p.env.Run, fmt.Sprintf("starved-%d", p.index))
	path, err := proc.PlanCgroup(name)
	if err != nil {
		p.env.Log.Info("no condition starved", slog.String("reason", err.Error()))
		return out
	}
	return append(out, area.Condition{
		Name: area.Starved, Title: "starvation of " + who,
		Does:   fmt.Sprintf("%s gets %.3g %% of one processor", who, share*100),
		Impose: func(context.Context) (func(context.Context) error, error) { return p.starve(name, path, share, pid()) },
	})
}

// starve puts a process into a control group, which is journaled first. lift takes it out, and removes the group.
func (p *arm) starve(name, path string, share float64, pid int) (lift func(context.Context) error, err error) {
	change := area.Change{
		Area: areaName, Kind: changeGroup, ID: fmt.Sprintf("starved-%d", p.index), Data: map[string]string{"path": path},
	}
	if err := p.journal.Intend(change); err != nil {
		return nil, err
	}
	group, err := proc.NewCgroup(name, proc.Quota{Share: share, Period: starvedPeriod})
	if err != nil {
		return func(context.Context) error { return p.journal.Undone(change) }, err
	}
	lift = func(context.Context) error {
		if err := group.Release(pid); err != nil {
			return err
		}
		if err := group.Remove(); err != nil {
			return err
		}
		return p.journal.Undone(change)
	}
	return lift, group.Add(pid)
}
