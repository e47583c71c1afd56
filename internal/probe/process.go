package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/internal/metric"
)

// Process reads a process and all its descendants. It leaves out the branch that begins with tare, which may run below
// the same shell or test.
type Process struct {
	Name string // the subject
	PID  int
	// StartTicks guards against pid reuse: field 22 of /proc/PID/stat. 0: unguarded.
	StartTicks uint64
	// Light leaves out PSS and file descriptors, and takes RSS from stat, which is exact to some pages for each CPU or
	// thread. Without Light, RSS comes from smaps_rollup, which walks all pages under the lock of the process's memory.
	// Use Light for periodic readings. A reading of a process with 2 GiB in pages of 4 KiB, on two busy CPUs, took 75 to
	// 230 ms, and 1 to 4 ms with Light (BenchmarkProcess). With a reading each 100 ms, 1.2 % of a thread's mmap and munmap
	// calls were delayed by more than 1 ms (99th percentile 28 to 37 ms), 0.03 % with Light, and 0 to 0.1 % without any
	// reading.
	Light bool
	Root  fs.FS // nil: this machine
}

var _ Probe = Process{}

// Subject implements Probe.
func (p Process) Subject() string { return p.Name }

// Read implements Probe. The error wraps ErrGone when the process has ended.
func (p Process) Read(ctx context.Context) ([]metric.Sample, error) {
	list, _, err := p.readTree(ctx)
	return list, err
}

// readTree also returns the processes that it read, the root first.
func (p Process) readTree(ctx context.Context) (list []metric.Sample, pids []int, err error) {
	root := rootFS(p.Root)
	all, err := processes(ctx, root)
	if err != nil {
		return nil, nil, fmt.Errorf("probe %s: %w", p.Name, err)
	}
	top, ok := all[p.PID]
	if !ok || (p.StartTicks != 0 && top.start != p.StartTicks) {
		return nil, nil, fmt.Errorf("probe %s: process %d: %w", p.Name, p.PID, ErrGone)
	}
	sum := usage{light: p.Light}
	if self := os.Getpid(); p.Root == nil && p.PID != self {
		delete(all, self)
	}
	pids = tree(all, p.PID)
	if p.Root == nil {
		addClocks(ctx, p.Name, pids)
	}
	for _, pid := range pids {
		sum.add(root, pid, all[pid], p.Root == nil)
	}
	out := samples{subject: p.Name}
	sum.samples(&out)
	out.add(Started, float64(top.start))
	return out.list, pids, nil
}

// status is what /proc/PID/stat says (proc_pid_stat(5)).
type status struct {
	parent        int
	self, waited  float64 // CPU seconds: its own, and those of its children that it has waited for
	threads, size float64 // size: resident pages
	start         uint64
}

// parseStat counts fields from the last ')', since the name before it may hold anything.
func parseStat(text string) (status, error) {
	const (
		ppid, utime, stime, cutime, cstime, threads, start, rss = 4, 14, 15, 16, 17, 20, 22, 24
		first                                                   = 3
	)
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if !strings.Contains(text, ")") || len(f) <= rss-first {
		return status{}, fmt.Errorf("malformed stat %.60q", text)
	}
	var (
		n    [rss + 1]uint64
		errs []error
	)
	for _, i := range []int{ppid, utime, stime, cutime, cstime, threads, start, rss} {
		v, err := strconv.ParseUint(f[i-first], 10, 63)
		n[i] = v
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return status{}, fmt.Errorf("malformed stat: %w", err)
	}
	return status{
		parent: int(n[ppid]), self: float64(n[utime]+n[stime]) * tick, waited: float64(n[cutime]+n[cstime]) * tick,
		threads: float64(n[threads]), start: n[start], size: float64(n[rss]),
	}, nil
}

// processes reads the stat of every process. It skips one that ends meanwhile.
func processes(ctx context.Context, root fs.FS) (map[int]status, error) {
	dir, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make(map[int]status, len(dir))
	for _, d := range dir {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s, err := parseStat(readText(root, "proc/"+d.Name()+"/stat")); err == nil {
			all[pid] = s
		}
	}
	return all, nil
}

// tree lists pid and its descendants. Each process has one parent; the seen set guards against a process table that
// changed while it was read.
func tree(all map[int]status, pid int) []int {
	children := make(map[int][]int)
	for p, s := range all {
		children[s.parent] = append(children[s.parent], p)
	}
	list, seen := []int{pid}, map[int]bool{pid: true}
	for i := 0; i < len(list); i++ {
		for _, c := range children[list[i]] {
			if !seen[c] {
				seen[c] = true
				list = append(list, c)
			}
		}
	}
	return list
}

// usage sums over processes, and counts for each value how many processes gave it.
type usage struct {
	light                                        bool
	cpu, rss, pss, peak, threads, fds, processes float64
	pssN, peakN, fdsN                            float64
}

func (u *usage) add(root fs.FS, pid int, s status, live bool) {
	base := "proc/" + strconv.Itoa(pid)
	u.processes++
	u.threads += s.threads
	u.cpu += s.waited + ownCPU(pid, s, live)
	var rollup map[string]float64
	if !u.light {
		rollup = parseColonLines(readText(root, base+"/smaps_rollup"))
	}
	if rss, ok := rollup["Rss"]; ok {
		u.rss += rss
	} else {
		u.rss += s.size * float64(unix.Getpagesize())
	}
	if pss, ok := rollup["Pss"]; ok {
		u.pss += pss
		u.pssN++
	}
	if peak, ok := parseColonLines(readText(root, base+"/status"))["VmHWM"]; ok {
		u.peak += peak
		u.peakN++
	}
	if u.light {
		return
	}
	if dir, err := fs.ReadDir(root, base+"/fd"); err == nil {
		u.fds += float64(len(dir))
		u.fdsN++
	}
}

// ownCPU prefers the process's CPU clock, in nanoseconds, to stat's ticks of 10 ms.
func ownCPU(pid int, s status, live bool) float64 {
	if live {
		if spent, ok := processClock(pid); ok {
			return spent
		}
	}
	return s.self
}

// samples leaves out what was not readable for every process of the tree: a partial sum would be wrong.
func (u *usage) samples(out *samples) {
	out.add(CPU, u.cpu)
	out.add(RSS, u.rss)
	out.add(Threads, u.threads)
	out.add(Processes, u.processes)
	if u.pssN == u.processes {
		out.add(PSS, u.pss)
	}
	if u.peakN == u.processes {
		out.add(RSSPeak, u.peak)
	}
	if u.fdsN == u.processes {
		out.add(FDs, u.fds)
	}
}

// parseColonLines parses lines of "Key:  123 kB", as in smaps_rollup and status, into bytes, and ignores other lines.
func parseColonLines(text string) map[string]float64 {
	m := make(map[string]float64)
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, ":")
		kib, isSize := strings.CutSuffix(strings.TrimSpace(v), " kB")
		if n, isNumber := parseNumber(kib); ok && isSize && isNumber {
			m[k] = n * 1024
		}
	}
	return m
}
