package workload

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

func hide(t *testing.T, dir, file string) (restore func()) {
	t.Helper()
	from, to := filepath.Join(dir, file), filepath.Join(dir, file+".hidden")
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(to, from); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if seen[k.Name] || k.Help == "" || k.Span <= 0 {
			t.Errorf("%+v is named twice or says too little", k)
		}
		seen[k.Name] = true
		got, ok := Find(k.Name)
		if !ok || got.Help != k.Help {
			t.Errorf("find %s: %+v, %v", k.Name, got, ok)
		}
	}
	if _, ok := Find("execl"); ok {
		t.Error("found a kind that there is not")
	}
}

// TestKindsCost checks that every cost is present, that the thread and its children used no more CPU time than has
// passed, and that a call costs about the same in a batch eight times as large.
func TestKindsCost(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	c, dir := start(t)
	before := listFiles(t, dir)
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			n := max(1, calibrate(t, c, k)/2)
			// The least of several in turn, since the machine, or its disk, may be busy or slow for a while: for seconds.
			few, many := math.Inf(1), math.Inf(1)
			for round, begin := 0, time.Now(); round < 12 || time.Since(begin) < 20*time.Second; round++ {
				few = min(few, cpuPerCall(t, c, k.Name, n))
				many = min(many, cpuPerCall(t, c, k.Name, 8*n))
				if ratio := few / many; round >= 2 && ratio > 0.4 && ratio < 2.5 {
					return
				}
			}
			t.Errorf("%.0f ns a call in batches of %d, %.0f in batches of %d", few, n, many, 8*n)
		})
	}
	if after := listFiles(t, dir); after != before {
		t.Errorf("the workloads left something: %s, before %s", after, before)
	}
}

// cpuPerCall runs a batch, and fails the test if its cost is impossible.
func cpuPerCall(t *testing.T, c *Client, kind string, n int) float64 {
	t.Helper()
	cost, err := c.Run(t.Context(), kind, n)
	if err != nil {
		t.Fatal(err)
	}
	if cost.N != n || cost.Wall <= 0 || cost.CPU <= 0 || cost.Counted != (cost.Instructions > 0) {
		t.Errorf("impossible cost %+v", cost)
	}
	if float64(cost.CPU) > 1.1*float64(cost.Wall)+1e6 {
		t.Errorf("%v of CPU time in %v on one CPU", cost.CPU, cost.Wall)
	}
	return float64(cost.CPU) / float64(n)
}

func listFiles(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// sumKernelFile sums a number in a file of the kernel: the first field after each key.
func sumKernelFile(t *testing.T, file string, key string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 1 && strings.TrimSuffix(f[0], ":") == key {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s does not say %s", file, key)
	return 0
}

// tcpCounter returns a counter of /proc/net/snmp.
func tcpCounter(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for i := range names {
			if names[i] == name {
				n, _ := strconv.Atoi(f[i])
				return n
			}
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}

// runLocal runs n calls of a kind in this process, on the thread whose counters the test reads.
func runLocal(t *testing.T, kind, dir string, n int) {
	t.Helper()
	w := &worker{dir: dir, halt: &atomic.Bool{}, routines: make(map[string]routine)}
	defer w.close()
	if _, err := w.run(kind, n, 0); err != nil {
		t.Fatal(err)
	}
}

// TestKindsMakeTheirSystemCalls compares n calls with the kernel's counts: exactly if the counter is this thread's own,
// at least if it is the system's.
func TestKindsMakeTheirSystemCalls(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	if err := Setup(dir); err != nil {
		t.Fatal(err)
	}
	const io, stat = "/proc/thread-self/io", "/proc/stat"
	procs := func() int { return sumKernelFile(t, stat, "processes") }
	accepted := func() int { return tcpCounter(t, "PassiveOpens") }
	read := func() int { return sumKernelFile(t, io, "rchar") }
	written := func() int { return sumKernelFile(t, io, "wchar") }
	switches := func() int {
		const status = "/proc/thread-self/status"
		return sumKernelFile(t, status, "voluntary_ctxt_switches") + sumKernelFile(t, status, "nonvoluntary_ctxt_switches")
	}
	for _, k := range []struct {
		kind    string
		n       int
		counter func() int
		want    int
		own     bool // the counter is this thread's, which does little else
	}{
		{"fork", 20, procs, 20, false},
		{"spawn", 20, procs, 20, false},
		{"exec", 2*maxLinks + 1, procs, 3, false},
		{"shell", 2, procs, 2 * shells, false},
		{"connect", 70000, accepted, 70000, false}, // more than there are ports
		{"pipe", 1000, read, 1000 * 512, true},
		{"pipe", 1000, written, 1000 * 512, true},
		{"copy", 1000, read, 1000 * 4096, true},
		{"copy", 1000, written, 1000 * 4096, true},
		{"copy1024", 3000, written, 3000 * 1024, true}, // goes back to the start
		{"copy256", 3000, read, 3000 * 256, true},
		{"read", 1000, read, 1000 * 512, true},
		{"switch", 5000, read, 5000 * 4, true},
		{"switch", 5000, switches, 5000, false},
	} {
		n := k.n
		if testing.Short() && n > 10000 {
			n /= 70
			k.want /= 70
		}
		before := k.counter()
		runLocal(t, k.kind, dir, n)
		got := k.counter() - before
		if slack := 16 << 10; got < k.want || k.own && got > k.want+slack {
			t.Errorf("%d calls of %s: the kernel counted %d instead of %d", n, k.kind, got, k.want)
		}
	}
}

// TestKindsUseTheirFile counts by inotify(7) what is done to a file. Equal events in a row are reported once, so each
// is counted with one that comes between.
func TestKindsUseTheirFile(t *testing.T) {
	dir := t.TempDir()
	if err := Setup(dir); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		kind, file string
		mask       uint32
		n, begin   int // begin: events before the calls
	}{
		{"open", plainFile, unix.IN_OPEN | unix.IN_CLOSE_NOWRITE, 1000, 0},
		{"exec", programFile, unix.IN_OPEN | unix.IN_ACCESS, 500, 1},
		{"spawn", programFile, unix.IN_OPEN | unix.IN_ACCESS, 50, 1},
		{"fork", programFile, unix.IN_OPEN | unix.IN_ACCESS, 50, 1 - 50},
		{"create", "", unix.IN_CREATE | unix.IN_DELETE, 1000, 0},
	} {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.InotifyAddWatch(fd, filepath.Join(dir, k.file), k.mask); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		runLocal(t, k.kind, dir, k.n)
		runtime.UnlockOSThread()
		got := countEvents(t, fd, unix.IN_OPEN|unix.IN_CREATE)
		if got != k.begin+k.n {
			t.Errorf("%d calls of %s: %d events", k.n, k.kind, got)
		}
		_ = unix.Close(fd)
	}
}

// countEvents counts events of a kind until there are no more.
func countEvents(t *testing.T, fd int, mask uint32) (n int) {
	t.Helper()
	buf := make([]byte, 64<<10)
	for {
		size, err := unix.Read(fd, buf)
		if err != nil || size <= 0 {
			return n
		}
		for at := 0; at < size; {
			if binary.NativeEndian.Uint32(buf[at+4:])&mask != 0 {
				n++
			}
			at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[at+12:]))
		}
	}
}

