package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// randomCalls returns calls that set every field somewhere, including outstanding, unsent and failed ones.
func randomCalls(n int, seed uint64) []load.Call {
	rng := rand.New(rand.NewPCG(seed, 1))
	calls := make([]load.Call, n)
	at := time.Duration(0)
	for i := range calls {
		c := &calls[i]
		c.Intended, c.Operation, c.Conn = at, uint8(rng.IntN(3)), uint32(rng.IntN(5000))
		at += time.Duration(rng.IntN(10_000_000))
		c.Outcome = load.Outcome(rng.IntN(load.Outcomes))
		last := c.Intended
		for _, p := range []*time.Duration{&c.Ready, &c.Sent, &c.FirstByte, &c.Done} {
			if rng.IntN(8) > 0 {
				last += time.Duration(rng.IntN(30_000_000))
				*p = last
			}
		}
		if rng.IntN(2) == 0 {
			c.Status, c.Errno = uint16(rng.IntN(600)), uint16(rng.IntN(2)*111)
		}
		c.Cause = load.Cause(rng.IntN(2) * rng.IntN(256))
	}
	return calls
}

func testHeader() Header {
	return Header{
		Tool:       Tool{Version: "0.1.0", Commit: "abc"},
		Experiment: Experiment{Name: "gke 2020/x", File: "gke.yaml", Seed: 42},
		Area:       "turnpike", Question: design.Capacity, Started: epoch,
		Host: Host{Name: "h", Kernel: "6.1", CPUs: 2, Go: "go1.26"},
	}
}

