package proc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
	"tare/rigs/memtest"
)

func FuzzStartTicks(f *testing.F) {
	f.Add([]byte("12 (a b) c) S 1 12 12 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 987654 1 1"))
	f.Add([]byte("12 (x"))
	f.Add([]byte(") "))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		if ticks, err := statField(b, fieldStart); err != nil && ticks != 0 && ticks != 1<<64-1 {
			t.Errorf("error %v with ticks %d", err, ticks)
		}
	})
}

func TestStartTicksParser(t *testing.T) {
	got, err := statField([]byte("12 (a b) c) S 1 12 12 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 987654 1 1"), fieldStart)
	if err != nil || got != 987654 {
		t.Errorf("got %d, %v; want 987654", got, err)
	}
	for _, bad := range []string{
		"", "12 (x) S 1 2", "12 x S",
		"1 (a) S 1 12 12 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 1 0 -3 1",
	} {
		if got, err := statField([]byte(bad), fieldStart); err == nil {
			t.Errorf("%q: got %d, want an error", bad, got)
		}
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add("31 24 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n", "2:cpu,cpuacct:/a\n0::/b\n")
	f.Add("31 24 0:27 /x /sys/fs/cgroup\\040a rw - cgroup2 cgroup2 rw\n", "0::/x/../y\n")
	f.Add("- - -", ":::")
	f.Fuzz(func(t *testing.T, mounts, member string) {
		defer memtest.Bound(t, len(mounts)+len(member))()
		own := membership(member)
		for _, fstype := range []string{"cgroup", "cgroup2"} {
			if m, ok := findMount(mounts, fstype, ""); ok && m.point == "" {
				t.Errorf("found a mount without a point in %q", mounts)
			} else if ok {
				_ = m.dirOf(own["cpu"])
			}
		}
	})
}

// tree writes files below a root that stands for "/".
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPlanHierarchy(t *testing.T) {
	const (
		v1Mount = "31 24 0:27 / /cg/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		v2Mount = "30 24 0:26 / /cg rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  hierarchy // dir and home relative to the root
		err   string
	}{
		"v1 own group": {
			files: map[string]string{
				"proc/self/mountinfo": v1Mount, "proc/self/cgroup": "2:cpu,cpuacct:/user/a\n",
				"cg/cpu/user/a/tasks": "",
			},
			want: hierarchy{dir: "/cg/cpu/user/a", home: "/cg/cpu/user/a"},
		},
		"v1 in a container without a namespace": {
			files: map[string]string{
				"proc/self/mountinfo": "31 24 0:27 /docker/c1 /cg/cpu rw - cgroup cgroup rw,cpu\n",
				"proc/self/cgroup":    "2:cpu:/docker/c1\n", "cg/cpu/tasks": "",
			},
			want: hierarchy{dir: "/cg/cpu", home: "/cg/cpu"},
		},
		"v2 nearest ancestor that hands out cpu": {
			files: map[string]string{
				"proc/self/mountinfo": v2Mount, "proc/self/cgroup": "0::/user/session\n",
				"cg/cgroup.subtree_control": "cpu memory\n",
				"cg/user/cgroup.type":       "domain\n", "cg/user/cgroup.subtree_control": "cpu\n",
				"cg/user/cgroup.controllers":  "cpu\n",
				"cg/user/session/cgroup.type": "domain\n", "cg/user/session/cgroup.subtree_control": "",
				"cg/user/session/cgroup.controllers": "cpu\n", "cg/user/session/cgroup.procs": "77\n",
			},
			want: hierarchy{dir: "/cg/user", home: "/cg/user/session", v2: true},
		},
		"v2 real root with processes": {
			files: map[string]string{
				"proc/self/mountinfo": v2Mount, "proc/self/cgroup": "0::/\n",
				"cg/cgroup.subtree_control": "", "cg/cgroup.controllers": "cpuset cpu\n", "cg/cgroup.procs": "1\n77\n",
			},
			want: hierarchy{dir: "/cg", home: "/cg", v2: true},
		},
		"hybrid: v2 without controllers, v1 with cpu": {
			files: map[string]string{
				"proc/self/mountinfo":           "1 2 0:1 / /cg/unified rw - cgroup2 cgroup2 rw\n" + v1Mount,
				"proc/self/cgroup":              "1:cpu:/\n0::/\n",
				"cg/unified/cgroup.controllers": "", "cg/cpu/tasks": "",
			},
			want: hierarchy{dir: "/cg/cpu", home: "/cg/cpu"},
		},
		"v2 container whose namespace root has our processes": {
			files: map[string]string{
				"proc/self/mountinfo": v2Mount, "proc/self/cgroup": "0::/\n", "cg/cgroup.type": "domain\n",
				"cg/cgroup.subtree_control": "", "cg/cgroup.controllers": "cpu\n", "cg/cgroup.procs": "1\n",
			},
			err: "contains processes",
		},
		"nothing": {files: map[string]string{"proc/self/mountinfo": "", "proc/self/cgroup": ""}, err: "not mounted"},
		"no proc": {err: "mountinfo"},
	} {
		root := tree(t, c.files)
		got, err := planHierarchy(root)
		got.dir, got.home = strings.TrimPrefix(got.dir, root), strings.TrimPrefix(got.home, root)
		if got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
		if c.err != "" && (!errors.Is(err, ErrNoCgroup) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want ErrNoCgroup with %q", name, err, c.err)
		}
	}
}

func TestMembership(t *testing.T) {
	got := membership("9:name=systemd:/\n2:cpu,cpuacct:/a:b\n0::/u\nbroken\n")
	want := map[string]string{"name=systemd": "/", "cpu": "/a:b", "cpuacct": "/a:b", "": "/u"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// fakeCPU is a process CPU clock that work advances together with the wall clock.
type fakeCPU struct {
	mu   sync.Mutex
	used time.Duration
	wall *clock.Fake
}

func (f *fakeCPU) read() (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used, nil
}

func (f *fakeCPU) work(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used += d
	f.wall.Advance(d)
}

// TestThrottleServesTheQuota: 100m with pieces of 4 ms: 10 ms in each 100 ms are 2.5 pieces. The third piece of a
// period runs into debt, which the next period pays: 100 pieces need 400 ms of CPU, that is 40 periods.
func TestThrottleServesTheQuota(t *testing.T) {
	for _, c := range []struct {
		share   float64
		piece   time.Duration
		n       int
		periods float64
	}{
		{0.1, 4 * time.Millisecond, 100, 40},
		{0.1, 35 * time.Millisecond, 10, 35}, // a piece longer than the quota
		{0.5, time.Millisecond, 1000, 20},
		{1, 10 * time.Millisecond, 100, 10},
	} {
		wall := clock.NewFake(time.Unix(0, 0))
		cpu := &fakeCPU{wall: wall}
		th, err := newThrottle(Quota{Share: c.share}, wall, cpu.read)
		if err != nil {
			t.Fatal(err)
		}
		for range c.n {
			if err := th.Do(t.Context(), func() { cpu.work(c.piece) }); err != nil {
				t.Fatal(err)
			}
		}
		got := wall.Now().Sub(time.Unix(0, 0)).Seconds() / 0.1
		if slack := 1 + float64(c.piece)/float64(defaultPeriod)/c.share; got < c.periods-slack || got > c.periods+1 {
			t.Errorf("share %v: %d pieces of %v took %.2f periods, want %v", c.share, c.n, c.piece, got, c.periods)
		}
		s := th.Stats()
		if c.share < 1 && (s.Throttled == 0 || s.Throttled > s.Periods || s.Time == 0) {
			t.Errorf("share %v: stats %+v", c.share, s)
		}
	}
}

// TestThrottleForgetsUnusedTime: after a long idle time only one quota is there, not the sum.
func TestThrottleForgetsUnusedTime(t *testing.T) {
	wall := clock.NewFake(time.Unix(0, 0))
	cpu := &fakeCPU{wall: wall}
	th, err := newThrottle(Quota{Share: 0.1}, wall, cpu.read)
	if err != nil {
		t.Fatal(err)
	}
	wall.Advance(10 * time.Second)
	begin := wall.Now()
	for range 20 { // 20 ms of work: the quota of two periods
		if err := th.Do(t.Context(), func() { cpu.work(time.Millisecond) }); err != nil {
			t.Fatal(err)
		}
	}
	if took := wall.Now().Sub(begin); took < defaultPeriod || took > 2*defaultPeriod {
		t.Errorf("20 ms of work after a pause took %v, want between one and two periods", took)
	}
	if s := th.Stats(); s.Throttled != 1 {
		t.Errorf("throttled in %d periods, want 1", s.Throttled)
	}
}

// TestThrottleCountsAllOfTheProcess: CPU time that did not pass through is charged too.
func TestThrottleCountsAllOfTheProcess(t *testing.T) {
	wall := clock.NewFake(time.Unix(0, 0))
	cpu := &fakeCPU{wall: wall}
	th, err := newThrottle(Quota{Share: 0.1}, wall, cpu.read)
	if err != nil {
		t.Fatal(err)
	}
	cpu.work(25 * time.Millisecond) // 2.5 quotas, used elsewhere
	if err := th.Do(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if at := wall.Now().Sub(time.Unix(0, 0)); at != 200*time.Millisecond {
		t.Errorf("ran at %v, want at 200ms, when the debt is paid", at)
	}
}

func TestThrottleHonoursContext(t *testing.T) {
	wall := clock.NewFake(time.Unix(0, 0))
	cpu := &fakeCPU{wall: wall}
	th, err := newThrottle(Quota{Share: 0.1}, wall, cpu.read)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = th.Do(t.Context(), func() {
		cancel()
		if err := th.Do(ctx, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
			t.Errorf("queued Do = %v, want context.Canceled", err)
		}
		cpu.work(time.Second)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := th.Do(ctx, func() { t.Error("ran") }); !errors.Is(err, context.Canceled) {
		t.Errorf("held-back Do = %v, want context.Canceled", err)
	}
}

func TestThrottleIsFirstComeFirstServed(t *testing.T) {
	th, err := NewThrottle(Quota{Share: 1}, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		order []int
		wg    sync.WaitGroup
	)
	err = th.Do(t.Context(), func() {
		for i := range 20 {
			queued := make(chan struct{})
			wg.Go(func() {
				close(queued)
				if err := th.Do(t.Context(), func() { mu.Lock(); order = append(order, i); mu.Unlock() }); err != nil {
					t.Error(err)
				}
			})
			<-queued
			time.Sleep(5 * time.Millisecond) // until it blocks in the queue
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for i, got := range order {
		if got != i {
			t.Fatalf("order %v", order)
		}
	}
}

func TestQuotaRefusesWhatTheKernelWould(t *testing.T) {
	for _, q := range []Quota{
		{},
		{Share: -1},
		{Share: 0.001},
		{Share: 0.5, Period: 2 * time.Second},
		{Share: 0.5, Period: time.Microsecond},
	} {
		if _, err := NewThrottle(q, clock.System{}); err == nil {
			t.Errorf("%+v: no error", q)
		}
		if _, err := NewCgroup("tare-test-quota", q); err == nil || errors.Is(err, ErrNoCgroup) {
			t.Errorf("%+v: NewCgroup error %v, want one about the quota", q, err)
		}
	}
}

// FuzzReady: whatever a child says first, it is a value or an error.
func FuzzReady(f *testing.F) {
	f.Add([]byte("{\"ready\":{\"addr\":\"127.0.0.1:1\"}}\nmore"))
	f.Add([]byte("{\"ready\":null}\n"))
	f.Add([]byte("panic: x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		ready := make(chan readyLine, 1)
		readReady(bytes.NewReader(b), ready)
		if r := <-ready; (r.err == nil) != json.Valid(r.value) {
			t.Errorf("%q: %q, %v", b, r.value, r.err)
		}
	})
}

// FuzzConfig: the other end of the same pipe.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n"))
	f.Add([]byte("[[[["))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		var into map[string]any
		if err := ReadConfig(bufio.NewReader(bytes.NewReader(b)), &into); err == nil &&
			!json.Valid(bytes.TrimSpace(b[:bytes.IndexByte(append(b, '\n'), '\n')])) {
			t.Errorf("%q is taken for %v", b, into)
		}
	})
}
