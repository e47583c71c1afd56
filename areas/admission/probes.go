package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/admission/apimetrics"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/node"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/signature"
)

const (
	// subjectNodes is the subject of the simulated nodes: they belong to the experiment, not to the target.
	subjectNodes = "simulated-nodes"
	// subjectWebhook is the subject of the reference webhook.
	subjectWebhook = "webhook"
)

// readiness reads how long the control plane took to start.
type readiness struct{ control *control }

var _ probe.Probe = readiness{}

// Subject implements probe.Probe.
func (readiness) Subject() string { return plane.APIServer }

// Read implements probe.Probe.
func (r readiness) Read(context.Context) ([]metric.Sample, error) {
	return []metric.Sample{{Subject: plane.APIServer, Metric: probe.StartSeconds.Name, Value: r.control.ReadySeconds}}, nil
}

// probes returns the probes of the processes that tare runs; there are none for a cluster of the user's.
func (p *arm) probes() []probe.Probe {
	out := []probe.Probe{probe.PSI{}}
	if p.webhook != nil {
		out = append(out, probe.Process{
			Name: subjectWebhook, PID: p.webhook.PID,
			StartTicks: p.webhook.StartTicks, Light: true,
		})
	}
	if p.control == nil {
		return out
	}
	out = append(out, readiness{p.control}, probe.ListenQueue{Name: plane.APIServer, Port: p.endpoint.Addr.Port()})
	for _, e := range p.engines {
		out = append(out, probe.Process{Name: e.kind.Name, PID: e.PID, StartTicks: e.StartTicks, Light: true})
		for _, h := range e.beside {
			out = append(out, probe.Process{Name: h.kind.Name, PID: h.PID, StartTicks: h.StartTicks, Light: true})
		}
	}
	if c := p.control.nodes; c != nil {
		out = append(out, probe.Process{Name: subjectNodes, PID: c.PID, StartTicks: c.StartTicks, Light: true})
	}
	return append(out, p.control.Probes()...)
}

// served returns the API server's own measurements of its requests.
func (p *arm) served(ctx context.Context) (*area.Served, error) {
	if p.metricsDenied != "" {
		return nil, nil //nolint:nilnil // the target's own metrics are not readable
	}
	text, err := p.admin.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	s, err := apimetrics.Parse(text)
	if err != nil {
		return nil, err
	}
	s.Parts = slices.DeleteFunc(s.Parts, func(x area.ServedPart) bool {
		return x.Part == area.Undecided && !p.decides(x.Name)
	})
	return s, nil
}

// decides reports whether a webhook is one of the treatment's: all are on a control plane of tare's own.
func (p *arm) decides(webhook string) bool {
	return !p.foreign || strings.HasSuffix(webhook, mechanism.WebhookDomain) ||
		slices.ContainsFunc(p.engines, func(e *runningEngine) bool { return strings.Contains(webhook, e.kind.Name) })
}

// Observe reads the current listen queue, for classifying failures. A value that cannot be read is absent.
func (t *target) Observe(ctx context.Context, tr design.Treatment) signature.Local {
	var local signature.Local
	p, err := t.arms.Of(tr)
	if err != nil || p.control == nil {
		return local
	}
	local.ListenQueue = kit.QueueDepth(ctx, probe.ListenQueue{Name: plane.APIServer, Port: p.endpoint.Addr.Port()})
	return local
}

// startNodes starts the simulated nodes of a control plane.
func (c *control) startNodes(ctx context.Context, env area.Env, j area.Journal, nodes, index int) (err error) {
	cfg := node.Config{Server: c.Server(), CA: c.CA, Token: c.NodesToken, Nodes: nodes}
	var ready node.Ready
	if c.nodes, err = startChild(ctx, env, j, nodesServer, index, cfg, &ready, nodesWithin); err != nil {
		return fmt.Errorf("simulate %d nodes: %w", nodes, err)
	}
	c.nodesNote = ready.Note
	return nil
}
