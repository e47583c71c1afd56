package probe_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) {
	switch child, arg, _ := strings.Cut(os.Getenv("TARE_PROBE_TEST_CHILD"), " "); child {
	case "listen":
		listen(arg)
	case "hold":
		hold(arg)
	case "1":
		x := uint64(1)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); x += x >> 3 { // burns CPU until it is killed
		}
		os.Exit(int(x & 1))
	}
	hosttest.Main(m)
}

// listen serves nobody on a port of all addresses, until it is killed.
func listen(port string) {
	ln, err := net.Listen("tcp", ":"+port)
	if err != nil {
		panic(err)
	}
	fmt.Printf("listening %d\n", ln.Addr().(*net.TCPAddr).Port)
	time.Sleep(time.Minute)
	panic("nobody has ended this process")
}

// hold keeps so many MiB of small pages in memory, until it is killed.
func hold(mib string) {
	n, err := strconv.Atoi(mib)
	if err != nil {
		panic(err)
	}
	b, err := unix.Mmap(-1, 0, n<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // as a JVM's heap by default
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	fmt.Println("holding")
	time.Sleep(time.Minute)
	panic("nobody has ended this process")
}

var root = os.DirFS("testdata/root")

func values(t *testing.T, p probe.Probe) map[string]float64 {
	t.Helper()
	list, err := p.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]float64)
	for _, s := range list {
		if s.Subject != p.Subject() {
			t.Errorf("sample about %q from a probe of %q", s.Subject, p.Subject())
		}
		if _, twice := m[s.Metric]; twice {
			t.Errorf("%s was read twice", s.Metric)
		}
		m[s.Metric] = s.Value
	}
	return m
}

func TestFixtures(t *testing.T) {
	for _, c := range []struct {
		name string
		p    probe.Probe
		want map[string]float64
	}{
		{
			// 100: 2.00 + 10.00 reaped; 101: 0.15; 102: 0.01 + 0.04. RSS: 1000 and 1010 KiB from smaps_rollup, 50 pages from
			// stat. PSS, peak are unknown for 102, so they are absent.
			"process tree",
			probe.Process{Name: "endpoint", PID: 100, StartTicks: 4242, Root: root},
			map[string]float64{
				"cpu": 12.2, "rss": 2010*1024 + 50*float64(os.Getpagesize()), "threads": 10, "processes": 3,
				"started": 4242, "fds": 9,
			},
		},
		{
			"one process",
			probe.Process{Name: "a", PID: 103, Root: root},
			map[string]float64{
				"cpu": 199.98, "rss": 9999 * float64(os.Getpagesize()), "threads": 1, "processes": 1,
				"started": 4000,
			},
		},
		{
			"cgroup v2",
			probe.Cgroup{Name: "endpoint", Paths: []string{"/sys/fs/cgroup/limited"}, Root: root},
			map[string]float64{
				"cgroup_cpu": 2.5, "periods": 120, "throttled_periods": 30, "throttled_time": 1.5,
				"memory": 1 << 20, "memory_peak": 2 << 20,
			},
		},
		{
			"cgroup v1",
			probe.Cgroup{Name: "endpoint", Paths: []string{"/v1/cpu", "/v1/cpuacct", "/v1/memory", "/v1/gone"}, Root: root},
			map[string]float64{
				"cgroup_cpu": 1.25, "periods": 50, "throttled_periods": 25, "throttled_time": 2.5, "memory": 4096,
				"memory_peak": 8192,
			},
		},
		{
			"listen queue",
			probe.ListenQueue{Name: "endpoint", Port: 0x4D58, Root: root},
			map[string]float64{"listen_queue": 1025 + 2},
		},
		{
			"empty listen queue",
			probe.ListenQueue{Name: "endpoint", Port: 0x4D59, Root: root},
			map[string]float64{"listen_queue": 0},
		},
		{"host", probe.Host{Root: root}, map[string]float64{
			"host_cpu": 13.35, "host_all": 64.85, "steal": 0.9,
			"load": 0.42,
		}},
		{
			"host before steal was known",
			probe.Host{Root: fstest.MapFS{"proc/stat": {Data: []byte("cpu 1 2 3 4\n")}}},
			map[string]float64{"host_cpu": 0.06, "host_all": 0.1},
		},
		{"pressure", probe.PSI{Root: root}, map[string]float64{"pressure_cpu": 73.458083, "pressure_io": 3.311722}},
		{"no pressure", probe.PSI{Root: fstest.MapFS{}}, map[string]float64{}},
	} {
		if d := cmp.Diff(c.want, values(t, c.p), cmpopts.EquateApprox(1e-9, 1e-9)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, d)
		}
	}
	if d := cmp.Diff([]string{"performance", "powersave"}, probe.Host{Root: root}.Governors()); d != "" {
		t.Error(d)
	}
}

