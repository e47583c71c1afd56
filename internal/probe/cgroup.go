package probe

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tare/internal/metric"
)

// Cgroup reads a control group, v1 or v2, from whichever files it has.
type Cgroup struct {
	Name string // the subject
	// Paths are the group's directories: one in v2; in v1 each controller may have its own.
	Paths []string
	Root  fs.FS // nil: this machine
}

var _ Probe = Cgroup{}

// Subject implements Probe.
func (c Cgroup) Subject() string { return c.Name }

// Read implements Probe. The error wraps ErrGone when none of the directories is there.
func (c Cgroup) Read(ctx context.Context) ([]metric.Sample, error) {
	root := rootFS(c.Root)
	out := samples{subject: c.Name}
	found := false
	for _, p := range c.Paths {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("probe %s: %w", c.Name, err)
		}
		dir := strings.TrimPrefix(path.Clean(p), "/")
		if _, err := fs.Stat(root, dir); err != nil {
			continue
		}
		found = true
		readGroup(root, dir, &out)
	}
	if !found {
		return nil, fmt.Errorf("probe %s: control group %v: %w", c.Name, c.Paths, ErrGone)
	}
	return out.list, nil
}

// readGroup adds the values of a directory that no earlier directory gave: in a hybrid layout v2 repeats some of v1's
// counters.
func readGroup(root fs.FS, dir string, out *samples) {
	group := samples{subject: out.subject}
	readGroupFiles(root, dir, &group)
	for _, s := range group.list {
		if !slices.ContainsFunc(out.list, func(o metric.Sample) bool { return o.Metric == s.Metric }) {
			out.list = append(out.list, s)
		}
	}
}

// readGroupFiles reads v2's names, in µs, and v1's, in ns (cgroup-v2.rst, sched-bwc.rst, cpuacct.rst), and v2's
// pressure.
func readGroupFiles(root fs.FS, dir string, out *samples) {
	const micro, nano = 1e-6, 1e-9
	stat := parseKeyed(readText(root, dir+"/cpu.stat"))
	for _, f := range []struct {
		key   string
		q     Quantity
		scale float64
	}{
		{"usage_usec", CgroupCPU, micro},
		{"nr_periods", Periods, 1},
		{"nr_throttled", ThrottledPeriods, 1},
		{"throttled_usec", ThrottledTime, micro},
		{"throttled_time", ThrottledTime, nano},
	} {
		if v, ok := stat[f.key]; ok {
			out.add(f.q, v*f.scale)
		}
	}
	for _, f := range []struct {
		name  string
		q     Quantity
		scale float64
	}{
		{"cpuacct.usage", CgroupCPU, nano},
		{"memory.current", Memory, 1},
		{"memory.usage_in_bytes", Memory, 1},
		{"memory.peak", MemoryPeak, 1},
		{"memory.max_usage_in_bytes", MemoryPeak, 1},
	} {
		if v, ok := parseNumber(readText(root, dir+"/"+f.name)); ok {
			out.add(f.q, v*f.scale)
		}
	}
	readGroupPressure(root, dir, out)
}

// readGroupPressure reads the pressure files that v2 has for each group.
func readGroupPressure(root fs.FS, dir string, out *samples) {
	for _, f := range []struct {
		name string
		q    Quantity
	}{{"cpu.pressure", CgroupPressureCPU}, {"memory.pressure", CgroupPressureMemory}, {"io.pressure", CgroupPressureIO}} {
		if v, ok := parsePressure(readText(root, dir+"/"+f.name)); ok {
			out.add(f.q, v)
		}
	}
}

// ownGroups returns the directories of this process's own control group that have a cpu.stat. It looks below the usual
// mount points, and at the mount points themselves, for a process that sees only its own group there.
func ownGroups(root fs.FS) []string {
	var dirs []string
	for line := range strings.Lines(readText(root, "proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[1] == "":
			dirs = append(dirs, "sys/fs/cgroup"+part[2], "sys/fs/cgroup")
		case strings.Contains(","+part[1]+",", ",cpu,"):
			dirs = append(dirs, "sys/fs/cgroup/"+part[1]+part[2], "sys/fs/cgroup/cpu"+part[2], "sys/fs/cgroup/cpu")
		}
	}
	for _, d := range dirs {
		d = path.Clean(d)
		if _, limited := parseKeyed(readText(root, d+"/cpu.stat"))["nr_periods"]; limited {
			return []string{d}
		}
	}
	return nil
}

// Generator reads what limits this process.
type Generator struct {
	Root fs.FS // nil: this machine
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
