package probe

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Tree is a process with its descendants, without the branch that begins with tare. Unlike Process it is read by its
// threads and with what holds it back.
type Tree struct {
	PID        int
	StartTicks uint64 // guards against pid reuse; 0: unguarded
	Root       fs.FS  // nil: this machine
}

// A TreeReading is what the processes of a Tree have used so far. The difference of two is a TreeUse.
type TreeReading struct {
	pids    []int
	cpu     float64            // of all processes
	threads map[string]float64 // CPU time by "PID/task/TID"
	groups  map[string]groupThrottling
	cpus    []int // processors that one of the processes may use
	host    hostCPU
	stops   jvmStops
}

// jvmStops is for how long a JVM has stood still: for its collectors, by their own count, and at all. A collector may
// count its concurrent work, too.
type jvmStops struct {
	collecting, any float64
	known           bool
}

// groupThrottling are the counters of a control group with a CPU quota.
type groupThrottling struct{ quota, periods, throttled float64 }

// A TreeUse is what the processes of a Tree used between two readings, in seconds unless noted. A pointer is nil, and a
// number 0, where that cannot be read.
type TreeUse struct {
	CPU, Busiest *float64 // of all processes; of the busiest thread
	Processors   int      // that the processes may use, by their affinity
	// HostBusy and Stolen are shares of the time of these processors.
	HostBusy, Stolen *float64
	// Throttled is the share of the periods of a CPU quota in which a group was throttled, and Quota that quota in
	// processors. Of several quotas they are those of the group that was throttled most. Groups that hold tare are left
	// out.
	Throttled *float64
	Quota     float64
	Stopped   *float64 // by garbage collections
}

// Read reads all processes. The error wraps ErrGone when the first of them has ended.
func (t Tree) Read(ctx context.Context) (TreeReading, error) {
	root := rootFS(t.Root)
	pids, all, err := t.processes(ctx, root)
	if err != nil {
		return TreeReading{}, err
	}
	r := TreeReading{pids: pids, threads: map[string]float64{}, groups: map[string]groupThrottling{}}
	online := onlineProcessors(root)
	for _, pid := range pids {
		r.cpu += all[pid].waited + ownCPU(pid, all[pid], t.Root == nil)
		for _, task := range tasks(root, pid) {
			if cpu, ok := threadCPU(root, task); ok {
				r.threads[task] = cpu
			}
		}
		for _, cpu := range allowedProcessors(root, pid) {
			if slices.Contains(online, cpu) && !slices.Contains(r.cpus, cpu) {
				r.cpus = append(r.cpus, cpu)
			}
		}
		addQuotas(root, pid, r.groups)
	}
	r.host.busy, r.host.all, r.host.steal, r.host.hasSteal = Host{Root: t.Root}.Processors(r.cpus)
	if at, err := oneJVM(root, pids); err == nil {
		r.stops = at.stops(root)
	}
	return r, nil
}

// Since returns what was used between an earlier reading of the same Tree and this one.
func (r TreeReading) Since(before TreeReading) TreeUse {
	u := TreeUse{Processors: len(r.cpus)}
	if cpu := r.cpu - before.cpu; cpu >= 0 {
		u.CPU = &cpu
	}
	for thread, cpu := range r.threads {
		if used := cpu - before.threads[thread]; used >= 0 && (u.Busiest == nil || used > *u.Busiest) {
			u.Busiest = &used
		}
	}
	if all := r.host.all - before.host.all; all > 0 && r.host.hasSteal && before.host.hasSteal {
		share := func(of float64) *float64 { return new(max(0, min(1, of/all))) } // idle time may go back (proc_stat(5))
		u.HostBusy, u.Stolen = share(r.host.busy-before.host.busy), share(r.host.steal-before.host.steal)
	}
	for dir, now := range r.groups {
		was, known := before.groups[dir]
		if !known || now.quota != was.quota {
			continue
		}
		if periods := now.periods - was.periods; periods > 0 {
			share := (now.throttled - was.throttled) / periods
			if u.Throttled == nil || share > *u.Throttled {
				u.Throttled, u.Quota = &share, now.quota
			}
		}
	}
	if now, was := r.stops, before.stops; now.known && was.known {
		if least := min(now.collecting-was.collecting, now.any-was.any); least >= 0 {
			u.Stopped = &least
		}
	}
	return u
}

// WaitsForDisk reports whether a thread of the processes that were read is in uninterruptible sleep, as it is while it
// waits for a disk. ok is false when none could be read.
func (t Tree) WaitsForDisk(r TreeReading) (waits, ok bool) {
	root := rootFS(t.Root)
	for _, pid := range r.pids {
		for _, task := range tasks(root, pid) {
			text := readText(root, task+"/stat")
			state := strings.TrimSpace(text[strings.LastIndexByte(text, ')')+1:])
			ok = ok || state != ""
			waits = waits || strings.HasPrefix(state, "D")
		}
	}
	return waits, ok
}

// Descriptors returns the most file descriptors that one process of a reading has open, and that process's limit; 0
// where that cannot be read.
func (t Tree) Descriptors(r TreeReading) (open, limit int) {
	root := rootFS(t.Root)
	for _, pid := range r.pids {
		dir := "proc/" + strconv.Itoa(pid)
		fds, err := fs.ReadDir(root, dir+"/fd")
		if err == nil && len(fds) > open {
			open, limit = len(fds), descriptorLimit(readText(root, dir+"/limits"))
		}
	}
	return open, limit
}

