package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/startup"
	"tare/areas/admission/webhook"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/ratelimit"
)

// An arm is one treatment: a namespace on a control plane, with all that calls and policies need.
type arm struct {
	plan
	treatment  area.Treatment
	env        area.Env
	journal    area.Journal
	index      int                // makes names unique within the run
	declared   *Spec              // without levels
	found      map[string]finding // what bundles have shown, by their paths and control planes
	salt       []byte             // of the numbers of texts that are not shown
	operations []operation
	ready      bool // Prepare has succeeded

	control   *control         // nil: a cluster of the user's
	admin     *cluster.Cluster // sets up
	caller    *cluster.Cluster // the measured user; on a cluster of the user's the same as admin
	setter    *asker           // single requests of admin
	asker     *asker           // single requests of caller
	namespace string
	prefix    string // of paths, before /api
	endpoint  *load.Endpoint
	identity  caller
	journaled []journaled // what exists on a cluster of the user's

	limit        *ratelimit.Limiter // bounds all requests outside the load; nil: no bound
	policies     policies
	webhook      *kit.Process // nil: none
	webhookReady webhook.Ready
	// webhookConfig configures the webhook, and a process that replaces it. It holds a key.
	webhookConfig webhook.Config
	reviewer      *reviewer
	engines       []*runningEngine // that evaluate policies of the user's own
	maker         maker
	epoch         int // counts mixes, for names

	stock   map[string][]item // by noun: the objects of update, patch, get and list
	trial   int               // counts trials, for names
	entered time.Time         // when the trial began
	longest time.Duration     // of the trials

	watch   *startup.Watch // nil: no pod-startup
	starter *rest.Config   // the user who creates its pods
	// metricsDenied says why the API server's own metrics cannot be read; empty: they can.
	metricsDenied string

	stopRenewal func() // ends the renewal of credentials; nil: none
}

// settleWithin bounds the wait until a created or removed object shows its effect, and settleEach adds to it for each
// object: a server compiles a thousand policies within ten seconds, or 90 s on a busy host.
const (
	settleWithin = time.Minute
	settleEach   = 50 * time.Millisecond
)

// prepare creates the namespace with all that calls need and, if the control plane is the treatment's own, the
// policies.
func (p *arm) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.connect, p.serveWebhook, p.render, p.intend, p.createNamespace, p.grantCaller, p.checkMetrics, p.watchPods,
		p.install, p.fill,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connect makes the clients, and determines how the load reaches the API server.
func (p *arm) connect(ctx context.Context) (err error) {
	run := p.env.Run
	o := cluster.Options{
		Run: run, Kubeconfig: p.spec.Kubeconfig, Context: p.spec.Context,
		ExposeSecrets: p.spec.ExposeSecrets, Limit: p.limit, Clock: p.env.Clock,
	}
	if !p.foreign {
		o = cluster.Options{
			Run: run, Server: p.control.Server(), CA: p.control.CA, Token: p.control.AdminToken, Bare: p.nodes == 0,
			Clock: p.env.Clock,
		}
	}
	if p.admin, err = cluster.New(ctx, o); err != nil {
		return err
	}
	if p.policies.keeper, err = cluster.New(ctx, policyOptions(o, p.index)); err != nil {
		return err
	}
	p.caller = p.admin
	if !p.foreign {
		o.Token = p.control.CallerToken
		if p.caller, err = cluster.New(ctx, o); err != nil {
			return err
		}
	}
	if p.setter, err = newAsker(p.admin, p.limit, p.env.Clock); err != nil {
		return err
	}
	if p.asker, err = newAsker(p.caller, p.limit, p.env.Clock); err != nil {
		return err
	}
	p.namespace, p.prefix = fmt.Sprintf("tare-%s-%d", run, p.index), p.admin.Prefix()
	e := &load.Endpoint{Host: p.admin.Host(), Keys: 1}
	if e.Addr, err = p.admin.Addr(ctx); err != nil {
		return err
	}
	if e.TLS, err = p.caller.TLS(); err != nil {
		return err
	}
	p.endpoint = e
	return p.identify(ctx)
}

// policyOptions returns the same connection with a separate label for the policies of one treatment, so that they can
// be removed alone.
func policyOptions(o cluster.Options, index int) cluster.Options {
	o.Run = fmt.Sprintf("%s-p%d", o.Run, index)
	return o
}

