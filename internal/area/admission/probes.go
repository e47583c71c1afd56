package admission

import (
	"context"
	"fmt"

	"tare/internal/area"
	"tare/internal/area/admission/apimetrics"
	"tare/internal/area/admission/node"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/plane"
	"tare/internal/probe"
	"tare/internal/signature"
)

const (
	// subjectNodes are the simulated nodes in samples: they belong to the experiment, not to what is measured.
	subjectNodes = "simulated-nodes"
	// subjectWebhook is the reference webhook in samples.
	subjectWebhook = "webhook"
)

// readiness is how long the control plane took to start.
type readiness struct{ control *control }

var _ probe.Probe = readiness{}

// Subject implements probe.Probe.
func (readiness) Subject() string { return plane.APIServer }

// Read implements probe.Probe.
func (r readiness) Read(context.Context) ([]metric.Sample, error) {
	return []metric.Sample{{Subject: plane.APIServer, Metric: probe.StartSeconds.Name, Value: r.control.ReadySeconds}}, nil
}

// probes are those of the processes that tare runs, of a cluster of the user's none: it is elsewhere.
func (p *place) probes() []probe.Probe {
	out := []probe.Probe{probe.PSI{}}
	if p.webhook != nil {
		out = append(out, probe.Process{Name: subjectWebhook, PID: p.webhook.PID, StartTicks: p.webhook.StartTicks, Light: true})
	}
	if p.control == nil {
		return out
	}
	out = append(out, readiness{p.control}, probe.ListenQueue{Name: plane.APIServer, Port: p.endpoint.Addr.Port()})
	if c := p.control.nodes; c != nil {
		out = append(out, probe.Process{Name: subjectNodes, PID: c.PID, StartTicks: c.StartTicks, Light: true})
	}
	return append(out, p.control.Probes()...)
}

// witnessed is what the API server has measured of its requests.
func (p *place) witnessed(ctx context.Context) (*area.Served, error) {
	if p.silent != "" {
		return nil, nil //nolint:nilnil // the target measures nothing that we may read
	}
	text, err := p.admin.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	return apimetrics.Parse(text)
}

// Observe reads what can tell a classifier of failures something: the listen queue as it is now. What cannot be read is absent.
func (t *target) Observe(ctx context.Context, tr design.Treatment) signature.Local {
	var local signature.Local
	p, err := t.place(tr)
	if err != nil || p.control == nil {
		return local
	}
	samples, err := probe.ListenQueue{Name: plane.APIServer, Port: p.endpoint.Addr.Port()}.Read(ctx)
	if err != nil {
		return local
	}
	if depth, ok := probe.Find(samples, plane.APIServer, probe.ListenQueueDepth); ok {
		local.ListenQueue = new(int(depth))
	}
	return local
}

// startNodes brings up the simulated nodes of a control plane.
func (c *control) startNodes(ctx context.Context, env area.Env, j area.Journal, nodes, index int) (err error) {
	cfg := node.Config{Server: c.Server(), CA: c.CA, Token: c.NodesToken, Nodes: nodes}
	var ready node.Ready
	if c.nodes, err = startChild(ctx, env, j, nodesServer, index, cfg, &ready, nodesWithin); err != nil {
		return fmt.Errorf("simulate %d nodes: %w", nodes, err)
	}
	c.nodesNote = ready.Note
	return nil
}
