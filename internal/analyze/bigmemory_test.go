package analyze

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

// recordVariable names the record that a child process analyzes.
const recordVariable = "TARE_TEST_RECORD"

// TestPeakOfAnalysis is the child process of TestManyCallsInLittleMemory: it analyzes a record and prints the most
// memory that it ever held.
func TestPeakOfAnalysis(t *testing.T) {
	dir := os.Getenv(recordVariable)
	if dir == "" {
		return // it is run by TestManyCallsInLittleMemory
	}
	debug.SetGCPercent(20) // garbage is hardly counted
	rep := reportOf(t, opened(t, dir))
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	blocks := 0
	if rep.Design != nil {
		blocks = rep.Design.Blocks
	}
	fmt.Printf("blocks %d, %d searches\n%s", blocks, len(rep.Capacity), status)
}

var peakLine = regexp.MustCompile(`(?:blocks 20, 0|blocks 0, 1) searches\n(?s:.*)VmHWM:\s+(\d+) kB`)

// peakOfAnalysis returns the most memory that a process held which analyzed a record, in bytes.
func peakOfAnalysis(t *testing.T, dir string) float64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeakOfAnalysis$")
	// Where others take the processors a collection beside the analysis ends late, and the heap grows meanwhile.
	cmd.Env = append(os.Environ(), recordVariable+"="+dir, "GODEBUG=gcstoptheworld=1")
	out, err := cmd.CombinedOutput()
	found := peakLine.FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v\n%s", err, bytes.TrimSpace(out))
	}
	kB, err := strconv.ParseFloat(string(found[1]), 64)
	must(t, err)
	return kB * 1024
}

// TestManyCallsInLittleMemory: what an analysis needs for four times as many calls is a few bytes for each, since it
// holds those of one trial at a time. Two quantiles in the tail are asked for, of two operations and of both together.
func TestManyCallsInLittleMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		hosttest.Missing(t, err.Error(), "run on Linux")
	}
	hosttest.SkipIfShort(t)
	const trials, few, many = 60, 250_000, 1_000_000
	peak := func(calls int) float64 {
		x := experiment{
			blocks: 20, calls: calls / trials, seed: 3, cost: millisecond, operations: []string{"token", "introspect"},
			budget: []string{"response.p99 <= +50%", "token.response.p90 <= 1s", "service.p99 <= 1s"},
		}
		return peakOfAnalysis(t, x.write(t, t.TempDir()))
	}
	least, most := peak(few), peak(many)
	perCall := (most - least) / (many - few)
	t.Logf(
		"%d calls take %.1f MB, %d take %.1f MB: %.1f bytes for each call more", few, least/1e6, many, most/1e6, perCall,
	)
	if perCall > 16 {
		t.Errorf("each call more takes %.1f bytes", perCall)
	}
}

// TestManyCallsOfASearchInLittleMemory: what the analysis of a search needs for four times as many calls is less than
// these calls take: it reads those of one step at a time. A budget asks for a quantile at one rate.
func TestManyCallsOfASearchInLittleMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		hosttest.Missing(t, err.Error(), "run on Linux")
	}
	hosttest.SkipIfShort(t)
	peak := func(factor float64) (memory, calls float64) {
		n := 0
		j := journal{budget: []string{"response.p99 <= 500ms at 7500/s"}, trace: func(string) capacity.Trace {
			tr := fastTrace(1, factor)
			n = tr.Calls.Len()
			return tr
		}}
		return peakOfAnalysis(t, j.write(t, t.TempDir())), float64(n)
	}
	least, few := peak(150)
	most, many := peak(600)
	perCall := (most - least) / (many - few)
	t.Logf(
		"%.0f calls take %.1f MB, %.0f take %.1f MB: %.1f bytes for each call more", few, least/1e6, many, most/1e6, perCall,
	)
	if perCall > 30 {
		t.Errorf("each call more takes %.1f bytes", perCall)
	}
}

// TestCallsInLittleRoom: what is counted of each of many calls allocates no more than their times need while they are
// put in order. A call takes 56 bytes as the generator records it.
func TestCallsInLittleRoom(t *testing.T) {
	const n = 300_000
	trace := &capacity.Trace{Read: time.Hour, Calls: make(load.Calls, n)}
	for i := range load.CallsOf(trace.Calls) {
		at := time.Duration(i) * 3 * time.Microsecond
		load.CallsOf(trace.Calls)[i] = load.Call{
			Operation: uint8(i % 2), Intended: at, Ready: at + 1, Sent: at + 2, Done: at + time.Millisecond,
		}
	}
	trace.Steps = []capacity.Step{{Role: capacity.RolePoint, Rate: n, Segment: load.Segment{End: time.Second}}}
	trial := &record.Trial{TrialBegin: record.TrialBegin{Operations: []string{"a", "b"}}}
	a := newAnalysis(&record.Record{})
	perCall := func(f func()) float64 {
		before := allocated()
		f()
		return float64(allocated()-before) / n
	}
	if got := perCall(func() { a.operations(trial, trace) }); got > 120 {
		t.Errorf(
			"the operations of a search allocate %.0f bytes a call, want three times of 8 while they are put in order", got,
		)
	}
	if got := perCall(func() { timeline("a", trace) }); got > 30 {
		t.Errorf("its timeline allocates %.0f bytes a call, want one time of 8 while it is put in order", got)
	}
	dir := experiment{blocks: 1, calls: n, seed: 1, cost: millisecond}.write(t, t.TempDir())
	r, err := record.Open(dir)
	must(t, err)
	a = newAnalysis(r)
	if got := perCall(func() {
		_, err := a.calls(r.Trials[0])
		must(t, err)
	}); got > 200 {
		t.Errorf("a trial of a comparison allocates %.0f bytes a call", got)
	}
}

