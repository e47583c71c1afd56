package doctor

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/rigs/memtest"
)

func given(pairs ...string) *examiner {
	fs := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fs[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1] + "\n")}
	}
	return &examiner{Options: Options{Clock: clock.System{}}, root: fs}
}

func TestCPUQuota(t *testing.T) {
	for name, c := range map[string]struct {
		x     *examiner
		share float64
		group string
	}{
		"none":         {x: given("proc/self/cgroup", "0::/")},
		"v2, no limit": {x: given("proc/self/cgroup", "0::/a", "sys/fs/cgroup/a/cpu.max", "max 100000")},
		"v2": {
			given("proc/self/cgroup", "0::/a", "sys/fs/cgroup/a/cpu.max", "50000 100000"), 0.5,
			"/sys/fs/cgroup/a",
		},
		"v2, above": {
			given("proc/self/cgroup", "0::/a/b/c", "sys/fs/cgroup/a/b/cpu.max", "150000 100000", "sys/fs/cgroup/a/b/c/cpu.max",
				"200000 100000"), 1.5, "/sys/fs/cgroup/a/b",
		},
		"v2, top of a container": {
			given("proc/self/cgroup", "0::/", "sys/fs/cgroup/cpu.max", "20000 100000"), 0.2,
			"/sys/fs/cgroup",
		},
		"v1": {
			given("proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/a", "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "25000",
				"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "50000"),
			0.5, "/sys/fs/cgroup/cpu,cpuacct/a",
		},
		"v1, no limit": {x: given("proc/self/cgroup", "2:cpu:/a", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1",
			"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000")},
		"v1, above": {
			given("proc/self/cgroup", "2:cpu:/a/b", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "70000",
				"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000"), 0.7, "/sys/fs/cgroup/cpu/a",
		},
		"torn": {x: given("proc/self/cgroup", "0::/a\nx\n1:2", "sys/fs/cgroup/a/cpu.max", "50000")},
	} {
		share, group, found := c.x.cpuQuota()
		if share != c.share || group != c.group || found != (c.share > 0) {
			t.Errorf("%s: %v by %s (%v), want %v by %s", name, share, group, found, c.share, c.group)
		}
		check := c.x.quota()
		if (check.State == Limited) != (c.share > 0) || check.State == Limited && (check.Cause == "" || check.Next == "") {
			t.Errorf("%s: got %+v, want Limited with a cause and a next step only if there is a quota", name, check)
		}
	}
}

func TestCPUList(t *testing.T) {
	for text, want := range map[string]int{"0-3,8": 5, "0": 1, "0-1": 2, "": 0, "x": 0, "3-1": 0, "1-": 0, "0,2,4-5": 4} {
		if got := cpuList(text); got != want {
			t.Errorf("%q is %d CPUs, want %d", text, got, want)
		}
	}
}

func TestPortRange(t *testing.T) {
	const file = "proc/sys/net/ipv4/ip_local_port_range"
	for text, want := range map[string]State{
		"32768\t60999": OK, "1024\t65535": OK, "40000\t41000": Limited, "": Limited,
		"5 4": Limited, "0 70000": Limited, "x y": Limited,
	} {
		c := given(file, text).ports()
		if c.State != want || c.State != OK && (c.Cause == "" || c.Next == "") {
			t.Errorf("%q: %+v, want %s", text, c, want)
		}
	}
	c := given(file, "32768 60999").ports()
	if c.Values["rate_at_30s_timeout"] != 28232.0/30 || !strings.Contains(c.Found, "28232") ||
		!strings.Contains(c.Found, "941/s") {
		t.Errorf("got %+v, want 28232 ports and 941/s", c)
	}
}

func FuzzHostFiles(f *testing.F) {
	f.Add("0::/a", "50000 100000", "0-3,8", "32768 60999", "4096", "cpu 1 2 3 4 5 6 7 8 9 10")
	f.Add("2:cpu,cpuacct:/../..", "-1", "", "1", "-1", "")
	f.Fuzz(func(t *testing.T, group, quota, cpus, ports, queue, stat string) {
		defer memtest.Bound(t, len(group)+len(quota)+len(cpus)+len(ports)+len(queue)+len(stat))()
		x := given("proc/self/cgroup", group, "sys/fs/cgroup/a/cpu.max", quota, "sys/fs/cgroup/cpu.max", quota,
			"sys/devices/system/cpu/online", cpus,
			"proc/sys/net/ipv4/ip_local_port_range", ports, "proc/sys/net/core/somaxconn", queue, "proc/stat", stat,
			"proc/pressure/cpu", stat, "proc/cpuinfo", stat)
		for _, c := range []Check{
			x.quota(), x.ports(), x.listenQueue(), x.virtual(), x.governor(),
			steal(x.pressures(t.Context()), x.pressures(t.Context())),
		} {
			if c.Group == "" || c.Name == "" || c.State == "" || c.Found == "" {
				t.Errorf("check lacks its group, name, state or finding: %+v", c)
			}
			if (c.State == Limited || c.State == Missing || c.State == Broken) && c.Cause == "" {
				t.Errorf("no cause: %+v", c)
			}
		}
		if n := cpuList(cpus); n < 0 {
			t.Errorf("%d CPUs in %q", n, cpus)
		}
	})
}

func TestListenQueue(t *testing.T) {
	for text, want := range map[string]State{"4096": Info, "128": Limited, "": Info} {
		if c := given("proc/sys/net/core/somaxconn", text).listenQueue(); c.State != want {
			t.Errorf("%q: %+v, want %s", text, c, want)
		}
	}
}

func TestGovernorAndClock(t *testing.T) {
	const policy = "sys/devices/system/cpu/cpu%/cpufreq/scaling_governor"
	for want, x := range map[State]*examiner{
		Info: given(),
		OK: given(strings.Replace(policy, "%", "0", 1), "performance", strings.Replace(policy, "%", "1", 1),
			"performance"),
		Limited: given(strings.Replace(policy, "%", "0", 1), "performance",
			strings.Replace(policy, "%", "1", 1), "powersave"),
	} {
		if c := x.governor(); c.State != want {
			t.Errorf("%+v, want %s", c, want)
		}
	}
	slow := func() int {
		for from := monotonic(); monotonic() < from+int64(3*slowClock); {
			continue // the loop is the slowness
		}
		return 0
	}
	if cost := clockCost(slow); cost < 2*slowClock {
		t.Errorf("a clock of 3 µs costs %v ns", cost)
	}
}

func TestVirtual(t *testing.T) {
	c := given("proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor lahf_lm\n", "sys/class/dmi/id/sys_vendor", "QEMU",
		".dockerenv", "").virtual()
	for _, want := range []string{"hypervisor", "QEMU", "container"} {
		if !strings.Contains(c.Found, want) {
			t.Errorf("no %s in %q", want, c.Found)
		}
	}
	if c := given("proc/cpuinfo", "flags : fpu\n").virtual(); c.Found != "no sign of any" {
		t.Errorf("got %+v, want no sign of virtualization", c)
	}
}

func TestStealAndPressure(t *testing.T) {
	at := func(stolen, all, waited, elapsed float64) samples {
		s := func(name string, v float64) metric.Sample {
			return metric.Sample{Subject: probe.HostSubject, Metric: name, Value: v}
		}
		return samples{
			s(probe.Steal.Name, stolen), s(probe.HostAll.Name, all), s(probe.PressureCPU.Name, waited),
			s("elapsed", elapsed),
		}
	}
	before := at(1, 100, 10, 1000)
	for _, c := range []struct {
		after           samples
		steal, pressure State
	}{
		{at(1, 120, 10.1, 1010), OK, OK},
		{at(3, 120, 15, 1010), Limited, Limited},
		{samples{}, Info, Info},
	} {
		if got := steal(before, c.after); got.State != c.steal {
			t.Errorf("%+v, want %s", got, c.steal)
		}
		if got := pressure(before, c.after); got.State != c.pressure {
			t.Errorf("%+v, want %s", got, c.pressure)
		}
	}
	if got := steal(before, at(3, 120, 15, 1010)); got.Values["share"] != 0.1 || !strings.HasPrefix(got.Found, "10%") {
		t.Errorf("2 of 20 CPU-seconds stolen: %+v", got)
	}
}

func TestOpenFilesPutsTheLimitBack(t *testing.T) {
	var was, is unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	low := was
	low.Cur = min(was.Max, 1000)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	c := openFiles()
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &is); err != nil || is != low {
		t.Errorf("the limit was %+v and is %+v (%v)", low, is, err)
	}
	if c.Values["soft"] != float64(low.Cur) || c.Values["usable"] != float64(low.Max) {
		t.Errorf("%+v, want soft %d and usable %d", c, low.Cur, low.Max)
	}
}

