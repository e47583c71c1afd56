package cli

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

// The memory that a command may take on top of what this process has.
const (
	memoryAtFirst   = 32 << 20
	memoryPerByte   = 1 << 10   // of a record
	memoryOfImports = 320 << 20 // whatever the file
)

// peakHeap returns the largest heap while a command runs, minus what was in use before.
func peakHeap(t *testing.T, args ...string) (heap int64, code int, out string) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that hardly any garbage is counted
	ballast := make([]byte, 64<<20)                  // with which a small heap is not collected all the time
	defer runtime.KeepAlive(ballast)
	debug.FreeOSMemory()
	before := heapInUse()
	done, sampled := make(chan struct{}), make(chan int64)
	go func() {
		most := before
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-done:
				tick.Stop()
				sampled <- most
				return
			case <-tick.C:
				most = max(most, heapInUse())
			}
		}
	}()
	code, out = runTare(t, args...)
	close(done)
	return <-sampled - before, code, out
}

// heapInUse returns the bytes of objects on the heap, including garbage that is not swept yet.
func heapInUse() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// craftedRecord writes a record of a question, with what add writes into it and the lines that follow.
func craftedRecord(t *testing.T, q design.Question, arms int, add func(w *record.Writer, must func(error)),
	lines ...string,
) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	clk := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	w, err := record.Create(t.TempDir(), record.Header{
		Area: "timer", Question: q, Experiment: record.Experiment{Name: "x"},
	}, nil, clk)
	must(err)
	plan := record.Plan{Load: record.Load{Duration: 10}}
	for i := range arms {
		plan.Treatments = append(plan.Treatments, design.Treatment{ID: fmt.Sprint("t", i), Baseline: i == 0})
	}
	must(w.Plan(plan))
	add(w, must)
	must(w.Close())
	f, err := os.OpenFile(filepath.Join(w.Dir(), record.JournalFile), os.O_WRONLY|os.O_APPEND, 0o600)
	must(err)
	_, err = f.WriteString(strings.Join(lines, "\n"))
	must(err)
	must(f.Close())
	return w.Dir()
}

// writeTrial writes a complete trial in which measure writes.
func writeTrial(w *record.Writer, arm, block int, measure func(treatment string) error) error {
	id := fmt.Sprint("t", arm)
	err := w.TrialBegin(record.TrialBegin{Trial: design.Trial{Treatment: id, Block: block}})
	if err == nil {
		err = measure(id)
	}
	if err != nil {
		return err
	}
	return w.TrialEnd(record.TrialEnd{Treatment: id, Block: block, Status: record.Complete})
}

