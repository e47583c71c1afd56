package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// treeState is what a planted tree of processes has used: a master, process 50, with a worker, process 51, of two
// threads.
type treeState struct {
	master, worker, second    float64 // CPU seconds of the threads
	busy, stolen              int     // ticks of each of two processors, of 100 to each second
	at                        int
	periods, throttled, outer int // of the worker's group, and of that around it
}

// plant returns the files of a host in a state.
func (s treeState) plant(groups, ours string) fstest.MapFS {
	stat := func(parent int, cpu float64) *fstest.MapFile {
		return text(fmt.Sprintf("1 (a) b) S %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 700 1000 250 1 1 1\n", parent,
			int(cpu*100)))
	}
	sched := func(cpu float64) *fstest.MapFile { return text(fmt.Sprintf("%d 5 6\n", int(cpu*1e9))) }
	idle := 100*s.at - s.busy - s.stolen
	line := fmt.Sprintf("%d 0 0 %d 0 0 0 %d 0 0", s.busy, idle, s.stolen)
	m := fstest.MapFS{
		"proc/stat":                 text("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 " + line + "\ncpu1 " + line + "\nintr 1\n"),
		"proc/self/mountinfo":       text(groups),
		"proc/self/cgroup":          text(ours),
		"proc/50/stat":              stat(1, s.master),
		"proc/50/status":            text("Name:\ta\nCpus_allowed_list:\t0,4-7\n"),
		"proc/50/limits":            text("Limit  Soft Limit\nMax open files            256    4096    files\n"),
		"proc/50/fd/0":              text(""),
		"proc/50/task/50/stat":      stat(1, s.master),
		"proc/51/stat":              stat(50, s.worker+s.second),
		"proc/51/status":            text("Cpus_allowed_list:\t0-7\n"),
		"proc/51/limits":            text("Max open files            512    4096    files\n"),
		"proc/51/fd/0":              text(""),
		"proc/51/fd/1":              text(""),
		"proc/51/cgroup":            text("2:cpu:/a/b\n0::/a/b\n"),
		"proc/51/task/51/stat":      stat(1, s.worker),
		"proc/51/task/52/stat":      text("52 (disk) D 1 1 1"),
		"proc/60/stat":              stat(1, 99),
		"proc/51/task/52/schedstat": sched(s.second),
		"proc/51/task/51/schedstat": sched(s.worker),
	}
	for dir, n := range map[string]int{"a": s.outer, "a/b": s.throttled} {
		m["sys/fs/cgroup/"+dir+"/cpu.stat"] = text(fmt.Sprintf("nr_periods %d\nnr_throttled %d\n", s.periods, n))
	}
	m["sys/fs/cgroup/a/cpu.max"] = text("150000 100000\n")
	m["sys/fs/cgroup/a/b/cpu.max"] = text("max 100000\n")
	return m
}