func create(t *testing.T) (*Writer, *clock.Fake) {
	t.Helper()
	c := clock.NewFake(epoch)
	w, err := Create(t.TempDir(), testHeader(), []byte("name: x\n"), c)
	if err != nil {
		t.Fatal(err)
	}
	return w, c
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *Record {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func begin(treatment string, block int) TrialBegin {
	return TrialBegin{
		Trial:      design.Trial{Block: block, Treatment: treatment, Seed: 7},
		Operations: []string{"token", "email, 2"},
	}
}

func testCells(n int) []load.Cell {
	rng := rand.New(rand.NewPCG(5, 5))
	c := load.Cell{
		Operation: 1, Outcome: load.Timeout, Unsent: 3, Response: &hist.Histogram{}, Service: &hist.Histogram{},
		Lateness: &hist.Histogram{},
	}
	for range n {
		c.Response.Record(int64(rng.ExpFloat64() * 5e6))
		c.Service.Record(int64(rng.ExpFloat64() * 5e3))
	}
	c.Service.Record(0)
	return []load.Cell{{Operation: 0, Outcome: load.OK, Response: &hist.Histogram{}}, c}
}

func TestRoundTrip(t *testing.T) {
	w, clk := create(t)
	calls := randomCalls(20_000, 3)
	plan := Plan{
		Treatments: []design.Treatment{{ID: "a b=c", Baseline: true, Levels: map[string]string{"b": "c"}}},
		Load:       Load{Timeout: 30, MaxRate: 2000, Rates: []float64{10, 100}}, Budget: []string{"capacity >= 100/s"},
		Notes: []string{"n"},
	}
	sample := Samples{
		Treatment: "a b=c", When: After,
		Samples: []metric.Sample{{Subject: "endpoint", Metric: "cpu", At: time.Second, Value: 1.5}},
	}
	gen := Generator{Treatment: "a b=c", Offered: 10, Sent: 9, Seconds: 1, CPUSeconds: 0.5}
	must(t, w.Plan(plan), w.Prepare(Prepare{Treatment: "a b=c", Seconds: 1}),
		w.Verify(Verify{Treatment: "a b=c", OK: true}),
		w.TrialBegin(begin("a b=c", 0)), w.Step("a b=c", 0, "step", map[string]int{"x": 1}), w.Samples(sample),
		w.Generator(gen))
	clk.Advance(3 * time.Second)
	must(t, w.Calls("a b=c", 0, calls[:15_000]), w.Calls("a b=c", 0, calls[15_000:]), w.Cells("a b=c", 0, testCells(1000)),
		w.Cells("a b=c", 0, testCells(10)),
		w.TrialEnd(TrialEnd{Treatment: "a b=c", Seconds: 3, Status: Complete}),
		w.Note(Note{Text: "no cgroup"}), w.Warning(Warning{Text: "hot"}),
		w.Finish(Finish{Status: Complete, Seconds: 3}), w.Close())

	r := open(t, w.Dir())
	if len(r.Warnings) > 0 {
		t.Errorf("warnings of an undamaged record: %q", r.Warnings)
	}
	h := testHeader()
	if want := "a2a79ea37edb1963efaae29281523ab441a8a99df048d204f22f3f413e325afc"; r.Header.Experiment.SHA256 != want {
		t.Errorf("sha256 %q", r.Header.Experiment.SHA256)
	}
	if len(r.Header.ID) < nameLength {
		t.Errorf("id %q", r.Header.ID)
	}
	h.Experiment.SHA256, h.ID = r.Header.Experiment.SHA256, r.Header.ID
	want := &Record{
		Header: h, Plan: plan, Prepared: []Prepare{{Treatment: "a b=c", Seconds: 1}},
		Verified: []Verify{{Treatment: "a b=c", OK: true}},
		Notes:    []Note{{Text: "no cgroup"}}, Warned: []Warning{{Text: "hot"}},
		Finish: &Finish{Status: Complete, Seconds: 3},
		Last:   epoch.Add(3 * time.Second),
		Trials: []*Trial{{
			TrialBegin: begin("a b=c", 0), Begin: epoch, Finished: epoch.Add(3 * time.Second),
			End:     &TrialEnd{Treatment: "a b=c", Seconds: 3, Status: Complete},
			Steps:   []Step{{Treatment: "a b=c", Name: "step", Payload: json.RawMessage(`{"x":1}`)}},
			Samples: []Samples{sample}, Generator: []Generator{gen},
			Counts: []Count{{Operation: "email, 2", Outcome: load.Timeout, Count: 1010, Unsent: 6}},
		}},
	}
	if d := cmp.Diff(want, r, cmp.FilterPath(func(p cmp.Path) bool {
		f := p.Last().String()
		return f == ".Dir" || f == ".dir" || f == ".calls" || f == ".cells" || f == ".held" || f == ".chunks" ||
			f == ".latest" || f == ".named" || f == ".counted" || f == ".madeUp" || f == ".seals" || f == ".size" ||
			f == ".begun" || f == ".before" || f == ".undoing"
	}, cmp.Ignore())); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
	got, err := r.Trials[0].Calls()
	must(t, err)
	if d := cmp.Diff(calls, got); d != "" {
		t.Errorf("calls differ (-want +got):\n%s", d)
	}
	file, err := r.File()
	must(t, err)
	if string(file) != "name: x\n" {
		t.Errorf("experiment file %q", file)
	}
}

func TestHistogramsKeepTheirCells(t *testing.T) {
	w, clk := create(t)
	cells := testCells(5000)
	must(t, w.TrialBegin(begin("x|y", 2)))
	clk.Advance(2 * time.Second)
	must(t, w.Cells("x|y", 2, cells), w.TrialEnd(TrialEnd{Treatment: "x|y", Block: 2, Status: Complete}), w.Close())
	r := open(t, w.Dir())
	found := map[Measure]*Interval{}
	damaged, err := r.Trials[0].Histograms(func(iv *Interval) { found[iv.Measure] = iv })
	must(t, err)
	if damaged != 0 || len(found) != 2 {
		t.Fatalf("damaged %d, measures %d, want 0 and 2", damaged, len(found))
	}
	iv := found[Response]
	if iv.Treatment != "x|y" || iv.Block != 2 || iv.Operation != "email, 2" || iv.Outcome != load.Timeout ||
		iv.Length.Round(time.Millisecond) != 2*time.Second ||
		iv.Start.Sub(epoch).Abs() > 2*time.Millisecond {
		t.Errorf("coordinates %+v", iv)
	}
	for _, c := range []struct{ got, want *hist.Histogram }{
		{iv.Hist, cells[1].Response},
		{found[Service].Hist, cells[1].Service},
	} {
		got, want := dist(c.got), dist(c.want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("histogram cells differ (-want +got):\n%s", d)
		}
	}
}

func dist(h *hist.Histogram) map[int64]uint64 {
	m := map[int64]uint64{}
	h.Each(func(v int64, n uint64) { m[v] = n })
	return m
}

func TestCallSize(t *testing.T) {
	w, _ := create(t)
	calls := make([]load.Call, 100_000)
	for i := range calls {
		at := time.Duration(i) * 1_666_667
		calls[i] = load.Call{
			Conn: uint32(i % 4096), Intended: at, Ready: at, Sent: at + 31_234, FirstByte: at + 6_031_234, Done: at +
				6_131_234, Status: 200,
		}
	}
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, calls), w.Close())
	st, err := os.Stat(filepath.Join(w.Dir(), "calls-0000.bin"))
	must(t, err)
	if per := float64(st.Size()) / float64(len(calls)); per > 28 {
		t.Errorf("%.1f bytes a call, want at most 28", per)
	} else {
		t.Logf("%.1f bytes a call", per)
	}
}

