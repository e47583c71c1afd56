package run

import (
	"context"
	"os"
	"time"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// watch reads what the host does, and what of it is this run's: this process and its children, those that have ended included. The function
// that it returns writes the differences. A host that does not say is no reason to fail.
func (x *runner) watch(ctx context.Context, b int) func() error {
	probes := []probe.Probe{probe.Host{}, probe.PSI{}, probe.Process{Name: "tare", PID: os.Getpid()}}
	read := func() (all []metric.Sample, at time.Time) {
		for _, p := range probes {
			if s, err := p.Read(ctx); err == nil {
				all = append(all, s...)
			}
		}
		return all, x.Env.Clock.Now()
	}
	before, from := read()
	return func() error {
		after, to := read()
		return x.Writer.Surroundings(record.Surroundings{Block: b, Seconds: to.Sub(from).Seconds(), Samples: probe.Delta(before, after)})
	}
}
