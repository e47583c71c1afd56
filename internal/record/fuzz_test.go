package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/hist"
	"tare/internal/load"
)

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
