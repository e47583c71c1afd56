// Package probe reads what a target and its host use: processes, control groups, listen queues, pressure.
package probe

import (
	"context"

	"tare/internal/metric"
)

// A Probe reads counters of one subject. Delta turns two readings into costs; a probe never reports totals over a
// process's lifetime as costs.
type Probe interface {
	// Subject names what is read: "endpoint", "sts", "generator", "host".
	Subject() string
	// Read returns the present values, in base units. A value that cannot be read is absent, never 0.
	Read(ctx context.Context) ([]metric.Sample, error)
}
