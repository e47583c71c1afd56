package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
	"tare/internal/hist"
	"tare/internal/load"
)

// journal returns the path of a record's journal, and what it holds.
func journal(t *testing.T, w *Writer) (path, text string) {
	t.Helper()
	path = filepath.Join(w.Dir(), JournalFile)
	b, err := os.ReadFile(path)
	must(t, err)
	return path, string(b)
}

// TestTornTail: a killed run keeps all but the line that was being written, and the histograms that were flushed.
func TestTornTail(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Slice(testSlice(0)), w.Cells("a", 0, testCells(100)), w.Slice(testSlice(1)),
		w.Note(Note{Text: "the last line"}), w.Close())
	path, whole := journal(t, w)
	last := strings.LastIndex(strings.TrimSuffix(whole, "\n"), "\n") + 1
	for cut := last + 1; cut < len(whole); cut++ {
		must(t, os.WriteFile(path, []byte(whole[:cut]), 0o600))
		r := open(t, w.Dir())
		complete := cut == len(whole)-1 // only the line break is missing
		torn := len(r.Warnings) == 1 && strings.Contains(r.Warnings[0], "torn")
		if torn == complete || (len(r.Notes) == 1) != complete || len(r.Trials) != 1 {
			t.Fatalf("cut at %d: warnings %q, notes %v, %d trials", cut, r.Warnings, r.Notes, len(r.Trials))
		}
		if d := cmp.Diff([]Slice{testSlice(0), testSlice(1)}, r.Trials[0].Slices); d != "" {
			t.Fatalf("cut at %d (-written +read):\n%s", cut, d)
		}
		n := 0
		if damaged, err := r.Trials[0].Histograms(func(*Interval) { n++ }); err != nil || damaged > 0 || n == 0 {
			t.Fatalf("cut at %d: %d histograms, %d damaged, %v", cut, n, damaged, err)
		}
	}
}

func TestAppendRepairsTornTail(t *testing.T) {
	for name, c := range map[string]struct {
		cut     int
		notes   int
		warning bool
	}{"torn": {7, 0, true}, "no line break": {1, 1, false}, "whole": {0, 1, false}} {
		t.Run(name, func(t *testing.T) {
			w, _ := create(t)
			must(t, w.Note(Note{Text: "the last line"}), w.Close())
			path, whole := journal(t, w)
			must(t, os.WriteFile(path, []byte(whole[:len(whole)-c.cut]), 0o600))
			again, err := appendTo(w.Dir(), clock.NewFake(epoch), resumption{ID: "ABCDEFGHIJKLMNOP"})
			must(t, err)
			must(t, again.Finish(Finish{Status: Complete}), again.Close())
			r := open(t, w.Dir())
			if len(r.Warnings) > 0 || len(r.Notes) != c.notes || r.Finish == nil || len(r.Resumed) != 1 {
				t.Errorf("reading: %q, notes %d, finish %v, resumed %d", r.Warnings, len(r.Notes), r.Finish, len(r.Resumed))
			}
			if (len(r.Warned) == 1) != c.warning {
				t.Errorf("recorded warnings %v", r.Warned)
			}
		})
	}
}

func TestDamagedMiddleLine(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Note(Note{Text: "x"}), w.Step("a", 0, "step", 1), w.Close())
	path, text := journal(t, w)
	lines := strings.Split(text, "\n")
	lines[1] = lines[1][:20] // the trial's beginning
	lines[2] = `{"schema":"tare.record/v1","kind":"future","at":"2026-03-01T12:00:00Z","data":{"a":[1]}}`
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	r := open(t, w.Dir())
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], "record.jsonl:2 is damaged") ||
		!strings.Contains(r.Warnings[1], `"a" in block 0 is missing`) {
		t.Errorf("warnings %q", r.Warnings)
	}
	if len(r.Unknown) != 1 || r.Unknown[0].Kind != "future" {
		t.Errorf("unknown %v", r.Unknown)
	}
	if len(r.Trials) != 1 || len(r.Trials[0].Steps) != 1 {
		t.Errorf("the trial's step was lost: %+v", r.Trials)
	}
}

