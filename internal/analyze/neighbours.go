package analyze

import (
	"fmt"
	"math"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/stat"
)

// movedShare is by how much of the host's CPU time other work may grow or fall over a soak before the drift of what it
// disturbs is in doubt.
const movedShare = 0.05

// crowdedShare is the share of the host's CPU time from which on other work leaves a target to wait for it: how much of
// such work waits, and makes the target wait, its share of the time does not show.
const crowdedShare = 0.9

// othersShare is the share of the host's CPU time that neither the target nor the generator used.
var othersShare = metric.Metric{Name: "others", Unit: metric.Ratio, Better: metric.Lower}

// othersOf is that share in a slice, from what the host, the target and the generator used in it, in CPU-seconds. A
// target that is not on this host uses nothing of it. NaN where the host does not say.
func othersOf(host map[probed]float64, target, generator float64) float64 {
	all, busy := host[probed{metric: probe.HostAll.Name}], host[probed{metric: probe.HostCPU.Name}]
	if !(all > 0) {
		return math.NaN()
	}
	if math.IsNaN(target) {
		target = 0
	}
	return max(0, busy-target-generator) / all
}

// stolenOf is the share of the host's CPU time that the hypervisor took in a slice; NaN where the host does not say.
func stolenOf(host map[probed]float64) float64 {
	all := host[probed{metric: probe.HostAll.Name}]
	stolen, known := host[probed{metric: probe.Steal.Name}]
	if !known || !(all > 0) {
		return math.NaN()
	}
	return stolen / all
}

// neighbours is the course of that share.
func (s *soak) neighbours() *course {
	return s.course(
		othersShare, quietWindows, func(_ *record.Slice, u *usage) (v, w float64) { return u.others, 1 },
	).oneStretch()
}

// moved says why the drift of a metric that other work on the host disturbs cannot be told to be the target's; empty:
// it can. Such work makes calls wait, and empties the caches of the CPU, so that they also cost more. Memory is not
// disturbed.
func (s *soak) moved(name string) string {
	if memory(name) || name == metric.Error.Name {
		return ""
	}
	if s.disturbance == nil {
		why := s.disturbances()
		s.disturbance = &why
	}
	return *s.disturbance
}

func (s *soak) disturbances() string {
	c := s.neighbours()
	if len(c.value) < fewestWindows {
		return ""
	}
	if m := stat.Mean(c.value); m >= crowdedShare {
		return otherWork(m, s.hidden()) + " meanwhile: how long it made the target wait, and whether longer at the end, is " +
			"not known"
	}
	fit, err := stat.Drift(
		c.hours, c.value, stat.DriftOptions{Level: level, Stretch: c.stretch, Weight: c.weight, Seed: driftSeed},
	)
	if err != nil || (fit.Lo <= 0 && fit.Hi >= 0) {
		return ""
	}
	from := min(1, max(0, fit.Intercepts[0]))
	to := min(1, max(0, fit.Intercepts[0]+fit.Value*s.seconds()/3600))
	if abs(to-from) < movedShare {
		return ""
	}
	return fmt.Sprintf("other work on this host went from %.0f %% to %.0f %% of its CPU time meanwhile: what it does to "+
		"the target cannot be distinguished from a drift of the target",
		100*from, 100*to)
}

// neighbourhood warns of a host that had other work to do.
func (a *analysis) neighbourhood(s *soak) {
	if c := s.neighbours(); len(c.value) > 0 {
		if m := stat.Mean(c.value); m >= busyShare {
			a.warn(s.trial.Treatment, "%s meanwhile: times, and what a call costs, are those of a busy host",
				otherWork(m, s.hidden()))
		}
	}
}

// hidden reports whether the target runs on this host, and its CPU time was never read.
func (s *soak) hidden() bool {
	return isLocal(s.trial) && len(s.having(probe.CPU.Name, probe.CgroupCPU.Name)) == 0
}