// TestTreeUse: what the processes of a server used between two readings.
func TestTreeUse(t *testing.T) {
	begin := treeState{
		master: 1, worker: 5, second: 2, busy: 100, stolen: 10, at: 10, periods: 100, throttled: 7, outer: 50,
	}
	end := treeState{
		master: 1.5, worker: 7, second: 2.25, busy: 250, stolen: 30, at: 12, periods: 120, throttled: 7, outer: 65,
	}
	want := TreeUse{
		CPU: new(2.75), Busiest: new(2.0), Processors: 2, HostBusy: new(0.75), Stolen: new(0.1), Throttled: new(0.75),
		Quota: 1.5,
	}
	without := func(u TreeUse) TreeUse { u.Throttled, u.Quota = nil, 0; return u }
	const version1 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu\n"
	old := func(m fstest.MapFS) {
		for _, dir := range []string{"a", "a/b"} {
			delete(m, "sys/fs/cgroup/"+dir+"/cpu.max")
		}
		m["sys/fs/cgroup/a/cpu.cfs_quota_us"] = text("50000\n")
		m["sys/fs/cgroup/a/b/cpu.cfs_quota_us"] = text("-1\n")
		m["sys/fs/cgroup/a/cpu.cfs_period_us"] = text("100000\n")
		m["sys/fs/cgroup/a/b/cpu.cfs_period_us"] = text("100000\n")
	}
	half := want
	half.Quota = 0.5
	for _, c := range []struct {
		name, mounts, ours string
		change             func(fstest.MapFS)
		want               TreeUse
	}{
		{"a quota around the group", unified, "0::/c\n", nil, want},
		{"version 1 of control groups", version1, "2:cpu:/c\n", old, half},
		{"the quota holds tare, too", unified, "0::/a/c\n", nil, without(want)},
		{"control groups cannot be seen", "", "", nil, without(want)},
		{"no times of threads in nanoseconds", unified, "0::/c\n", func(m fstest.MapFS) {
			delete(m, "proc/51/task/51/schedstat")
		}, want},
		{"no times of processors", unified, "0::/c\n", func(m fstest.MapFS) { delete(m, "proc/stat") }, TreeUse{
			CPU: new(2.75), Busiest: new(2.0), Throttled: new(0.75), Quota: 1.5,
		}},
	} {
		var r [2]TreeReading
		for i, s := range []treeState{begin, end} {
			m := s.plant(c.mounts, c.ours)
			if c.change != nil {
				c.change(m)
			}
			var err error
			if r[i], err = (Tree{PID: 50, StartTicks: 700, Root: m}).Read(t.Context()); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if d := cmp.Diff(c.want, r[1].Since(r[0]), cmpopts.EquateApprox(1e-9, 0)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestTreeState: descriptors, threads that wait for a disk, and processes that are no longer there.
func TestTreeState(t *testing.T) {
	m := treeState{}.plant("", "")
	at := Tree{PID: 50, StartTicks: 700, Root: m}
	r, err := at.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if open, limit := at.Descriptors(r); open != 2 || limit != 512 {
		t.Errorf("%d descriptors of %d, want 2 of 512", open, limit)
	}
	if waits, ok := at.WaitsForDisk(r); !waits || !ok {
		t.Errorf("waits for a disk: %v, %v", waits, ok)
	}
	delete(m, "proc/51/task/52/stat")
	if waits, ok := at.WaitsForDisk(r); waits || !ok {
		t.Errorf("after the thread had ended: waits for a disk: %v, %v", waits, ok)
	}
	for _, x := range []Tree{{PID: 50, StartTicks: 701, Root: m}, {PID: 49, Root: m}} {
		if _, err := x.Read(t.Context()); !errors.Is(err, ErrGone) {
			t.Errorf("process %d that began at %d: %v, want ErrGone", x.PID, x.StartTicks, err)
		}
	}
	if n := descriptorLimit("Max open files            unlimited            unlimited            files\n"); n != 0 {
		t.Errorf("an unlimited number is read as %d", n)
	}
}

// TestTreeOfBusyProcess: one thread of a live process is busy.
func TestTreeOfBusyProcess(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	at := Tree{PID: c.Process.Pid}
	var r [2]TreeReading
	for i := range r {
		time.Sleep(200 * time.Millisecond)
		var err error
		if r[i], err = at.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	u := r[1].Since(r[0])
	if u.CPU == nil || u.Busiest == nil || *u.CPU <= 0 || *u.Busiest > *u.CPU+0.02 || *u.Busiest < *u.CPU/2 {
		t.Errorf("of a process with one thread: %+v", u)
	}
	if u.Processors < 1 || u.HostBusy == nil || *u.HostBusy < 0 || *u.HostBusy > 1 {
		t.Errorf("of its processors: %+v", u)
	}
	if open, limit := at.Descriptors(r[1]); open < 3 || limit < open {
		t.Errorf("%d descriptors of %d", open, limit)
	}
	own := Tree{PID: os.Getppid()}
	if all, err := own.Read(t.Context()); err != nil || len(all.pids) == 0 {
		t.Errorf("the parent of this process: %v, %v", all.pids, err)
	} else {
		for _, pid := range all.pids {
			if pid == os.Getpid() || pid == c.Process.Pid {
				t.Errorf("process %d, of the branch that is tare's own, counts as its parent's", pid)
			}
		}
	}
}

// TestTreeOfJVM: a JVM stands still no longer for its collectors than at all.
func TestTreeOfJVM(t *testing.T) {
	read := func(collecting, stopped int64) TreeReading {
		counters := zgc(1_000_051_000)
		for i := range counters {
			switch counters[i].name {
			case "sun.gc.collector.2.time":
				counters[i].long = collecting
			case "sun.rt.safepointTime":
				counters[i].long = stopped
			}
		}
		m := fstest.MapFS{
			"proc/500/stat":                      text(statText("1", "5000")),
			"proc/500/status":                    text("NSpid:\t500\t7\n"),
			"proc/500/maps":                      text("7f3-7f4 rw-s 0 fe:00 99 /tmp/hsperfdata_app/7\n"),
			"proc/500/root/tmp/hsperfdata_app/7": {Data: perfBytes(binary.LittleEndian, counters...)},
		}
		r, err := Tree{PID: 500, Root: m}.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := read(1_000_000, 2_000_000)
	for _, c := range []struct {
		collecting, stopped int64
		want                *float64
	}{
		{1_500_000, 2_750_000, new(0.5)},
		{3_500_000, 3_000_000, new(1.0)}, // it counts concurrent work
		{1_000_000, 2_000_000, new(0.0)},
		{900_000, 2_500_000, nil}, // another JVM
	} {
		if d := cmp.Diff(c.want, read(c.collecting, c.stopped).Since(before).Stopped); d != "" {
			t.Errorf("%d and %d µs (-want +got):\n%s", c.collecting, c.stopped, d)
		}
	}
}