func TestSpread(t *testing.T) {
	var ns []float64
	for i := range 100 {
		ns = append(ns, float64((i*37)%100+1)*1e3)
	}
	if s := spreadOf(ns); s.p50 != 50*time.Microsecond || s.p99 != 99*time.Microsecond ||
		s.max != 100*time.Microsecond || s.n != 100 {
		t.Errorf("got %+v", s)
	}
}

func TestTimersMeasure(t *testing.T) {
	x := &examiner{Options: Options{Time: time.Second}, root: fstest.MapFS{}, cpus: 2}
	for _, c := range x.timers(t.Context()) {
		if c.State == Broken {
			t.Errorf("got %+v, want a check that is not Broken", c)
		}
		if c.Name == "timers" && (c.Values["sleeps"] < 5 || c.Values["p99"] < c.Values["p50"] ||
			c.Values["max"] < c.Values["p99"]) {
			t.Errorf("got %+v, want 5 sleeps and ordered quantiles", c)
		}
	}
}

// TestOneCPUGetsNoPriority: a real-time thread on the only CPU could stop the Go runtime.
func TestOneCPUGetsNoPriority(t *testing.T) {
	x := &examiner{cpus: 1}
	if c, err := x.priority(); err == nil || c.State != Limited || c.Next == "" {
		t.Errorf("got %+v, %v; want Limited with a next step", c, err)
	}
}