func TestGone(t *testing.T) {
	for _, p := range []probe.Probe{
		probe.Process{Name: "a", PID: 99, Root: root},
		probe.Process{Name: "a", PID: 100, StartTicks: 4243, Root: root}, // another process has the pid now
		probe.Process{Name: "a", PID: 200, Root: root},                   // unreadable
		probe.Cgroup{Name: "a", Paths: []string{"/sys/fs/cgroup/none"}, Root: root},
		probe.ListenQueue{Name: "a", Port: 1, Root: root},
		probe.ListenQueue{Name: "a", Port: 0x9C40, Root: root}, // connected, not listening
	} {
		if got, err := p.Read(t.Context()); !errors.Is(err, probe.ErrGone) || got != nil {
			t.Errorf("%+v: %v, %v; want ErrGone", p, got, err)
		}
	}
	if _, err := (probe.Host{Root: fstest.MapFS{}}).Read(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a host without /proc: %v, want fs.ErrNotExist", err)
	}
}

func TestContextIsHonoured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range []probe.Probe{
		probe.Process{Name: "a", PID: 100, Root: root},
		probe.Cgroup{Name: "a", Paths: []string{"/v1/cpu"}, Root: root},
		probe.ListenQueue{Name: "a", Port: 0x4D58, Root: root},
		probe.Host{Root: root},
		probe.PSI{Root: root},
	} {
		if _, err := p.Read(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: %v, want context.Canceled", p, err)
		}
	}
}

// TestDeltaOfAReplacedProcess: what two processes counted is never subtracted, also when the second has counted more.
func TestDeltaOfAReplacedProcess(t *testing.T) {
	at := func(started, cpu, throttled float64) []metric.Sample {
		return []metric.Sample{
			{Subject: "endpoint", Metric: "started", Value: started},
			{Subject: "endpoint", Metric: "cpu", Value: cpu},
			{Subject: "endpoint", Metric: "throttled_periods", Value: throttled},
			{Subject: "sts", Metric: "cpu", Value: cpu},
		}
	}
	kept := []metric.Sample{
		{Subject: "endpoint", Metric: "cpu", Value: 3},
		{Subject: "endpoint", Metric: "throttled_periods", Value: 5},
		{Subject: "sts", Metric: "cpu", Value: 3},
	}
	if d := cmp.Diff(kept, probe.Delta(at(10, 1, 2), at(10, 4, 7))); d != "" {
		t.Errorf("the same process (-want +got):\n%s", d)
	}
	if d := cmp.Diff(kept[1:], probe.Delta(at(10, 1, 2), at(11, 4, 7))); d != "" {
		t.Errorf("another process (-want +got):\n%s", d)
	}
}

func TestDelta(t *testing.T) {
	sample := func(subject, m string, v float64) metric.Sample {
		return metric.Sample{Subject: subject, Metric: m, Value: v}
	}
	jvm := probe.Quantity{Metric: metric.Metric{Name: "gc_seconds", Unit: metric.Seconds}, Kind: probe.Counter}
	before := []metric.Sample{
		sample("a", "cpu", 10), sample("b", "cpu", 50), sample("a", "rss", 100), sample("a", "gc_seconds", 1),
		sample("a", "mystery", 1),
		sample("a", "periods", 10), sample("a", "throttled_periods", 4), sample("a", "fds", 3),
	}
	after := []metric.Sample{
		sample("a", "cpu", 12.5), sample("b", "cpu", 1), sample("a", "rss", 90), sample("a", "gc_seconds", 1.25),
		sample("a", "mystery", 3),
		sample("a", "periods", 30), sample("a", "throttled_periods", 9), sample("c", "cpu", 7), sample("c", "rss", 8),
	}
	got := probe.Delta(before, after, jvm)
	want := []metric.Sample{ // b restarted, c was not there before, mystery has no kind
		sample("a", "cpu", 2.5), sample("a", "rss", 90), sample("a", "gc_seconds", 0.25), sample("a", "periods", 20),
		sample("a", "throttled_periods", 5), sample("c", "rss", 8),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if share, ok := probe.Share(got, "a", probe.ThrottledPeriods, probe.Periods); !ok || share != 0.25 {
		t.Errorf("share = %v, %v; want 0.25", share, ok)
	}
	if share, ok := probe.Share(got, "c", probe.ThrottledPeriods, probe.Periods); ok {
		t.Errorf("share of nothing = %v", share)
	}
	if _, ok := probe.Share([]metric.Sample{sample("a", "steal", 0), sample("a", "host_all", 0)}, "a", probe.Steal,
		probe.HostAll); ok {
		t.Error("0/0 has a share")
	}
}

func TestQuantitiesAreExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range probe.Quantities() {
		if seen[q.Name] {
			t.Errorf("%s is declared twice", q.Name)
		}
		seen[q.Name] = true
		if !strings.HasSuffix(q.Help, ".") || q.Unit == "" || q.Better == "" {
			t.Errorf("%+v is incomplete", q)
		}
	}
}