func TestNewerVersionIsRejected(t *testing.T) {
	w, _ := create(t)
	must(t, w.Close())
	path, text := journal(t, w)
	must(t, os.WriteFile(path, []byte(
		text+`{"schema":"tare.record/v2","kind":"note","at":"2026-03-01T12:00:00Z"}`+"\n"), 0o600))
	_, err := Open(w.Dir())
	var newer *NewerError
	if !errors.As(err, &newer) || !strings.Contains(err.Error(), "newer tare") {
		t.Errorf("error %v", err)
	}
}

func TestNotARecord(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, JournalFile), []byte("{}\nhello\n"), 0o600))
	if _, err := Open(dir); !errors.Is(err, errNoHeader) {
		t.Errorf("no header: %v", err)
	}
}

func TestDamagedCalls(t *testing.T) {
	calls := randomCalls(3*chunkCalls, 9)
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, calls), w.Close())
	path := filepath.Join(w.Dir(), "calls-0000.bin")
	whole, err := os.ReadFile(path)
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		b := append([]byte(nil), whole[:rng.IntN(len(whole)-1)+1]...)
		if rng.IntN(2) == 0 {
			b = append([]byte(nil), whole...)
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		must(t, os.WriteFile(path, b, 0o600))
		r := open(t, w.Dir())
		got, err := r.Trials[0].Calls()
		must(t, err)
		if len(r.Warnings) != 1 || len(got)%chunkCalls != 0 || len(got) == len(calls) {
			t.Fatalf("%d bytes: %d calls, warnings %q", len(b), len(got), r.Warnings)
		}
		if !slices.Equal(calls[:len(got)], got) {
			t.Fatalf("wrong calls:\n%s", cmp.Diff(calls[:len(got)], got))
		}
	}
	must(t, os.Remove(path))
	if r := open(t, w.Dir()); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "missing") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestCallsFileOutsideTheRecord(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.put(KindCalls, callsRef{Treatment: "a", File: "../../calls-0000.bin"}),
		w.put(KindCalls, callsRef{Treatment: "a", File: "/etc/passwd"}), w.Close())
	r := open(t, w.Dir())
	if len(r.Warnings) != 2 || r.Trials[0].HasCalls() {
		t.Errorf("warnings %q, calls %v", r.Warnings, r.Trials[0].calls)
	}
}

// TestCallsFilesAreOfOneTrial: a journal that names one file many times does not read its calls as often.
func TestCallsFilesAreOfOneTrial(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, randomCalls(100, 1)))
	for range 3 {
		must(t, w.put(KindCalls, callsRef{Treatment: "a", File: "calls-0000.bin"}))
	}
	must(t, w.TrialBegin(begin("b", 0)), w.put(KindCalls, callsRef{Treatment: "b", File: "calls-0000.bin"}), w.Close())
	r := open(t, w.Dir())
	calls, err := r.Trials[0].Calls()
	must(t, err)
	if len(calls) != 100 || r.Trials[1].HasCalls() || len(r.Damaged) != 4 {
		t.Errorf("%d calls, those of the other: %v, damaged lines %v", len(calls), r.Trials[1].HasCalls(), r.Damaged)
	}
}

// TestCompressedHistogramsAreBounded: a short line could expand to any number of values by compression, which no
// measurement does.
func TestCompressedHistogramsAreBounded(t *testing.T) {
	encode := func(values int64) string {
		h := hdrhistogram.New(1, 1<<62, digits)
		for v := range values {
			must(t, h.RecordValue(v))
		}
		h.SetTag("a|0|x|ok|response")
		var b strings.Builder
		must(t, hdrhistogram.NewHistogramLogWriter(&b).OutputIntervalHistogram(h))
		return strings.TrimSpace(b.String())
	}
	if iv, err := parseInterval(encode(100)); err != nil || iv.Hist.Count() != 100 {
		t.Errorf("a hundred values: %v", err)
	}
	if _, err := parseInterval(encode(2000)); err == nil || !strings.Contains(err.Error(), "unfold") {
		t.Errorf("two thousand equally frequent values in %d bytes: %v", len(encode(2000)), err)
	}
}

