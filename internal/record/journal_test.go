package record

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
)

// testSlice returns a slice of treatment a with every field set.
func testSlice(i int) Slice {
	start := time.Duration(i) * 10 * time.Second
	return Slice{
		Treatment: "a", Start: start, End: start + 10*time.Second, WarmUp: i == 0,
		Operations: []SliceOperation{
			{
				Operation: "token", Mean: 0.001234567, P50: 0.001, P90: 0.002, P99: 0.003, Max: 0.5, Service: 0.0011, BytesIn: 4321,
				BytesOut: 1234,
				Outcomes: []SliceOutcome{
					{Outcome: load.OK, Count: 90},
					{Outcome: load.Wrong, Count: 7, Causes: []load.CauseCount{{Cause: load.OwnCauses + 1, Status: 200, Count: 7}}},
					{Outcome: load.Timeout, Count: 3, Unsent: 1, Causes: []load.CauseCount{
						{Cause: load.CauseNoByte, Count: 2},
						{Cause: load.CauseNoConnection, Count: 1},
					}},
				},
			},
			{Operation: "email, 2", Mean: 1, Max: 1, Outcomes: []SliceOutcome{
				{Outcome: load.ConnFailed, Count: 1, Causes: []load.CauseCount{{Cause: load.CauseConnect, Errno: 111, Count: 1}}},
			}},
		},
		Due: 102, Sent: 100, Unsendable: 1, LatenessP99: 1e-6, LatenessMax: 0.01, CPU: 0.25,
		Samples: []metric.Sample{{
			Subject: "pdp", Metric: "gc_count", Part: "young", At: start + 10*time.Second,
			Value: float64(i),
		}},
	}
}

func testAnswers() Answers {
	return Answers{
		Treatment: "a", Seen: map[string]uint64{"permit": 90, "deny": 7}, Unanswered: 3,
		Before: map[string]float64{"permit": 5, "deny": 0}, After: map[string]float64{"permit": 97, "deny": 7},
	}
}

func TestSlicesAndAnswers(t *testing.T) {
	w, _ := create(t)
	b := begin("a", 0)
	b.Answers, b.CauseAnswers = []string{"permit", "deny"}, [][]string{{"", "deny"}, nil}
	failed := Answers{Treatment: "a", Block: 1, Seen: map[string]uint64{}, Error: "nobody answers"}
	must(t, w.TrialBegin(b), w.Slice(testSlice(0)), w.Slice(testSlice(1)), w.Answers(testAnswers()),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Interrupted}),
		w.TrialBegin(begin("a", 1)), w.Answers(failed), w.Close())
	r := open(t, w.Dir())
	if len(r.Warnings) > 0 || len(r.Unknown) > 0 || len(r.Trials) != 2 {
		t.Fatalf("warnings %q, unknown %v, %d trials", r.Warnings, r.Unknown, len(r.Trials))
	}
	trial := r.Trials[0]
	if d := cmp.Diff([]Slice{testSlice(0), testSlice(1)}, trial.Slices); d != "" {
		t.Errorf("slices (-written +read):\n%s", d)
	}
	if d := cmp.Diff([]Answers{testAnswers()}, trial.Answers); d != "" {
		t.Errorf("answers (-written +read):\n%s", d)
	}
	if d := cmp.Diff(b, trial.TrialBegin); d != "" {
		t.Errorf("beginning (-written +read):\n%s", d)
	}
	if trial.Complete() || trial.End == nil || trial.End.Status != Interrupted {
		t.Errorf("the trial's end is %v", trial.End)
	}
	if d := cmp.Diff([]Answers{failed}, r.Trials[1].Answers); d != "" {
		t.Errorf("answers that could not be read (-written +read):\n%s", d)
	}
	if n := trial.Slices[0].Operations[0].Ended(); n != 100 {
		t.Errorf("%d calls ended, want 100", n)
	}
}

// TestImpossibleSliceIsDamage: a slice with more operations than a load can have is damage.
func TestImpossibleSliceIsDamage(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Slice(Slice{Treatment: "a", Operations: make([]SliceOperation, 256)}),
		w.Slice(Slice{Treatment: "a", Operations: make([]SliceOperation, 257)}), w.Close())
	if r := open(t, w.Dir()); len(r.Trials[0].Slices) != 1 || len(r.Damaged) != 1 {
		t.Errorf("%d slices, damaged %v", len(r.Trials[0].Slices), r.Damaged)
	}
}