// writeDay writes the record of a soak of 24 h at 1,000 calls a second: 8,640 slices of 10 s, five operations, 25
// values of probes.
func writeDay(t testing.TB, dir string) string {
	clk := clock.NewFake(epoch)
	w, err := record.Create(
		dir, record.Header{Experiment: record.Experiment{Name: "day", Seed: 1}, Area: "tribunal", Question: design.Soak}, nil,
		clk,
	)
	check(t, err)
	operations := []string{"healthcheck", "statistics", "monitoring", "guard-minmax", "guard-frequency"}
	trial := design.Trial{Treatment: "default"}
	check(t, w.Plan(record.Plan{
		Treatments: []design.Treatment{{ID: "default"}}, Trials: []design.Trial{trial},
		Load:   record.Load{Duration: 86400, Workers: 10},
		Budget: []string{"rss drift <= 1MiB/h", "response.p99 <= 50ms"},
	}))
	check(t, w.TrialBegin(record.TrialBegin{Trial: trial, Operations: operations}))
	const slice, perSlice = 10 * time.Second, 2000
	var at time.Duration
	for i := range 30 + 8640 {
		check(t, w.Slice(daySlice(at, slice, operations, i < 30, perSlice, i)))
		at += slice
		clk.Advance(slice)
		if i >= 30 && (i-30)%30 == 29 {
			check(t, w.Cells("default", 0, dayCells(len(operations), 30*perSlice)))
		}
	}
	check(t, w.TrialEnd(record.TrialEnd{Treatment: "default", Status: record.Complete, Seconds: at.Seconds()}))
	check(t, w.Finish(record.Finish{Status: record.Complete, Seconds: at.Seconds()}))
	check(t, w.Close())
	return w.Dir()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func daySlice(at, long time.Duration, operations []string, warm bool, calls uint64, i int) record.Slice {
	x := record.Slice{
		Treatment: "default", Start: at, End: at + long, WarmUp: warm, Due: 5 * calls, Sent: 5 * calls, LatenessP99: 12.5e-6,
		LatenessMax: 0.0001, CPU: 0.512,
	}
	for k, name := range operations {
		v := 0.001 * (1 + 0.01*float64((i*7+k*13)%11))
		x.Operations = append(x.Operations, record.SliceOperation{
			Operation: name, Outcomes: []record.SliceOutcome{{Outcome: load.OK, Count: calls}}, Mean: v, P50: 0.9 * v,
			P90: 2.1 * v, P99: 4.3 * v, Max: 9.7 * v, Service: 0.98 * v,
			BytesIn: calls * 431, BytesOut: calls * 612,
		})
	}
	for k := range 25 {
		name := []string{"started", "cpu", "rss", "threads", "fds"}[k%5]
		v := map[string]float64{
			"started": 77, "cpu": float64(i) * 1.2345678, "rss": 3e7 + float64((i*31)%997)*4096, "threads": 12, "fds": 30,
		}[name]
		x.Samples = append(x.Samples, metric.Sample{
			Subject: fmt.Sprintf("part-%d", k/5), Metric: name, At: at + long, Value: v,
		})
	}
	return x
}

func dayCells(operations int, calls uint64) []load.Cell {
	var out []load.Cell
	for k := range operations {
		c := load.Cell{
			Operation: k, Outcome: load.OK, Response: &hist.Histogram{}, Service: &hist.Histogram{}, PoolWait: &hist.Histogram{},
			Lateness: &hist.Histogram{},
		}
		for i := range uint64(600) {
			n := calls / 600
			c.Response.RecordN(int64(500_000+i*i*30), n)
			c.Service.RecordN(int64(480_000+i*i*30), n)
			c.PoolWait.RecordN(int64(i*10), n)
			c.Lateness.RecordN(int64(i*40), n)
		}
		out = append(out, c)
	}
	return out
}

// TestDayInMemory: reading and analyzing a day's soak needs less than 100 MB, and its record less than 200 MB.
func TestDayInMemory(t *testing.T) {
	hosttest.SkipIfShort(t)
	dir := writeDay(t, t.TempDir())
	size := int64(0)
	check(t, filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			i, err := d.Info()
			size += i.Size()
			return err
		}
		return err
	}))
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as in tare
	debug.FreeOSMemory()
	// A collector that is told of the limit keeps to it if what is needed lets it; on a busy machine it would be late
	// otherwise.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(90e6))
	base, stop, most := heapHeld(), make(chan struct{}), make(chan uint64)
	go func() {
		var top uint64
		for {
			select {
			case <-stop:
				most <- top
				return
			case <-time.After(5 * time.Millisecond):
				top = max(top, heapHeld())
			}
		}
	}()
	start := time.Now()
	r, err := record.Open(dir)
	check(t, err)
	rep, err := Analyze(r, Options{})
	check(t, err)
	took := time.Since(start)
	close(stop)
	used := float64(<-most-base) / 1e6
	t.Logf("%.1f MB on disk, at most %.1f MB of heap, %s", float64(size)/1e6, used, took.Round(time.Millisecond))
	if size > 200e6 || used > 100 {
		t.Errorf("%d bytes on disk, %.1f MB of heap", size, used)
	}
	if len(rep.Soak) != 6 || len(rep.Soak[0].Moments) > mostMoments {
		t.Errorf("%d entries, %d moments", len(rep.Soak), len(rep.Soak[0].Moments))
	}
}

// heapHeld is the memory of the heap, objects and what the collector has not given back, in bytes.
func heapHeld() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}