// TestProcessSeesAChildWork reads this test and a child that burns CPU: the child's time is part of the tree's before
// and after it has been reaped.
func TestProcessSeesAChildWork(t *testing.T) {
	p := probe.Process{Name: "self", PID: os.Getpid()}
	read := func() []metric.Sample {
		t.Helper()
		s, err := p.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "TARE_PROBE_TEST_CHILD=1")
	before := read()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := probe.Process{Name: "child", PID: cmd.Process.Pid}
	childCPU := 0.0
	for range 1000 {
		time.Sleep(10 * time.Millisecond)
		s, err := child.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if childCPU, _ = probe.Find(s, "child", probe.CPU); childCPU > 0.2 {
			break
		}
	}
	live := read()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	reaped := read()
	if _, err := child.Read(t.Context()); !errors.Is(err, probe.ErrGone) {
		t.Errorf("reading the reaped child: %v, want ErrGone", err)
	}
	if n, _ := probe.Find(live, "self", probe.Processes); n < 2 {
		t.Errorf("tree of %v processes, want at least 2", n)
	}
	for name, after := range map[string][]metric.Sample{"live": live, "reaped": reaped} {
		got, ok := probe.Find(probe.Delta(before, after), "self", probe.CPU)
		if !ok || got < childCPU*0.9 {
			t.Errorf("%s: the tree used %.3f CPU-s, its child alone %.3f", name, got, childCPU)
		}
	}
	for _, q := range []probe.Quantity{probe.RSS, probe.PSS, probe.Threads, probe.FDs, probe.RSSPeak} {
		if v, ok := probe.Find(live, "self", q); !ok || v <= 0 {
			t.Errorf("%s of this process = %v, %v", q.Name, v, ok)
		}
	}
}

// TestListenQueueOfARealSocket: nobody accepts, so three connections wait.
func TestListenQueueOfARealSocket(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 37) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	for range 3 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	got := values(t, probe.ListenQueue{Name: "x", Port: port})
	told := values(t, probe.ListenQueue{Name: "x", Port: port, PID: os.Getpid()}) // by /proc/PID/net/tcp
	if got["listen_queue"] != 3 || told["listen_queue"] != 3 {
		t.Errorf("listen_queue = %v and %v, want 3", got["listen_queue"], told["listen_queue"])
	}
	if limit, ok := got["listen_queue_limit"]; !ok {
		hosttest.Untried(t, "this kernel has no inet_diag", "run on one that has")
	} else if limit != 37 {
		t.Errorf("listen_queue_limit = %v, want 37", limit)
	}
}

func TestThisHost(t *testing.T) {
	host := values(t, probe.Host{})
	if !(host["host_all"] > 0 && host["host_cpu"] > 0 && host["host_cpu"] <= host["host_all"]) {
		t.Errorf("host: %v", host)
	}
	if _, err := os.Stat("/proc/pressure/cpu"); err == nil {
		if p := values(t, probe.PSI{}); p["pressure_cpu"] <= 0 {
			t.Errorf("pressure: %v", p)
		}
	}
}

// TestFixturesAreWhole: a fixture that lost its files would make the absent values above look right.
func TestFixturesAreWhole(t *testing.T) {
	n := 0
	err := filepath.WalkDir("testdata/root", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil || n < 35 {
		t.Error(fmt.Errorf("%d files: %w", n, err))
	}
}
