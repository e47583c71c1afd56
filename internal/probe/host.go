package probe

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"tare/internal/metric"
)

// HostSubject is the subject of the probes of the whole machine.
const HostSubject = "host"

// Host reads the machine's CPU times, stolen time and load.
type Host struct {
	Root fs.FS // nil: this machine
}

var _ Probe = Host{}

// Subject implements Probe.
func (Host) Subject() string { return HostSubject }

// Read implements Probe.
func (h Host) Read(ctx context.Context) ([]metric.Sample, error) {
	root := rootFS(h.Root)
	text, err := readRequired(ctx, root, "proc/stat")
	if err != nil {
		return nil, fmt.Errorf("probe host: %w", err)
	}
	cpu, err := parseHostCPU(text)
	if err != nil {
		return nil, fmt.Errorf("probe host: %w", err)
	}
	out := samples{subject: HostSubject}
	cpu.samples(&out)
	first, _, _ := strings.Cut(readText(root, "proc/loadavg"), " ")
	if load, err := strconv.ParseFloat(first, 64); err == nil && load >= 0 {
		out.add(Load, load)
	}
	return out.list, nil
}

// Governors lists the distinct CPU frequency governors in use, sorted. It is empty where the machine shows none, as
// most virtual machines do. With any governor but "performance", CPU time depends on load.
func (h Host) Governors() []string {
	root := rootFS(h.Root)
	files, err := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		if g := strings.TrimSpace(readText(root, f)); g != "" {
			names = append(names, g)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hostCPU holds CPU-seconds summed over the machine's CPUs.
type hostCPU struct {
	busy, all, steal float64
	hasSteal         bool
}

// parseHostCPU reads the first line of a text such as /proc/stat (proc_stat(5)): cpu user nice system idle iowait irq
// softirq steal guest guest_nice. Guest time is part of user and nice already.
func parseHostCPU(text string) (hostCPU, error) {
	const idle, iowait, steal, counted = 3, 4, 7, 8
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	if len(f) < 1+iowait || !strings.HasPrefix(f[0], "cpu") {
		return hostCPU{}, fmt.Errorf("malformed /proc/stat: %.60q", line)
	}
	var c hostCPU
	for i, s := range f[1:min(len(f), 1+counted)] {
		v, ok := parseNumber(s)
		if !ok {
			return hostCPU{}, fmt.Errorf("malformed /proc/stat: %.60q", line)
		}
		v *= tick
		c.all += v
		switch i {
		case idle, iowait:
		case steal:
			c.steal, c.hasSteal = v, true
		default:
			c.busy += v
		}
	}
	return c, nil
}

// Processors sums the CPU times of some processors, numbered from 0, in CPU-seconds since boot. ok is false where the
// host does not report all of them.
func (h Host) Processors(cpus []int) (busy, all, stolen float64, ok bool) {
	found := 0
	for line := range strings.Lines(readText(rootFS(h.Root), "proc/stat")) {
		name, isCPU := strings.CutPrefix(line, "cpu")
		if !isCPU {
			break
		}
		name, _, _ = strings.Cut(name, " ")
		n, err := strconv.Atoi(name)
		if err != nil || !slices.Contains(cpus, n) { // the first line is the sum of all
			continue
		}
		c, err := parseHostCPU(line)
		if err != nil {
			return 0, 0, 0, false
		}
		busy, all, stolen, found = busy+c.busy, all+c.all, stolen+c.steal, found+1
	}
	return busy, all, stolen, found == len(cpus) && found > 0
}

func (c hostCPU) samples(out *samples) {
	out.add(HostCPU, c.busy)
	out.add(HostAll, c.all)
	if c.hasSteal {
		out.add(Steal, c.steal)
	}
}

// PSI reads pressure stall information: for how long tasks of the host waited.
type PSI struct {
	Root fs.FS // nil: this machine
}

var _ Probe = PSI{}

// Subject implements Probe.
func (PSI) Subject() string { return HostSubject }

// Read implements Probe. A kernel without PSI gives no samples, and no error.
func (p PSI) Read(ctx context.Context) ([]metric.Sample, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("probe pressure: %w", err)
	}
	root := rootFS(p.Root)
	out := samples{subject: HostSubject}
	for _, f := range []struct {
		name string
		q    Quantity
	}{{"cpu", PressureCPU}, {"memory", PressureMemory}, {"io", PressureIO}} {
		if v, ok := parsePressure(readText(root, "proc/pressure/"+f.name)); ok {
			out.add(f.q, v)
		}
	}
	return out.list, nil
}

// parsePressure finds the total, in µs, of the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" (psi.rst), and
// gives seconds.
func parsePressure(text string) (float64, bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "some" {
			continue
		}
		for _, kv := range f[1:] {
			if total, ok := strings.CutPrefix(kv, "total="); ok {
				v, ok := parseNumber(total)
				return v * 1e-6, ok
			}
		}
	}
	return 0, false
}