// descriptorLimit finds the soft limit in a text such as /proc/PID/limits; 0: there is none.
func descriptorLimit(text string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 3 && strings.HasPrefix(line, "Max open files") {
			if n, err := strconv.Atoi(f[3]); err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
}

// processes lists the tree, the first process first, and the stat of all processes.
func (t Tree) processes(ctx context.Context, root fs.FS) ([]int, map[int]status, error) {
	all, err := processes(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	top, ok := all[t.PID]
	if !ok || (t.StartTicks != 0 && top.start != t.StartTicks) {
		return nil, nil, fmt.Errorf("process %d: %w", t.PID, ErrGone)
	}
	if self := os.Getpid(); t.Root == nil && t.PID != self {
		delete(all, self)
	}
	return tree(all, t.PID), all, nil
}

// tasks lists the directories of a process's threads.
func tasks(root fs.FS, pid int) (dirs []string) {
	dir := "proc/" + strconv.Itoa(pid) + "/task"
	list, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil
	}
	for _, d := range list {
		dirs = append(dirs, dir+"/"+d.Name())
	}
	return dirs
}

// threadCPU prefers schedstat, in nanoseconds (sched-stats.rst), to stat's ticks of 10 ms.
func threadCPU(root fs.FS, task string) (float64, bool) {
	ran, _, _ := strings.Cut(readText(root, task+"/schedstat"), " ")
	if ns, ok := parseNumber(ran); ok {
		return ns / 1e9, true
	}
	s, err := parseStat(readText(root, task+"/stat"))
	return s.self, err == nil
}

// onlineProcessors lists the processors that proc_stat(5) has lines of.
func onlineProcessors(root fs.FS) (cpus []int) {
	for line := range strings.Lines(readText(root, "proc/stat")) {
		name, isCPU := strings.CutPrefix(line, "cpu")
		if !isCPU {
			break
		}
		name, _, _ = strings.Cut(name, " ")
		if n, err := strconv.Atoi(name); err == nil { // the first line is the sum of all
			cpus = append(cpus, n)
		}
	}
	return cpus
}

// allowedProcessors lists the processors that a process may use, from a line such as "Cpus_allowed_list:	0-3,8"
// (proc_pid_status(5)).
func allowedProcessors(root fs.FS, pid int) (cpus []int) {
	const most = 1 << 16
	for line := range strings.Lines(readText(root, "proc/"+strconv.Itoa(pid)+"/status")) {
		list, ok := strings.CutPrefix(line, "Cpus_allowed_list:")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
			first, last, isRange := strings.Cut(part, "-")
			from, err := strconv.Atoi(first)
			to := from
			if isRange && err == nil {
				to, err = strconv.Atoi(last)
			}
			if err != nil || from < 0 || to >= most {
				return nil
			}
			for n := from; n <= to; n++ {
				cpus = append(cpus, n)
			}
		}
	}
	return cpus
}

// addQuotas adds the control groups of a process, and those above them, that have a CPU quota and do not hold tare.
func addQuotas(root fs.FS, pid int, to map[string]groupThrottling) {
	mounts := groupMounts(readText(root, "proc/self/mountinfo"))
	ours := groupDirs(readText(root, "proc/self/cgroup"), mounts)
	isMount := func(d string) bool {
		return slices.ContainsFunc(mounts, func(m groupMount) bool { return m.dir == d })
	}
	for _, own := range groupDirs(readText(root, "proc/"+strconv.Itoa(pid)+"/cgroup"), mounts) {
		for d := own; !isMount(d) && len(d) > 1; d = path.Dir(d) {
			holds := func(o string) bool { return o == d || strings.HasPrefix(o, d+"/") }
			if slices.ContainsFunc(ours, holds) {
				break
			}
			dir := strings.TrimPrefix(d, "/")
			stat := parseKeyed(readText(root, dir+"/cpu.stat"))
			if quota := quotaOf(root, dir); quota > 0 {
				to[d] = groupThrottling{quota, stat["nr_periods"], stat["nr_throttled"]}
			}
		}
	}
}

// quotaOf returns the CPU quota of a control group in processors; 0: it has none.
func quotaOf(root fs.FS, dir string) float64 {
	quota, period, _ := strings.Cut(strings.TrimSpace(readText(root, dir+"/cpu.max")), " ")
	if quota == "" {
		quota, period = readText(root, dir+"/cpu.cfs_quota_us"), readText(root, dir+"/cpu.cfs_period_us")
	}
	q, ok1 := parseNumber(quota) // "max" and "-1" mean that there is none
	p, ok2 := parseNumber(period)
	if !ok1 || !ok2 || p == 0 {
		return 0
	}
	return q / p
}

// stops reads for how long a JVM has stood still so far.
func (v vm) stops(root fs.FS) (s jvmStops) {
	var out samples
	if v.addTo(root, &out) != nil {
		return s
	}
	var anyKnown bool
	s.any, anyKnown = Find(out.list, "", SafepointTime)
	for _, x := range out.list {
		if x.Metric == GCTime.Name {
			s.collecting, s.known = s.collecting+x.Value, anyKnown
		}
	}
	return s
}