// TestManyOperationsAreCounted: a line of a stranger's record may name any number of operations.
func TestManyOperationsAreCounted(t *testing.T) {
	var trial Trial
	const many = 200_000
	all := make([]Count, many)
	for i := range all {
		all[i] = Count{Operation: strconv.Itoa(i), Count: 1}
	}
	for range 2 {
		trial.addCells(cellsRef{Counts: all})
	}
	if n := len(trial.Counts); n != many || trial.Counts[0].Count != 2 || trial.Counts[many-1].Count != 2 {
		t.Errorf("%d counts, of %+v", n, trial.Counts[0])
	}
}

// TestHistogramsInPieces: histograms may be written piece by piece; every piece is read, and counts add up.
func TestHistogramsInPieces(t *testing.T) {
	w, clk := create(t)
	const pieces, calls = 7, 50
	must(t, w.TrialBegin(begin("a", 0)))
	for range pieces {
		must(t, w.Cells("a", 0, testCells(calls)))
		clk.Advance(5 * time.Minute)
	}
	must(t, w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	trial := open(t, w.Dir()).Trials[0]
	want := []Count{{Operation: "email, 2", Outcome: load.Timeout, Count: pieces * calls, Unsent: pieces * 3}}
	if d := cmp.Diff(want, trial.Counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	read := map[Measure]uint64{}
	damaged, err := trial.Histograms(func(iv *Interval) { read[iv.Measure] += iv.Hist.Count() })
	if err != nil || damaged > 0 {
		t.Fatal(damaged, err)
	}
	if d := cmp.Diff(map[Measure]uint64{Response: pieces * calls, Service: pieces * (calls + 1)}, read); d != "" {
		t.Errorf("values read (-want +got):\n%s", d)
	}
}

// TestNonFiniteSliceIsRejected: what JSON cannot represent is rejected, without harm to what follows.
func TestNonFiniteSliceIsRejected(t *testing.T) {
	w, _ := create(t)
	s := testSlice(0)
	s.Samples[0].Value = math.NaN()
	must(t, w.TrialBegin(begin("a", 0)))
	if err := w.Slice(s); err == nil {
		t.Error("a slice with NaN in it was written")
	}
	must(t, w.Slice(testSlice(1)), w.Close())
	if r := open(t, w.Dir()); len(r.Warnings) > 0 || len(r.Trials[0].Slices) != 1 {
		t.Errorf("warnings %q, %d slices", r.Warnings, len(r.Trials[0].Slices))
	}
}

func phased(names ...string) load.Cell {
	c := load.Cell{Outcome: load.OK, Response: &hist.Histogram{}}
	c.Response.Record(5)
	for i, name := range names {
		h := &hist.Histogram{}
		for k := range i + 1 {
			h.Record(int64(1000 * (k + 1)))
		}
		c.Phases = append(c.Phases, load.Phase{Name: name, Hist: h})
	}
	return c
}

// TestPhasesRoundTrip: phases of any name are read back, also without a name or without a value.
func TestPhasesRoundTrip(t *testing.T) {
	names := []string{"post", "created-to-watch", "a b,c|d\n%=é", ""}
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Cells("a", 0, []load.Cell{phased(names...)}),
		w.Cells("a", 0, []load.Cell{phased("post")}), w.Close())
	r := open(t, w.Dir())
	got := map[string]uint64{}
	var measures []Measure
	damaged, err := r.Trials[0].Histograms(func(iv *Interval) {
		if name, ok := iv.Measure.Phase(); ok {
			got[name] += iv.Hist.Count()
			if iv.Measure != PhaseMeasure(name) || iv.Operation != "token" || iv.Outcome != load.OK {
				t.Errorf("got interval %+v", iv)
			}
			return
		}
		measures = append(measures, iv.Measure)
	})
	if err != nil || damaged > 0 || len(r.Warnings) > 0 {
		t.Fatal(damaged, err, r.Warnings)
	}
	want := map[string]uint64{"post": 2, "created-to-watch": 2, names[2]: 3, "": 4}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values by phase (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Measure{Response, Response}, measures); d != "" {
		t.Error(d)
	}
	if len(r.Trials[0].Counts) != 1 || r.Trials[0].Counts[0].Count != 2 {
		t.Errorf("phases are counted as calls: %+v", r.Trials[0].Counts)
	}
	// The format's own rule: no comma, blank or line break within a tag.
	b, err := os.ReadFile(filepath.Join(w.Dir(), LatencyFile))
	must(t, err)
	tags := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if tag, ok := strings.CutPrefix(line, "Tag="); ok {
			tag, _, _ = strings.Cut(tag, ",")
			tags[tag[strings.LastIndexByte(tag, '|')+1:]] = true
		}
	}
	if d := cmp.Diff([]string{
		"phase.", "phase.a+b%2Cc%7Cd%0A%25%3D%C3%A9", "phase.created-to-watch", "phase.post",
		"response",
	}, slices.Sorted(maps.Keys(tags))); d != "" {
		t.Error(d)
	}
}

