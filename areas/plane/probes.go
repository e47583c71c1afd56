package plane

import (
	"context"
	"fmt"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/proc"
)

// A Process is a running component.
type Process struct {
	Name string `json:"name"`
	proc.ID
}

// Processes lists the running components in the order of their dependencies.
func (p *Plane) Processes() []Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Process
	for _, name := range p.components() {
		if c := p.children[name]; c != nil {
			list = append(list, Process{Name: name, ID: c.ID})
		}
	}
	return list
}

// Probes returns a probe for each component, with the component's name as its subject. They follow the components over
// Restart.
func (p *Plane) Probes() []probe.Probe {
	var list []probe.Probe
	for _, name := range p.components() {
		list = append(list, componentProbe{plane: p, name: name})
	}
	return list
}

type componentProbe struct {
	plane *Plane
	name  string
}

var _ probe.Probe = componentProbe{}

// Subject implements probe.Probe.
func (c componentProbe) Subject() string { return c.name }

// Read implements probe.Probe. It is light: walking kube-apiserver's memory would slow it down while it serves.
func (c componentProbe) Read(ctx context.Context) ([]metric.Sample, error) {
	c.plane.mu.Lock()
	child := c.plane.children[c.name]
	c.plane.mu.Unlock()
	if child == nil {
		return nil, fmt.Errorf("probe %s: %w", c.name, probe.ErrGone)
	}
	return probe.Process{Name: c.name, PID: child.PID, StartTicks: child.StartTicks, Light: true}.Read(ctx)
}