func TestPermissions(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, randomCalls(3, 1)), w.Cells("a", 0, testCells(3)), w.Close())
	st, err := os.Stat(w.Dir())
	must(t, err)
	if st.Mode().Perm() != 0o700 {
		t.Errorf("folder mode %v", st.Mode())
	}
	files, err := os.ReadDir(w.Dir())
	must(t, err)
	if len(files) != 4 {
		t.Errorf("%d files, want 4", len(files))
	}
	for _, f := range files {
		if i, err := f.Info(); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", f.Name(), i.Mode(), err)
		}
	}
}

func TestFolder(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))
	for name, want := range map[string]string{
		"gke-2020": "gke-2020-20260102T020405Z", "../../etc": "-..-etc-20260102T020405Z", "a b/ü": "a-b---20260102T020405Z",
		"": "run-20260102T020405Z", "..": "run-20260102T020405Z",
	} {
		if got := Folder(name, at); got != want {
			t.Errorf("Folder(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestTwoRunsInOneSecond(t *testing.T) {
	dir := t.TempDir()
	a, err := Create(dir, testHeader(), nil, clock.NewFake(epoch))
	must(t, err)
	b, err := Create(dir, testHeader(), nil, clock.NewFake(epoch))
	must(t, err)
	if a.Dir() == b.Dir() {
		t.Errorf("both in %s", a.Dir())
	}
	must(t, a.Close(), b.Close())
}

func TestPending(t *testing.T) {
	w, _ := create(t)
	ch := func(id string) area.Change { return area.Change{Area: "turnpike", Kind: "process", ID: id} }
	must(t, w.Intend(ch("1")), w.Intend(ch("2")), w.Intend(ch("3")), w.Undone(ch("2")), w.Undone(ch("1")),
		w.Intend(ch("1")), w.Intend(ch("3")))
	// Not closed: Intend alone must be enough for another process to see it.
	r := open(t, w.Dir())
	if d := cmp.Diff([]area.Change{ch("3"), ch("1")}, r.Pending()); d != "" {
		t.Errorf("pending (-want +got):\n%s", d)
	}
	must(t, w.Close())
	again, err := appendTo(w.Dir(), clock.System{}, resumption{ID: "ABCDEFGHIJKLMNOP"})
	must(t, err)
	must(t, again.Undone(ch("3")), again.Undone(ch("1")), again.Close())
	if p := open(t, w.Dir()).Pending(); len(p) != 0 {
		t.Errorf("still pending: %v", p)
	}
}

// TestSeconds: a run took the time of all its sessions, without the pauses between them and without what a process did
// that only undid changes.
func TestSeconds(t *testing.T) {
	w, c := create(t)
	check := func(when string, want float64) {
		t.Helper()
		if got := open(t, w.Dir()).Seconds(); got != want {
			t.Errorf("%s: %v s, want %v s", when, got, want)
		}
	}
	later := func(d time.Duration, undo bool) {
		c.Advance(d)
		again, err := appendTo(w.Dir(), c, resumption{ID: "ABCDEFGHIJKLMNOP", Undo: undo})
		must(t, err)
		w = again
	}
	c.Advance(60 * time.Second)
	must(t, w.Finish(Finish{Status: Interrupted, Seconds: 60}), w.Close())
	check("interrupted", 60)

	later(time.Hour, false)
	c.Advance(10 * time.Second)
	must(t, w.Note(Note{Text: "killed after this"}), w.Close())
	check("resumed and killed", 70)

	later(time.Hour, true)
	c.Advance(time.Minute)
	must(t, w.Note(Note{Text: "undone"}), w.Close())
	check("undone", 70)

	later(time.Hour, false)
	c.Advance(5 * time.Second)
	must(t, w.Finish(Finish{Status: Complete, Seconds: 5}), w.Close())
	check("complete", 75)

	later(time.Hour, true)
	must(t, w.Close())
	check("undone when it was complete", 75)
}

func TestRepeatedTrial(t *testing.T) {
	w, _ := create(t)
	one, two := randomCalls(10, 1), randomCalls(20, 2)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, one),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Dropped}), w.Close())
	w, err := appendTo(w.Dir(), clock.NewFake(epoch), resumption{ID: "ABCDEFGHIJKLMNOP"})
	must(t, err)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, two),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	r := open(t, w.Dir())
	if len(r.Trials) != 2 || r.Trials[0].Complete() || !r.Trials[1].Complete() {
		t.Fatalf("trials %+v", r.Trials)
	}
	for i, want := range [][]load.Call{one, two} {
		got, err := r.Trials[i].Calls()
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("attempt %d:\n%s", i, d)
		}
	}
}