// TestCopyCopies plants bytes in the source and finds them in the target.
func TestCopyCopies(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, size := range []struct {
		kind string
		size int
	}{{"copy", 4096}, {"copy1024", 1024}, {"copy256", 256}} {
		dir := t.TempDir()
		if err := Setup(dir); err != nil {
			t.Fatal(err)
		}
		planted := bytes.Repeat([]byte("0123456789abcdef"), fileSize/16)
		if err := os.WriteFile(filepath.Join(dir, sourceFile), planted, 0o600); err != nil {
			t.Fatal(err)
		}
		runLocal(t, size.kind, dir, 10)
		got, err := os.ReadFile(filepath.Join(dir, targetFile))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != fileSize || !bytes.Equal(got[:10*size.size], planted[:10*size.size]) || got[10*size.size] != 0 {
			t.Errorf("ten calls of %s did not copy ten blocks of %d", size.kind, size.size)
		}
	}
}

// TestHaltEndsABatch halts a batch of more calls than can be made.
func TestHaltEndsABatch(t *testing.T) {
	dir := t.TempDir()
	if err := Setup(dir); err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		w := &worker{dir: dir, halt: &atomic.Bool{}, routines: make(map[string]routine)}
		done := make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer w.close()
			_, err := w.run(k.Name, maxCalls, 0)
			done <- err
		}()
		time.Sleep(5 * time.Millisecond)
		w.halt.Store(true)
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), errHalted.Error()) {
				t.Errorf("%s: %v, want that it was halted", k.Name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s goes on", k.Name)
		}
	}
}

// BenchmarkKind runs batches of each kind's Span and reports median CPU and wall time per call, and the interquartile
// range of CPU time over the batches in percent of the median: what one call costs on this host, and how far single
// batches scatter.
func BenchmarkKind(b *testing.B) {
	c, _ := start(b)
	for _, k := range Kinds() {
		b.Run(k.Name, func(b *testing.B) {
			n := calibrate(b, c, k)
			var cpu, wall []float64
			for range max(20, b.N) {
				cost, err := c.Run(b.Context(), k.Name, n)
				if err != nil {
					b.Fatal(err)
				}
				cpu = append(cpu, float64(cost.CPU)/float64(n))
				wall = append(wall, float64(cost.Wall)/float64(n))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(n), "calls/batch")
			b.ReportMetric(quantile(cpu, .5), "cpu-ns/call")
			b.ReportMetric(quantile(wall, .5), "wall-ns/call")
			b.ReportMetric(100*(quantile(cpu, .75)-quantile(cpu, .25))/quantile(cpu, .5), "cpu-iqr-%")
			b.ReportMetric(100*(quantile(wall, .75)-quantile(wall, .25))/quantile(wall, .5), "wall-iqr-%")
		})
	}
}

// calibrate finds how many calls take the kind's Span of CPU time: on a busy machine wall time would end the search too
// early.
func calibrate(t testing.TB, c *Client, k Kind) int {
	t.Helper()
	n := 1
	for {
		cost, err := c.Run(t.Context(), k.Name, n)
		if err != nil {
			t.Fatal(err)
		}
		if cost.CPU > k.Span/2 || n > 1<<24 {
			return max(1, int(float64(n)*float64(k.Span)/float64(max(cost.CPU, time.Microsecond))))
		}
		n *= 4
	}
}

func quantile(x []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[int(math.Round(q*float64(len(s)-1)))]
}