func testServed() Served {
	return Served{
		Treatment: "a", Restarted: true,
		Served: area.Served{
			Started: 1.79e9,
			Requests: []area.ServedRequests{{
				Verb: "POST", Resource: "pods/binding", Scope: "resource", Count: 10, DryRuns: 3, Seconds: 0.5, SLICount: 7,
				SLISeconds: 0.25,
				Buckets:    []area.ServedBucket{{LE: 0.005, Count: 4}, {LE: 60, Count: 10}},
				SLIBuckets: []area.ServedBucket{{LE: 0.05, Count: 7}},
			}},
			Parts: []area.ServedPart{{Part: "admission", Name: "x", Action: "validate CREATE", Count: 2, Seconds: 1e-6}},
		},
	}
}

func TestServed(t *testing.T) {
	w, _ := create(t)
	failed := Served{Treatment: "a", Error: "forbidden"}
	must(t, w.TrialBegin(begin("a", 0)), w.Served(testServed()), w.Served(failed),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	r := open(t, w.Dir())
	if len(r.Unknown) > 0 || len(r.Warnings) > 0 {
		t.Errorf("unknown %v, warnings %v", r.Unknown, r.Warnings)
	}
	if d := cmp.Diff([]Served{testServed(), failed}, r.Trials[0].Served); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
}

// TestEachCount: the cells are those of the library.
func TestEachCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, lowest := range []int64{1, 2, 1000} {
		h := hdrhistogram.New(lowest, 1<<50, digits)
		for range 3000 {
			if err := h.RecordValue(rng.Int64N(1 << (1 + rng.IntN(49)))); err != nil {
				t.Fatal(err)
			}
		}
		type cell struct {
			Value int64
			N     uint64
		}
		var want, got []cell
		for _, b := range h.Distribution() {
			if b.Count > 0 {
				want = append(want, cell{b.From + (b.To-b.From)/2, uint64(b.Count)})
			}
		}
		eachCount(h.Export(), func(v int64, n uint64) { got = append(got, cell{v, n}) })
		if d := cmp.Diff(want, got); d != "" || len(got) < 1000 {
			t.Errorf("lowest %d, %d cells (-want +got):\n%.400s", lowest, len(got), d)
		}
	}
}