func TestMisuse(t *testing.T) {
	w, _ := create(t)
	if err := w.Calls("a", 0, randomCalls(1, 1)); err == nil {
		t.Error("calls without a trial were taken")
	}
	if err := w.Cells("a", 0, testCells(1)); err == nil {
		t.Error("cells without a trial were taken")
	}
	if err := w.Step("a", 0, "x", func() {}); err == nil {
		t.Error("a function was encoded")
	}
	must(t, w.TrialBegin(begin("a", 0)))
	if err := w.Cells("a", 0, []load.Cell{{Operation: 2, Response: &hist.Histogram{}}}); err == nil {
		t.Error("an operation that is not there was taken")
	}
	must(t, w.Note(Note{Text: "misuse must not stop the journal"}), w.Close())
	if err := w.Note(Note{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func TestWriterFailsForeverAfterAnError(t *testing.T) {
	w, _ := create(t)
	must(t, w.journal.Close())
	if err := w.Note(Note{}); err == nil {
		t.Fatal("a write to a closed file succeeded")
	}
	for _, err := range []error{
		w.Note(Note{}), w.Intend(area.Change{}), w.TrialBegin(begin("a", 0)),
		w.Sync(), w.Close(),
	} {
		if err == nil {
			t.Error("a later call succeeded")
		}
	}
}

func TestConcurrentWriters(t *testing.T) {
	w, _ := create(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	for range 4 {
		go func() {
			var err error
			for i := 0; i < 50 && ctx.Err() == nil; i++ {
				err = errors.Join(err, w.Note(Note{Text: strings.Repeat("x", i*10)}))
			}
			done <- err
		}()
	}
	for range 4 {
		must(t, <-done)
	}
	must(t, w.Close())
	if r := open(t, w.Dir()); len(r.Notes) != 200 || len(r.Warnings) > 0 {
		t.Errorf("%d notes, warnings %q", len(r.Notes), r.Warnings)
	}
}

// TestRunsOfOnePathHaveOwnNames: two containers whose records have the same path, or that resume copies of one record,
// must not mistake each other's objects for their own.
func TestRunsOfOnePathHaveOwnNames(t *testing.T) {
	results := t.TempDir()
	names := map[string]string{}
	named := func(who string, w *Writer) {
		t.Helper()
		if !regexp.MustCompile(`^[a-z2-7]{12}$`).MatchString(w.Run()) {
			t.Errorf("%s is named %q", who, w.Run())
		}
		if other, taken := names[w.Run()]; taken {
			t.Errorf("%s and %s are both %s", who, other, w.Run())
		}
		names[w.Run()] = who
		must(t, w.Close())
	}
	var dir string
	for _, who := range []string{"one", "another"} {
		w, err := Create(results, testHeader(), nil, clock.NewFake(epoch))
		must(t, err)
		if dir != "" && w.Dir() != dir {
			t.Fatalf("%s lies in %s, not in %s", who, w.Dir(), dir)
		}
		dir = w.Dir()
		named(who, w)
		if who == "one" {
			must(t, os.RemoveAll(dir))
		}
	}
	r, err := Open(dir)
	must(t, err)
	if names[nameOf(r.Header.ID)] != "another" {
		t.Errorf("the header says %q, of %v", r.Header.ID, names)
	}
	for _, who := range []string{"a copy", "another copy"} {
		at := t.TempDir()
		must(t, os.CopyFS(at, os.DirFS(dir)))
		r, err := Open(at)
		must(t, err)
		w, err := r.Continue(nil, clock.NewFake(epoch))
		must(t, err)
		named(who, w)
	}
}

// TestRecordThatIsMoved: another user who owns the folder of records puts a folder of his in the place of the run's.
// What the run writes goes on into its own, its logs too.
func TestRecordThatIsMoved(t *testing.T) {
	results := t.TempDir()
	w, err := Create(results, Header{Experiment: Experiment{Name: "x"}}, nil, clock.NewFake(time.Unix(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // closed below
	canary, moved := filepath.Join(results, "canary"), filepath.Join(results, "moved")
	if err := errors.Join(os.Mkdir(canary, 0o700), os.Rename(w.Dir(), moved), os.Symlink(canary, w.Dir()),
		w.TrialBegin(TrialBegin{Trial: design.Trial{Treatment: "a"}, Operations: []string{"op"}}),
		w.Calls("a", 0, []load.Call{{Done: 1}}), w.Note(Note{Text: "after"})); err != nil {
		t.Fatal(err)
	}
	log, err := files.Append(filepath.Join(w.Dir(), "driver-01.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(canary); err != nil || len(left) > 0 {
		t.Errorf("written elsewhere: %v, %v", left, err)
	}
	for _, name := range []string{"calls-0000.bin", "driver-01.log", JournalFile} {
		if _, err := os.Stat(filepath.Join(moved, name)); err != nil {
			t.Error(err)
		}
	}
	// A record that holds links is not continued: what is appended to, or cut, would be another file.
	for _, name := range []string{JournalFile, LatencyFile} {
		target := filepath.Join(canary, name)
		if err := errors.Join(os.WriteFile(target, []byte("{\"torn"), 0o600), os.RemoveAll(filepath.Join(moved, name)),
			os.Symlink(target, filepath.Join(moved, name))); err != nil {
			t.Fatal(err)
		}
		if _, err := appendTo(moved, clock.System{}, resumption{ID: "aaaaaaaaaaaaaaaa"}); err == nil {
			t.Errorf("%s: a link was followed", name)
		}
		if text, err := os.ReadFile(target); err != nil || string(text) != "{\"torn" {
			t.Errorf("%s: what it refers to has changed: %q, %v", name, text, err)
		}
	}
}

// TestOldCallsFile: a file of version 1, which had no causes, can still be read.
func TestOldCallsFile(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "records", "calls-v1.bin"))
	must(t, err)
	if b[3] != 1 {
		t.Fatalf("the file has version %d", b[3])
	}
	var want []load.Call
	text, err := os.ReadFile(filepath.Join("testdata", "records", "calls-v1.json"))
	must(t, err, json.Unmarshal(text, &want))
	c, err := newCallsReader(bytes.NewReader(b), "calls-v1.bin")
	must(t, err)
	var got []load.Call
	for err == nil {
		got, err = c.next(got)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || len(got) != 120 || c.meta.Operations[1] != "identity" {
		t.Errorf("%d calls of %+v (-want +got):\n%s", len(got), c.meta, d)
	}
}

// TestEachCallsReadsInChunks: EachCalls reads the same calls as Calls, at most a chunk at a time, and Calls allocates
// only what it needs.
func TestEachCallsReadsInChunks(t *testing.T) {
	want := make([]load.Call, 2*chunkCalls+100)
	for i := range want {
		want[i] = load.Call{Conn: 1, Intended: time.Duration(i), Done: time.Duration(i) + time.Second, Status: 200}
	}
	trial := written(t, want)
	var got []load.Call
	parts := 0
	must(t, trial.EachCalls(func(part []load.Call) {
		parts++
		if len(part) > chunkCalls {
			t.Errorf("a part has %d calls", len(part))
		}
		got = append(got, part...)
	}))
	all, err := trial.Calls()
	must(t, err)
	if parts != 3 || !slices.Equal(got, want) || !slices.Equal(all, want) || cap(all) != len(want) {
		t.Errorf("%d parts, %d calls; at once %d in the room of %d; want %d", parts, len(got), len(all), cap(all), len(want))
	}
}

// TestCausesRoundTrip: every cause is read back, alone and with a status and an errno, and takes at most two bytes.
func TestCausesRoundTrip(t *testing.T) {
	var calls []load.Call
	for k := range 256 {
		calls = append(calls, load.Call{Cause: load.Cause(k)}, load.Call{Cause: load.Cause(k), Status: 65535, Errno: 65535},
			load.Call{Cause: load.Cause(k), Status: 302})
	}
	got, err := decodeCalls(nil, encodedCalls(calls), len(calls))
	must(t, err)
	if d := cmp.Diff(calls, got); d != "" {
		t.Error(d)
	}
	plain := load.Call{Conn: 1, Intended: time.Second, Done: 2 * time.Second, Outcome: load.Wrong, Status: 200}
	with := plain
	with.Cause = load.CauseRedirect
	if grown := len(appendCall(nil, &with, 0)) - len(appendCall(nil, &plain, 0)); grown < 1 || grown > 2 {
		t.Errorf("a cause takes %d bytes", grown)
	}
	if _, err := decodeCalls(nil, []byte{hasStatus & 0xff, 0, 0, 0, 0x80, 0x80, 0x80, 0x08, 0},
		1); !errors.Is(err, errTorn) {
		t.Errorf("a cause beyond 255 was taken: %v", err)
	}
}

func BenchmarkDecodeCalls(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var payload []byte
	var prev time.Duration
	for i := range chunkCalls {
		c := load.Call{Conn: 1, Intended: time.Duration(i) * 10 * time.Microsecond, Status: 200}
		c.Ready = c.Intended + 1 + time.Duration(r.IntN(300))
		c.Sent = c.Ready + time.Duration(2000+r.IntN(20_000))
		c.FirstByte = c.Sent + time.Duration(1e6*r.ExpFloat64())
		c.Done = c.FirstByte + 1000
		payload = appendCall(payload, &c, prev)
		prev = c.Intended
	}
	var calls []load.Call
	for b.Loop() {
		var err error
		if calls, err = decodeCalls(calls[:0], payload, chunkCalls); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunkCalls, "ns/call")
}
