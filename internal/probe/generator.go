package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"tare/internal/metric"
)

// GeneratorSubject is the subject of Generator.
const GeneratorSubject = "generator"

// Generator reads this process: what it used, what the hypervisor stole from its host, and for how long a CPU quota
// throttled it. A trial's audit compares two readings: Share(delta, GeneratorSubject, Steal, HostAll) is the stolen
// share.
type Generator struct {
	Root fs.FS // nil: this machine
}

var _ Probe = Generator{}

// Subject implements Probe.
func (Generator) Subject() string { return GeneratorSubject }

// Read implements Probe.
func (g Generator) Read(ctx context.Context) ([]metric.Sample, error) {
	root := rootFS(g.Root)
	out := samples{subject: GeneratorSubject}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return nil, fmt.Errorf("probe generator: read CPU clock: %w", err)
	}
	out.add(CPU, float64(ts.Nano())/1e9)
	if rss, ok := parseColonLines(readText(root, "proc/self/status"))["VmRSS"]; ok {
		out.add(RSS, rss)
	}
	text, err := readRequired(ctx, root, "proc/stat")
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("probe generator: %w", err)
	}
	if cpu, err := parseHostCPU(text); err == nil {
		cpu.samples(&out)
	}
	for _, dir := range ownGroups(root) {
		group := samples{subject: GeneratorSubject}
		readGroup(root, dir, &group)
		for _, s := range group.list {
			switch s.Metric {
			case Periods.Name, ThrottledPeriods.Name, ThrottledTime.Name:
				out.list = append(out.list, s)
			}
		}
	}
	return out.list, nil
}

// Throttled returns for how long CPU quotas have throttled this process's control group and its ancestors, in seconds
// summed over processors. It is 0 where there is no quota.
func (g Generator) Throttled() float64 {
	root := rootFS(g.Root)
	sum := 0.0
	for _, own := range ownGroups(root) {
		for dir := own; dir != "sys/fs/cgroup" && dir != "."; dir = path.Dir(dir) {
			stat := parseKeyed(readText(root, dir+"/cpu.stat"))
			sum += stat["throttled_usec"]*1e-6 + stat["throttled_time"]*1e-9
		}
	}
	return sum
}