// TestDamagedLinesAreCounted: a journal full of damage does not get a sentence for each line.
func TestDamagedLinesAreCounted(t *testing.T) {
	w, _ := create(t)
	must(t, w.Close())
	f, err := os.OpenFile(filepath.Join(w.Dir(), JournalFile), os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	_, err = f.WriteString(strings.Repeat("x\n", 10_000))
	must(t, err, f.Close())
	r := open(t, w.Dir())
	if len(r.Damaged) != 10_000 || len(r.Warnings) != mostWarned+1 ||
		!strings.Contains(r.Warnings[mostWarned], "9980 more lines") {
		t.Errorf("%d damaged, warnings %q", len(r.Damaged), r.Warnings)
	}
}

// TestPipesAndDevicesAreNotRead: a foreign record may have a pipe or a device in place of a file, or a file that the
// kernel shows, which must not be read forever.
func TestPipesAndDevicesAreNotRead(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"a pipe":                       func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":                     func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder":                     func(path string) error { return os.Mkdir(path, 0o700) },
		"a file that the kernel shows": func(path string) error { return os.Symlink("/proc/self/status", path) },
	} {
		w, _ := create(t)
		must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, randomCalls(10, 1)), w.Cells("a", 0, testCells(10)), w.Close())
		r := open(t, w.Dir())
		ended := make(chan error)
		for file, read := range map[string]func() error{
			"calls-0000.bin": func() error { _, err := r.Trials[0].Calls(); return err },
			LatencyFile:      func() error { _, err := r.Trials[0].Histograms(func(*Interval) {}); return err },
			ExperimentFile:   func() error { _, err := r.File(); return err },
			JournalFile:      func() error { _, err := Open(r.Dir); return err },
		} {
			path := filepath.Join(r.Dir, file)
			must(t, os.RemoveAll(path), place(path))
			go func() { ended <- read() }()
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), "is "+name) {
					t.Errorf("%s in place of %s: %v", name, file, err)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s in place of %s is read forever", name, file)
			}
		}
	}
}

func TestDamagedHistogram(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Cells("a", 0, testCells(100)),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	path := filepath.Join(w.Dir(), LatencyFile)
	b, err := os.ReadFile(path)
	must(t, err)
	b[len(b)-40] = '!'
	must(t, os.WriteFile(path, b, 0o600))
	n := 0
	damaged, err := open(t, w.Dir()).Trials[0].Histograms(func(*Interval) { n++ })
	must(t, err)
	if damaged != 1 || n != 1 {
		t.Errorf("damaged %d, read %d, want 1 and 1", damaged, n)
	}
	must(t, os.Truncate(path, int64(len(b)/2)))
	if damaged, err := open(t, w.Dir()).Trials[0].Histograms(func(*Interval) {}); err != nil || damaged == 0 {
		t.Errorf("truncated: damaged %d, %v", damaged, err)
	}
}

// FuzzJournal: any journal is read or rejected, and a record that was read never panics.
func FuzzJournal(f *testing.F) {
	w, err := Create(f.TempDir(), testHeader(), nil, fakeClock())
	if err != nil {
		f.Fatal(err)
	}
	err = errors.Join(w.TrialBegin(begin("a", 0)), w.Calls("a", 0, randomCalls(5, 1)), w.Cells("a", 0, testCells(9)),
		w.Step("a", 0, "step", 1),
		w.Slice(testSlice(0)), w.Slice(testSlice(1)), w.Answers(testAnswers()),
		w.Cells("a", 0, []load.Cell{phased("post", "a|b")}), w.Served(testServed()),
		w.TrialEnd(TrialEnd{Treatment: "a"}), w.Note(Note{Text: "x"}), w.Finish(Finish{Status: Complete}), w.Close())
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(w.Dir(), JournalFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(`{"schema":"tare.record/v1","kind":"cells","at":"2026-03-01T12:00:00Z","data":{"treatment":"a","offset":-1,"length":9223372036854775807}}`))
	f.Add([]byte("{\"schema\":\"tare.record/v9\"}\n\n\x00"))
	dir := w.Dir()
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocatedBytes()
		r, err := readJournal(bytes.NewReader(b), dir)
		wantBoundedMemory(t, before, 1<<20, 300, len(b))
		if err != nil {
			return
		}
		r.Pending()
		for _, trial := range r.Trials {
			trial.Complete()
			for _, s := range trial.Slices {
				for i := range s.Operations {
					s.Operations[i].Ended()
				}
			}
			if _, err := json.Marshal(trial.Answers); err != nil {
				t.Error(err)
			}
			if _, err := json.Marshal(trial.Served); err != nil {
				t.Error(err)
			}
			if _, err := trial.Calls(); err != nil {
				t.Logf("calls: %v", err)
			}
			if _, err := trial.Histograms(func(*Interval) {}); err != nil {
				t.Logf("histograms: %v", err)
			}
		}
		if _, err := json.Marshal(r.Changes); err != nil {
			t.Error(err)
		}
	})
}