func TestRefusalOfPriority(t *testing.T) {
	x := given("proc/self/cgroup", "2:cpu,cpuacct:/a", "sys/fs/cgroup/cpu,cpuacct/a/cpu.rt_runtime_us", "0")
	if cause, next := x.explainRefusal(); !strings.Contains(cause,
		"/sys/fs/cgroup/cpu,cpuacct/a has no real-time budget") || next == "" {
		t.Errorf("got cause %s; next %s", cause, next)
	}
	for name, x := range map[string]*examiner{
		"budget":   given("proc/self/cgroup", "2:cpu:/a", "sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", "950000"),
		"v2":       given("proc/self/cgroup", "0::/a"),
		"no group": given(),
	} {
		if cause, next := x.explainRefusal(); !strings.Contains(cause, "CAP_SYS_NICE") || next == "" {
			t.Errorf("%s: got cause %s; next %s; want CAP_SYS_NICE", name, cause, next)
		}
	}
}

func TestConnect(t *testing.T) {
	if c := loopback(t.Context()); c.State != OK {
		t.Errorf("got %+v, want OK", c)
	}
	if err := connect(t.Context(), "192.0.2.1"); err == nil {
		t.Error("connected from an address that this host does not have")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c := loopback(ctx); c.State != Broken || c.Cause == "" || c.Next == "" {
		t.Errorf("got %+v, want Broken with a cause and a next step", c)
	}
}

func TestLatenessIsMeasured(t *testing.T) {
	s, err := serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	late, c := lateness(t.Context(), s.addr, 200*time.Millisecond)
	if c.State == Broken || late == nil {
		t.Fatalf("got %+v, want lateness", c)
	}
	if late.Calls != 200 || late.P50 > late.P99 || late.P99 > late.Max || late.Achieved <= 0 || late.Achieved > 1 {
		t.Errorf("got %+v, want 200 calls and ordered quantiles", *late)
	}
	// A server that is not there is no measurement.
	if late, c := lateness(t.Context(), netip.MustParseAddrPort("127.0.0.1:1"), 200*time.Millisecond); late != nil ||
		c.State != Broken || c.Cause == "" {
		t.Errorf("got %+v, %+v; want Broken with a cause", late, c)
	}
}
