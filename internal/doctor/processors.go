package doctor

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/proc"
	"tare/internal/unit"
)

// processors checks the processors and their limits.
func (x *examiner) processors(_ context.Context, d *Diagnosis) {
	d.add(x.allowed(), x.quota(), x.governor(), x.virtual())
}

// allowed compares the processors on which this process may run with those that are online.
func (x *examiner) allowed() Check {
	c := Check{Group: groupCPU, Name: "CPUs", State: OK}
	online := cpuList(x.read("sys/devices/system/cpu/online"))
	cpus, err := proc.Allowed()
	if err != nil {
		x.cpus = runtime.NumCPU()
		c.State, c.Found, c.Cause = Limited, fmt.Sprintf("%d, by the Go runtime", x.cpus), err.Error()
		return c
	}
	x.cpus = len(cpus)
	c.Found = fmt.Sprintf("%d allowed", x.cpus)
	c.Values = map[string]float64{"allowed": float64(x.cpus)}
	if online > 0 {
		c.Found += fmt.Sprintf(" of %d", online)
		c.Values["online"] = float64(online)
	}
	switch {
	case x.cpus < 2:
		c.State, c.Cause = Limited, "the load generator and an embedded target share one CPU: each makes the other late"
		c.Next = "allow two CPUs or more, or put the target on another machine"
	case x.cpus < online:
		c.State, c.Cause = Info, "the affinity of this process leaves some out (taskset, cpuset)"
	}
	return c
}

// cpuList counts the processors in a list such as "0-3,8" (cputopology.rst); 0 if the list is empty.
func cpuList(text string) int {
	n := 0
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		lo, err := strconv.Atoi(first)
		if err != nil {
			return 0
		}
		hi := lo
		if isRange {
			if hi, err = strconv.Atoi(last); err != nil || hi < lo {
				return 0
			}
		}
		n += hi - lo + 1
	}
	return n
}

// quota checks the CPU quota of this process.
func (x *examiner) quota() Check {
	c := Check{Group: groupCPU, Name: "CPU quota", State: OK, Found: "none"}
	share, group, ok := x.cpuQuota()
	if !ok {
		return c
	}
	c.State, c.Found = Limited, fmt.Sprintf("%s CPUs by control group %s", unit.Number(share), group)
	c.Cause = "when tare and its target have used up their share, the kernel stops both for the rest of the period, " +
		"usually 100 ms: that looks like the target's fault"
	c.Next = "raise the limit of this container or service above what tare and its target need, or run outside of it"
	c.Values = map[string]float64{"cpus": share}
	return c
}

// cpuQuota returns the strictest CPU quota of this process's control group and its ancestors, in CPUs (cgroup-v2.rst
// cpu.max, sched-bwc.rst).
func (x *examiner) cpuQuota() (share float64, group string, found bool) {
	strictest := func(dir, file string, parse func(dir string) (float64, bool)) {
		for top := path.Dir(file); ; dir = path.Dir(dir) {
			if v, ok := parse(dir); ok && (!found || v < share) {
				share, group, found = v, "/"+dir, true
			}
			if dir == top || len(dir) <= len(top) {
				return
			}
		}
	}
	for line := range strings.Lines(x.read("proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) != 3:
		case part[1] == "":
			strictest(path.Join("sys/fs/cgroup", part[2]), "sys/fs/cgroup/cpu.max",
				func(dir string) (float64, bool) { return quotaV2(x.read(dir + "/cpu.max")) })
		case strings.Contains(","+part[1]+",", ",cpu,"):
			for _, mount := range []string{"sys/fs/cgroup/" + part[1], "sys/fs/cgroup/cpu"} {
				strictest(path.Join(mount, part[2]), mount+"/cpu.cfs_quota_us", func(dir string) (float64, bool) {
					return quotaV1(x.read(dir+"/cpu.cfs_quota_us"), x.read(dir+"/cpu.cfs_period_us"))
				})
			}
		}
	}
	return share, group, found
}

// ownCPUGroups returns the directories where this process's group of the v1 cpu controller may be visible.
func (x *examiner) ownCPUGroups() []string {
	for line := range strings.Lines(x.read("proc/self/cgroup")) {
		if part := strings.SplitN(strings.TrimSpace(line), ":", 3); len(part) == 3 &&
			strings.Contains(","+part[1]+",", ",cpu,") {
			return []string{path.Join("sys/fs/cgroup", part[1], part[2]), path.Join("sys/fs/cgroup/cpu", part[2])}
		}
	}
	return nil
}

// quotaV2 parses "50000 100000"; "max" is no limit.
func quotaV2(text string) (float64, bool) {
	q, p, _ := strings.Cut(text, " ")
	return quotaV1(q, p)
}

// quotaV1 parses a quota and a period in microseconds; a quota of -1 is no limit.
func quotaV1(quota, period string) (float64, bool) {
	q, err1 := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	p, err2 := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err1 != nil || err2 != nil || !(q > 0) || !(p > 0) {
		return 0, false
	}
	return q / p, true
}

