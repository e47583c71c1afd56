package record

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// TestTornSlice: a killed run keeps all slices except the one that was being written, and the histograms that were
// flushed.
func TestTornSlice(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Slice(testSlice(0)), w.Cells("a", 0, testCells(100)), w.Slice(testSlice(1)),
		w.Slice(testSlice(2)), w.Close())
	path := filepath.Join(w.Dir(), JournalFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for cut := last + 1; cut < len(whole)-1; cut += 37 {
		must(t, os.WriteFile(path, whole[:cut], 0o600))
		r := open(t, w.Dir())
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "torn") {
			t.Fatalf("cut at %d: warnings %q", cut, r.Warnings)
		}
		trial := r.Trials[0]
		if d := cmp.Diff([]Slice{testSlice(0), testSlice(1)}, trial.Slices); d != "" {
			t.Fatalf("cut at %d (-written +read):\n%s", cut, d)
		}
		n := 0
		if damaged, err := trial.Histograms(func(*Interval) { n++ }); err != nil || damaged > 0 || n == 0 {
			t.Fatalf("cut at %d: %d histograms, %d damaged, %v", cut, n, damaged, err)
		}
	}
}

// TestManyOperationsAreCounted: a line of a stranger's record may name any number of operations.
func TestManyOperationsAreCounted(t *testing.T) {
	var trial Trial
	const many = 1_000_000
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