// TestAddSlice: a slice is not changed later, has no spare capacity, and shares its names with the one before.
func TestAddSlice(t *testing.T) {
	one := func() Slice {
		x := Slice{
			Treatment: strings.Clone("a"), Operations: make([]SliceOperation, 0, 8),
			Samples: make([]metric.Sample, 0, 32),
		}
		x.Operations = append(x.Operations, SliceOperation{
			Operation: strings.Clone("deny"),
			Outcomes:  make([]SliceOutcome, 1, 4),
		})
		x.Operations[0].Outcomes[0] = SliceOutcome{
			Outcome: load.Wrong, Count: 2,
			Causes: append(make([]load.CauseCount, 0, 4), load.CauseCount{Status: 200, Count: 2}),
		}
		x.Samples = append(x.Samples, metric.Sample{
			Subject: strings.Clone("pdp"), Metric: strings.Clone("gc_count"),
			Part: strings.Clone("young"), Value: 3,
		})
		return x
	}
	var trial Trial
	for range 2 {
		trial.addSlice(one())
	}
	trial.addSlice(Slice{Treatment: "b", Samples: []metric.Sample{{Subject: "other"}, {Subject: "more"}}})
	if d := cmp.Diff([]Slice{
		one(), one(),
		{Treatment: "b", Samples: []metric.Sample{{Subject: "other"}, {Subject: "more"}}},
	}, trial.Slices); d != "" {
		t.Error(d)
	}
	x, y := &trial.Slices[0], &trial.Slices[1]
	if cap(y.Operations) != 1 || cap(y.Samples) != 1 || cap(y.Operations[0].Outcomes) != 1 ||
		cap(y.Operations[0].Outcomes[0].Causes) != 1 {
		t.Errorf("there is room to grow: %d, %d", cap(y.Operations), cap(y.Samples))
	}
	for name, pair := range map[string][2]string{
		"operation": {x.Operations[0].Operation, y.Operations[0].Operation},
		"part":      {x.Samples[0].Part, y.Samples[0].Part},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("the name of the %s is kept twice", name)
		}
	}
}

// written returns the only trial of a record that holds calls, read back.
func written(t *testing.T, calls []load.Call) *Trial {
	t.Helper()
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, calls), w.Close())
	return open(t, w.Dir()).Trials[0]
}

// TestLogYieldsWhatIsDue: a log yields the same calls from files as from memory, also when it has to forget chunks,
// and holds no more chunks than it may.
func TestLogYieldsWhatIsDue(t *testing.T) {
	want := load.Calls(randomCalls((keptChunks+3)*chunkCalls+100, 5))
	log := written(t, want).Log()
	if log.Len() != len(want) {
		t.Fatalf("%d calls, want %d", log.Len(), len(want))
	}
	end := want[len(want)-1].Intended
	for _, part := range [][2]float64{{0, 2}, {0, 0}, {0.1, 0.1001}, {0.5, 0.75}, {0.9, 2}, {0.3, 0.2}, {0, 0.01}} {
		from, to := time.Duration(part[0]*float64(end)), time.Duration(part[1]*float64(end))
		var got []load.Call
		for c := range log.Due(from, to) {
			got = append(got, *c)
		}
		var due []load.Call
		for c := range want.Due(from, to) {
			due = append(due, *c)
		}
		if !slices.Equal(got, due) {
			t.Errorf("%d calls are due in [%s, %s), want %d", len(got), from, to, len(due))
		}
		if len(log.kept) > keptChunks {
			t.Errorf("%d chunks are in memory", len(log.kept))
		}
	}
	if err := log.Err(); err != nil {
		t.Error(err)
	}
}

// TestLogReadWhileItIsRead: calls stay what they are while they are yielded, though a reading within reads so many
// others that these are forgotten.
func TestLogReadWhileItIsRead(t *testing.T) {
	want := load.Calls(randomCalls((keptChunks+3)*chunkCalls, 7))
	log := written(t, want).Log()
	i := 0
	for c := range log.Due(0, math.MaxInt64) {
		if *c != want[i] {
			t.Fatalf("call %d is %v, want %v", i, *c, want[i])
		}
		if i%(chunkCalls*keptChunks/2) == 100 {
			n := 0
			for range log.Due(0, math.MaxInt64) {
				n++
			}
			if n != len(want) || *c != want[i] {
				t.Fatalf("after a reading within of %d calls, want %d, call %d is %v, want %v", n, len(want), i, *c, want[i])
			}
		}
		i++
	}
	if i != len(want) || log.Err() != nil {
		t.Errorf("%d calls, want %d; error %v", i, len(want), log.Err())
	}
}

// TestLogOfAnUnreadableFile: a file that was replaced by something that is no file ends the calls, with an error.
func TestLogOfAnUnreadableFile(t *testing.T) {
	trial := written(t, randomCalls(100, 6))
	log := trial.Log()
	path := filepath.Join(trial.dir, trial.calls[0])
	must(t, os.Remove(path), os.Mkdir(path, 0o700))
	for range log.Due(0, time.Hour) {
		t.Fatal("it yields a call")
	}
	if log.Err() == nil {
		t.Error("no error")
	}
}
