package run

import (
	"context"
	"os"
	"time"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// WatchHost reads what the host does, and this run's share of it: this process and its children, including ended ones.
// The returned function writes the differences. If the host does not report them, that is no failure.
func (x *Stage) WatchHost(ctx context.Context, b int) func() error {
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
		return x.Writer.Surroundings(record.Surroundings{
			Block: b, Seconds: to.Sub(from).Seconds(),
			Samples: probe.Delta(before, after),
		})
	}
}
