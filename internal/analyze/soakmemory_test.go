package analyze

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

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