// identify renders the headers that identify the caller.
func (p *arm) identify(ctx context.Context) error {
	h, err := p.caller.Header(ctx)
	if err != nil {
		return err
	}
	h.Del("User-Agent")
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	p.identity.set(b.Bytes())
	return nil
}

// renewEach is the interval at which the credentials of a user's cluster are renewed: tokens expire.
const renewEach = time.Minute

// renew keeps the caller's credentials current, outside the timed path, until the returned function is called.
func (p *arm) renew() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p.env.Clock.Sleep(ctx, renewEach) == nil {
			if err := p.identify(ctx); err != nil && ctx.Err() == nil {
				p.env.Log.Warn("renew the credentials of the caller", slog.String("error", err.Error()))
			}
		}
	}()
	return func() { cancel(); <-done }
}

// enter refills what calls consume, and applies the policies if they come and go with the trials.
func (p *arm) enter(ctx context.Context) error {
	if err := p.failed(); err != nil {
		return err
	}
	if p.foreign {
		if err := p.identify(ctx); err != nil {
			return err
		}
		p.stopRenewal = p.renew()
	}
	if err := p.fillDoomed(ctx); err != nil {
		return err
	}
	if p.webhook != nil && p.unsteady() {
		if err := p.setLatency(ctx, webhook.Latency{}); err != nil {
			return err
		}
	}
	if p.visiting() {
		if err := p.applyPolicies(ctx); err != nil {
			return err
		}
	}
	p.entered = p.env.Clock.Now()
	return nil
}

// restart starts afresh all processes of the treatment, and waits until the policies are in force again. An engine
// ends with its API server, or takes 20 s to find it again: it ends before, and starts after.
func (p *arm) restart(ctx context.Context) error {
	if err := errors.Join(p.stopEngines(ctx), p.webhook.Stop(ctx)); err != nil {
		return err
	}
	if err := p.control.Restart(ctx); err != nil {
		return err
	}
	if p.webhook != nil {
		if p.unsteady() {
			p.webhookConfig.Latency = webhook.Latency{}
		}
		if err := p.startWebhook(ctx); err != nil {
			return err
		}
	}
	if err := p.restartEngines(ctx); err != nil {
		return err
	}
	return p.awaitProof(ctx, p.policies.proof, "the policies do not come into force again")
}

// visiting reports whether the policies are applied for each trial only: the control plane is not the treatment's own.
func (p *arm) visiting() bool { return p.foreign || p.shared }

// leave deletes what the trial created, and removes the policies that were applied for it.
func (p *arm) leave(ctx context.Context) error {
	if p.stopRenewal != nil {
		p.stopRenewal()
		p.stopRenewal = nil
	}
	p.longest = max(p.longest, p.env.Clock.Now().Sub(p.entered))
	err := errors.Join(p.noteBacklog(ctx), p.noteUnreported(ctx), p.clear(ctx), p.clearGenerated(ctx), p.clearReports(ctx))
	if p.visiting() {
		err = errors.Join(err, p.removePolicies(ctx))
	}
	return errors.Join(err, p.failed())
}

// failed returns why an embedded control plane, or what tare runs beside it, has ended.
func (p *arm) failed() error {
	if p.control == nil {
		return p.webhook.Failed()
	}
	return errors.Join(p.control.Failed(), p.control.nodes.Failed(), p.webhook.Failed(), p.enginesFailed())
}

// pause is the interval between attempts.
const pause = 200 * time.Millisecond

// Ready implements area.Arm.
func (p *arm) Ready() bool { return p.ready }

// Close implements area.Arm: it undoes all that the arm has made. An embedded control plane of its own ends with
// everything in it.
func (p *arm) Close(ctx context.Context) error {
	var errs []error
	if p.stopRenewal != nil {
		p.stopRenewal()
		p.stopRenewal = nil
	}
	if p.watch != nil {
		p.watch.Close()
	}
	if len(p.journaled) > 0 {
		errs = append(errs, p.removeJournaled(ctx))
	}
	errs = append(errs, p.webhook.Stop(ctx), p.stopEngines(ctx))
	p.setter.close()
	p.asker.close()
	for _, c := range []*cluster.Cluster{p.admin, p.caller, p.policies.keeper} {
		if c != nil {
			c.Close()
		}
	}
	return errors.Join(errs...)
}