// writeBatchTrial writes a complete trial with one value of each operation.
func writeBatchTrial(w *record.Writer, arm, block int, operations ...string) error {
	return writeTrial(w, arm, block, func(id string) error {
		for _, o := range operations {
			if err := w.Batches(record.Batches{
				Treatment: id, Block: block, Operation: o, Metric: "cpu", N: 1, Values: []float64{1},
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func operationNames(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("operation", i))
	}
	return out
}

// hostileRecords returns small records whose analysis could take unbounded memory.
func hostileRecords(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"a block of a high number": craftedRecord(t, design.Compare, 2, func(w *record.Writer, must func(error)) {
			for _, block := range []int{0, 1, 2, 99_999} {
				for arm := range 2 {
					must(writeBatchTrial(w, arm, block, operationNames(200)...))
				}
			}
		}),
		"operations of one block among many": craftedRecord(t, design.Compare, 2, func(w *record.Writer, must func(error)) {
			for block := range 1500 {
				for arm := range 2 {
					must(writeBatchTrial(w, arm, block, "one"))
				}
			}
			must(writeBatchTrial(w, 0, 1500, operationNames(1500)...))
		}),
		"hundreds of operations in a call each": craftedRecord(t, design.Compare, 10,
			func(w *record.Writer, must func(error)) {
				var calls []load.Call
				for k := range 256 {
					calls = append(calls, load.Call{
						Operation: uint8(k), Intended: 1000, Ready: 1001, Sent: 1002, FirstByte: 1003, Done: 1 << 61,
					})
				}
				for arm := range 10 {
					must(writeTrial(w, arm, 0, func(id string) error { return w.Calls(id, 0, calls) }))
				}
			}),
		"one file of calls named a thousand times": craftedRecord(t, design.Compare, 1,
			func(w *record.Writer, must func(error)) {
				must(w.TrialBegin(record.TrialBegin{Trial: design.Trial{Treatment: "t0"}, Operations: []string{"a"}}))
				must(w.Calls("t0", 0, make([]load.Call, 5000)))
			}, append(repeated(1000,
				`{"schema":"tare.record/v1","kind":"calls","data":{"treatment":"t0","block":0,"file":"calls-0000.bin"}}`),
				`{"schema":"tare.record/v1","kind":"trial-end","data":{"treatment":"t0","block":0,"status":"complete"}}`)...),
		"damaged lines": craftedRecord(t, design.Compare, 2, func(*record.Writer, func(error)) {},
			repeated(100_000, "x")...),
		"other names in each slice": craftedRecord(t, design.Soak, 1, func(w *record.Writer, must func(error)) {
			must(writeTrial(w, 0, 0, func(id string) error {
				for i := range 1000 {
					if err := w.Slice(record.Slice{
						Treatment: id, Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second,
						Operations: []record.SliceOperation{
							{Operation: fmt.Sprint("o", i), Outcomes: []record.SliceOutcome{{Outcome: load.OK, Count: 1}}, Mean: 1},
						},
					}); err != nil {
						return err
					}
				}
				return nil
			}))
		}),
	}
}

func repeated(n int, line string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = line
	}
	return out
}

func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRecordsTakeBoundedMemory: the size of a record bounds the memory that each form of its report takes.
func TestRecordsTakeBoundedMemory(t *testing.T) {
	hosttest.SkipIfShort(t)
	for name, dir := range hostileRecords(t) {
		t.Run(name, func(t *testing.T) {
			size := sizeOf(t, dir)
			heap, code, out := peakHeap(t, "report", dir, "-o", "json="+filepath.Join(t.TempDir(), "r.json"), "-o",
				"text="+filepath.Join(t.TempDir(), "r.txt"))
			t.Logf("%d bytes took %.1f MiB: %d for each, beyond the first %d MiB", size, float64(heap)/(1<<20),
				max(0, heap-memoryAtFirst)/size, memoryAtFirst>>20)
			if heap > memoryAtFirst+memoryPerByte*size {
				t.Errorf("a record of %d bytes took %d MiB\n%.300s", size, heap>>20, out)
			}
			if code == ExitUsage || !strings.Contains(out, "page") {
				t.Errorf("exit %d\n%.500s", code, out)
			}
		})
	}
}

// bomb returns a gzip file of one member: head, n times unit, tail. The repeated part is compressed only once, without
// reference to the text before it.
func bomb(t *testing.T, head, unit string, n int, tail string) string {
	t.Helper()
	const each = 10_000
	file, sum, size := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, uint32(0), 0
	add := func(times int, text string) {
		part := deflated(t, text)
		for range times {
			file, sum, size = append(file, part...), crc32.Update(sum, crc32.IEEETable, []byte(text)), size+len(text)
		}
	}
	add(1, head)
	add((n+each-1)/each, strings.Repeat(unit, each))
	add(1, tail)
	file = append(file, 1, 0, 0, 0xff, 0xff) // the last block of a stream, with nothing in it
	file = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(file, sum), uint32(size))
	name := filepath.Join(t.TempDir(), "bomb.gz")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// deflated returns text as blocks of a deflate stream that continues.
func deflated(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBombsDecompress checks that a bomb is the gzip file that the memory tests expect.
func TestBombsDecompress(t *testing.T) {
	f, err := os.Open(bomb(t, "head", "unit", 20_000, "tail"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	text, err := io.ReadAll(z)
	if want := "head" + strings.Repeat("unit", 20_000) + "tail"; err != nil || string(text) != want {
		t.Errorf("%d bytes, want %d: %v", len(text), len(want), err)
	}
}

// A bombFile is n times unit between head and tail.
type bombFile struct {
	format, head, unit string
	n                  int
	tail               string
}

// bombs returns small files that decompress to hundreds of megabytes, one of each format.
func bombs() map[string]bombFile {
	const sampled = `[{"benchmark":"a","mode":"sample","primaryMetric":{"scoreUnit":"ns/op","rawDataHistogram":[[[[1,1],`
	const averaged = `[{"benchmark":"a","mode":"avgt","primaryMetric":{"scoreUnit":"ns/op","rawData":[[1],`
	const xml = `<?xml version="1.0"?><testResults><sample t="1" ts="1" lb="a"/>`
	return map[string]bombFile{
		"k6":                    {"k6", "", `{"type":"Point","metric":"http_req_duration","data":{"time":"2026-01-01T00:00:00Z","value":1}}` + "\n", 400_000, ""},
		"k6 without an end":     {"k6", "", "aaaaaaaaaa", 40_000_000, ""},
		"k6 summary":            {"k6-summary", `{"metrics":{"http_req_duration":{"med":1}`, `,"a":{}`, 9_000_000, "}}"},
		"vegeta":                {"vegeta", "", `{"code":200,"timestamp":"2026-01-01T00:00:00Z","latency":1}` + "\n", 400_000, ""},
		"vegeta summary":        {"vegeta-summary", `{"latencies":{"50th":1`, `,"a":1`, 9_000_000, "}}"},
		"JMeter":                {"jmeter", "timeStamp,elapsed,label\n", "1,1,a\n", 9_000_000, ""},
		"JMeter, one row":       {"jmeter", "timeStamp,elapsed,label\n1,1,\"", "aaaaaaaaa\n", 40_000_000, ""},
		"JMeter, one text":      {"jmeter", xml, "aaaaaaaaaa", 40_000_000, ""},
		"JMeter, one tag":       {"jmeter", xml + "<x ", `a="" `, 60_000_000, ""},
		"JMeter, deep":          {"jmeter", xml, "<a>", 60_000_000, ""},
		"Go benchmarks":         {"gobench", "", "BenchmarkX 1 1 ns/op\n", 5_000_000, ""},
		"Go, units":             {"gobench", "BenchmarkX 1 1 ns/op\n", "Unit a b=c\n", 20_000_000, ""},
		"Go, configuration":     {"gobench", "BenchmarkX 1 1 ns/op\n", "a: b\n", 40_000_000, ""},
		"hyperfine":             {"hyperfine", `{"results":[{"command":"a","times":[1]}`, ",{}", 20_000_000, "]}"},
		"hyperfine, times":      {"hyperfine", `{"results":[{"command":"a","times":[1`, ",1", 9_900_000, "]}]}"},
		"JMH":                   {"jmh", averaged + `[]]}}`, ",{}", 20_000_000, "]"},
		"JMH, forks":            {"jmh", averaged + "[]", ",[]", 9_000_000, "]}}]"},
		"JMH, iterations":       {"jmh", averaged + "[1", ",1", 9_900_000, "]]}}]"},
		"JMH, histogram":        {"jmh", sampled + "[]", ",[]", 9_000_000, "]]]}}]"},
		"JMH, empty iterations": {"jmh", sampled + "[]]", ",[]", 9_000_000, "]]}}]"},
	}
}

// TestImportsTakeBoundedMemory: an import takes bounded memory, however much a compressed file expands.
func TestImportsTakeBoundedMemory(t *testing.T) {
	hosttest.SkipIfShort(t)
	for name, c := range bombs() {
		t.Run(name, func(t *testing.T) {
			file := bomb(t, c.head, c.unit, c.n, c.tail)
			size := sizeOf(t, file)
			heap, code, out := peakHeap(t, "import", "--format", c.format, "--results", t.TempDir(), file)
			t.Logf("%d bytes, which become %d, took %.1f MiB: exit %d, %.200s", size, len(c.unit)*c.n, float64(heap)/(1<<20),
				code, out)
			if heap > memoryOfImports {
				t.Errorf("%d bytes took %d MiB", size, heap>>20)
			}
			if code != ExitPass && code != ExitUsage {
				t.Errorf("exit %d\n%.500s", code, out)
			}
		})
	}
}
