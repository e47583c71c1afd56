package kit

import (
	"context"

	"tare/internal/metric"
	"tare/internal/probe"
)

// QueueDepth returns how many connections wait in a listen queue of this machine; nil if that cannot be read.
func QueueDepth(ctx context.Context, q probe.ListenQueue) *int {
	samples, err := q.Read(ctx)
	if err != nil {
		return nil
	}
	depth, ok := probe.Find(samples, q.Name, probe.ListenQueueDepth)
	if !ok {
		return nil
	}
	return new(int(depth))
}

// Restartable is a probe of a server that may be restarted: Now returns the probe of the running one.
type Restartable struct {
	Name string // the subject
	Now  func() probe.Probe
}

var _ probe.Probe = Restartable{}

// Subject implements probe.Probe.
func (r Restartable) Subject() string { return r.Name }

// Read implements probe.Probe.
func (r Restartable) Read(ctx context.Context) ([]metric.Sample, error) { return r.Now().Read(ctx) }

// ProcessMetrics returns the metrics of every process of a target that tare can read.
func ProcessMetrics() []string { return []string{"cpu", "rss", "threads", "fds"} }