// allocatedBytes returns the bytes that this process has allocated so far.
func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// wantBoundedMemory fails the test if more was allocated since before than first bytes, plus perByte for each byte that
// was read.
func wantBoundedMemory(t *testing.T, before, first, perByte uint64, n int) {
	t.Helper()
	if took := allocatedBytes() - before; took > first+perByte*uint64(n) {
		t.Errorf("%d bytes took %d", n, took)
	}
}

// FuzzCallsFile: a damaged file ends the reading without a panic.
func FuzzCallsFile(f *testing.F) {
	var b bytes.Buffer
	calls := randomCalls(3, 4)
	if err := errors.Join(writeChunk(&b, chunkMeta, 0, []byte(`{"treatment":"a"}`)),
		writeChunk(&b, chunkCall, len(calls), encodedCalls(calls))); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:len(b.Bytes())-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocatedBytes()
		c, err := newCallsReader(bytes.NewReader(b), "x")
		n := 0
		for err == nil {
			var got []load.Call
			if got, err = c.next(nil); len(got) > 0 {
				n += len(got)
			}
		}
		wantBoundedMemory(t, before, 2<<20, 100, len(b)) // a chunk has its place before it is read
		if n*leastCall > len(b) {
			t.Errorf("%d calls from %d bytes", n, len(b))
		}
	})
}

// FuzzCalls: calls survive encoding, and any payload is decoded or rejected.
func FuzzCalls(f *testing.F) {
	f.Add(encodedCalls(randomCalls(20, 2)), 20)
	f.Add([]byte{0x7f, 0, 0xff, 0xff}, 1)
	f.Fuzz(func(t *testing.T, b []byte, count int) {
		if count < 0 || count > len(b) {
			return
		}
		calls, err := decodeCalls(nil, b, count)
		if err != nil {
			return
		}
		again, err := decodeCalls(nil, encodedCalls(calls), len(calls))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(calls, again); d != "" {
			t.Error(d)
		}
	})
}

func encodedCalls(calls []load.Call) []byte {
	var b []byte
	prev := load.Call{}
	for i := range calls {
		b = appendCall(b, &calls[i], prev.Intended)
		prev = calls[i]
	}
	return b
}

// FuzzInterval: a line of the latency file is read or rejected.
func FuzzInterval(f *testing.F) {
	h := &hist.Histogram{}
	for i := range int64(200) {
		h.Record(i * i * 1000)
	}
	line, err := appendInterval(nil, &Interval{
		Treatment: "a b", Operation: "x", Outcome: load.OK, Measure: Response,
		Start: epoch, Length: 5, Hist: h,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(bytes.TrimSpace(line)))
	f.Add("Tag=a|0|x|ok|response,0,0,0,HISTFAAAAB")
	f.Add("Tag=a|0|x|ok|response")
	f.Add("Tag=a|0|x|ok|phase.a%2Cb,0,0,0,HISTFAAAAB")
	f.Fuzz(func(t *testing.T, line string) {
		before := allocatedBytes()
		iv, err := parseInterval(line)
		// The array of HdrHistogram takes half a megabyte, whatever the line.
		wantBoundedMemory(t, before, 8<<20, 400, len(line))
		if err != nil {
			return
		}
		iv.Hist.Quantile(0.99)
		var again Interval
		if err := again.setTag(iv.tag()); err != nil && !strings.Contains(string(iv.Measure), "|") {
			t.Errorf("tag %q cannot be read back: %v", iv.tag(), err)
		} else if name, ok := iv.Measure.Phase(); ok && (err != nil || again.Measure != iv.Measure) {
			t.Errorf("phase %q came back as %q, %v", name, again.Measure, err)
		}
	})
}