func (x *examiner) governor() Check {
	c := Check{Group: groupCPU, Name: "CPU frequency", State: OK}
	governors := probe.Host{Root: x.root}.Governors()
	c.Found = "governor " + strings.Join(governors, ", ")
	switch {
	case len(governors) == 0:
		c.State, c.Found = Info, "the host shows no frequency governor, as most virtual machines"
	case len(governors) > 1 || governors[0] != "performance":
		c.State, c.Cause = Limited, "the frequency follows the load, so that the CPU time of a call depends on how busy "+
			"the host is"
		c.Next = "for the length of a run: \"cpupower frequency-set -g performance\""
	}
	return c
}

// readsPerClock is the number of readings in all rounds of clockCost together.
const readsPerClock = 20000

// slowClock is a cost of reading the clock, in ns, that only a system call or a device causes.
const slowClock = 1000.0

// clockSource names the kernel's clock and times it.
func (x *examiner) clockSource() Check {
	c := Check{Group: groupGenerator, Name: "clock", State: OK}
	source := x.read("sys/devices/system/clocksource/clocksource0/current_clocksource")
	cost := clockCost(x.Clock.Now)
	c.Values = map[string]float64{"seconds_per_reading": cost / 1e9}
	c.Found = fmt.Sprintf("%s, %s for a reading", orUnknown(source), unit.Seconds(cost/1e9))
	if cost > slowClock {
		c.State, c.Cause = Limited, "the clock is not read in user space: source "+orUnknown(
			source)+" needs a system call or a device each time"
		c.Next = "boot with clocksource=tsc if the machine's counter is stable (dmesg | grep -i tsc)"
	}
	return c
}

// clockCost returns the time of one reading in ns: the minimum over several rounds, which is the clock's own cost.
func clockCost[T any](read func() T) float64 {
	best := 0.0
	for round := range 5 {
		from := monotonic()
		for range readsPerClock / 5 {
			read()
		}
		if cost := float64(monotonic()-from) / (readsPerClock / 5); round == 0 || cost < best {
			best = cost
		}
	}
	return best
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// virtual reports in what kind of machine or container the host seems to run. Each sign is a hint, not a proof.
func (x *examiner) virtual() Check {
	var hints []string
	for line := range strings.Lines(x.read("proc/cpuinfo")) {
		if strings.HasPrefix(line, "flags") && strings.Contains(" "+strings.TrimSpace(line)+" ", " hypervisor ") {
			hints = append(hints, "the CPU says that it runs under a hypervisor")
			break
		}
	}
	for _, f := range []string{"sys/hypervisor/type", "sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name"} {
		if s := x.read(f); s != "" {
			hints = append(hints, s)
		}
	}
	for _, f := range []string{".dockerenv", "run/.containerenv"} {
		if file, err := x.root.Open(f); err == nil {
			_ = file.Close()
			hints = append(hints, "a container (/"+f+")")
		}
	}
	c := Check{Group: groupCPU, Name: "virtualisation", State: Info, Found: "no sign of any"}
	if len(hints) > 0 {
		c.Found = strings.Join(hints, "; ")
	}
	return c
}

// pressures reads the host's own counters.
func (x *examiner) pressures(ctx context.Context) samples {
	var all samples
	for _, p := range []probe.Probe{probe.Host{Root: x.root}, probe.PSI{Root: x.root}} {
		if s, err := p.Read(ctx); err == nil {
			all = append(all, s...)
		}
	}
	return append(all, metric.Sample{Subject: probe.HostSubject, Metric: elapsed.Name, Value: float64(monotonic()) / 1e9})
}

// elapsed is the time between two readings.
var elapsed = probe.Quantity{Metric: metric.Metric{Name: "elapsed", Unit: metric.Seconds}}

// stolen and squeezed are limits above which the host's times are doubtful: the limit of a run's audit, and that of a
// visibly busy host.
const (
	stolen   = 0.01
	squeezed = 0.10
)

// steal reports how much CPU time the hypervisor withheld from this host during the examination.
func steal(before, after samples) Check {
	d := probe.Delta(before, after, elapsed)
	c := Check{Group: groupCPU, Name: "steal", State: OK}
	if v, ok := probe.Share(d, probe.HostSubject, probe.Steal, probe.HostAll); !ok {
		c.State, c.Found = Info, "the kernel does not tell"
	} else {
		c.Found = unit.Share(v) + " of the CPU time during this examination"
		c.Values = map[string]float64{"share": v}
		if v > stolen {
			c.State, c.Cause = Limited, "the hypervisor gave the CPUs to other machines while this one wanted them"
			c.Next = "measure on a machine with dedicated CPUs, or at another time; compare CPU time rather than wall time"
		}
	}
	return c
}

// pressure reports how long tasks of this host waited for a CPU while this process only slept: its own work would add
// pressure.
func pressure(before, after samples) Check {
	d := probe.Delta(before, after, elapsed)
	c := Check{Group: groupCPU, Name: "CPU pressure", State: OK}
	if v, ok := probe.Share(d, probe.HostSubject, probe.PressureCPU, elapsed); !ok {
		c.State, c.Found = Info, "the kernel has no pressure stall information (PSI)"
	} else {
		c.Found = "some task waited for a CPU " + unit.Share(v) + " of the time while tare itself slept"
		c.Values = map[string]float64{"some": v}
		if v > squeezed {
			c.State, c.Cause = Limited, "more wants to run than there are CPUs"
			c.Next = "stop what else runs here; the more often tasks wait, the less wall time can be compared"
		}
	}
	return c
}
