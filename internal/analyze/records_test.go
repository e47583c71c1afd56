package analyze

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
)

// An old record is never written again, so -sample makes only a record that is not there yet.
var (
	sample = flag.Bool("sample", false, "write the records of testdata/records that are not there")
	update = flag.Bool("update", false, "write the goldens anew")
)

// expectation is what an old record must always say. It lies beside the record as <name>.expect.json.
type expectation struct {
	Calls      int            `json:"calls"`      // raw calls, over all trials
	Histograms int            `json:"histograms"` // intervals in the latency file
	Trials     int            `json:"trials"`
	Status     report.Status  `json:"status"`
	Verdict    report.Verdict `json:"verdict"`
	Treatments []string       `json:"treatments"`
	// Rates are the capacities by treatment, to within 2 %; Good and Ended count the calls of all operations.
	Rates map[string]float64 `json:"rates"`
	Good  uint64             `json:"good"`
	Ended uint64             `json:"ended"`
	// Effects are estimates by treatment and name, to within 0.02; Laws the best forms of growth by metric; Blocks the
	// complete ones.
	Effects map[string]float64 `json:"effects,omitempty"`
	Laws    map[string]string  `json:"laws,omitempty"`
	Blocks  int                `json:"blocks,omitempty"`
}

// TestOldRecordsStayReadable: every record under testdata/records was written by some version of tare, and is read by
// this one.
func TestOldRecordsStayReadable(t *testing.T) {
	t.Parallel()
	if *sample {
		writeSample(t)
		writeComparisons(t)
		writeSoak(t)
	}
	journals, err := filepath.Glob("testdata/records/*/" + record.JournalFile)
	if err != nil || len(journals) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, path := range journals {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) { readable(t, dir) })
	}
}

func readable(t *testing.T, dir string) {
	var want expectation
	b, err := os.ReadFile(dir + ".expect.json")
	must(t, err)
	must(t, json.Unmarshal(b, &want))
	r, err := record.Open(dir)
	must(t, err)
	if len(r.Warnings) > 0 || len(r.Unknown) > 0 {
		t.Errorf("reading: %q, unknown lines %v", r.Warnings, r.Unknown)
	}
	calls, intervals := 0, 0
	for _, trial := range r.Trials {
		got, err := trial.Calls()
		must(t, err)
		calls += len(got)
		damaged, err := trial.Histograms(func(*record.Interval) { intervals++ })
		if err != nil || damaged > 0 {
			t.Errorf("%d damaged histograms, %v", damaged, err)
		}
	}
	if calls != want.Calls || intervals != want.Histograms || len(r.Trials) != want.Trials {
		t.Errorf("%d calls, %d histograms, %d trials, want %+v", calls, intervals, len(r.Trials), want)
	}
	rep := analyzed(t, dir)
	if rep.Status != want.Status || rep.Verdict != want.Verdict || len(rep.Treatments) != len(want.Treatments) {
		t.Errorf(
			"status %s, verdict %s (%s), %d treatments, want %+v", rep.Status, rep.Verdict, rep.Reason, len(rep.Treatments),
			want,
		)
	}
	var good, ended uint64
	for _, op := range rep.Operations {
		good += op.Outcomes.Good()
		ended += op.Outcomes.Ended()
	}
	if good != want.Good || ended != want.Ended {
		t.Errorf("%d calls ended, %d of them well, want %d and %d", ended, good, want.Ended, want.Good)
	}
	sameAnswer(t, rep, &want)
	for treatment, rate := range want.Rates {
		if got := rateOf(rep, treatment); got < rate*0.98 || got > rate*1.02 {
			t.Errorf("capacity of %s is %v, want %v ± 2 %%", treatment, got, rate)
		}
	}
}

// sameAnswer checks what a comparison found.
func sameAnswer(t *testing.T, rep *report.Report, want *expectation) {
	t.Helper()
	got := map[string]float64{}
	for i := range rep.Effects {
		got[rep.Effects[i].Treatment+" "+nameOf(&rep.Effects[i])] = rep.Effects[i].Estimate
	}
	for name, estimate := range want.Effects {
		if v, ok := got[name]; !ok || math.Abs(v-estimate) > .02 {
			t.Errorf("effect %s is %v, want %v among %v", name, v, estimate, got)
		}
	}
	laws := map[string]string{}
	for _, g := range rep.Growth {
		laws[gate{g.Operation, g.Metric, g.Quantile}.String()] = g.Best
	}
	for name, law := range want.Laws {
		if laws[name] != law {
			t.Errorf("%s grows %q, want %q", name, laws[name], law)
		}
	}
	if want.Blocks > 0 && (rep.Design == nil || rep.Design.Blocks != want.Blocks) {
		t.Errorf("design %+v, want %d blocks", rep.Design, want.Blocks)
	}
}

func rateOf(rep *report.Report, treatment string) float64 {
	for _, c := range rep.Capacity {
		if c.Treatment == treatment && c.Rate != nil {
			return *c.Rate
		}
	}
	return 0
}

// writeSample makes a record by the code of today, of the simulated limiter at 150/s, with what a correct reader must
// find in it.
func writeSample(t *testing.T) {
	t.Helper()
	const dir = "testdata/records/v1-capacity"
	if _, err := os.Stat(dir); err == nil {
		return // old records are kept as they were written
	}
	must(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	written := journal{budget: []string{"capacity >= 100/s", "response.p99 <= 500ms at 50/s"}}.write(t, t.TempDir())
	must(t, os.CopyFS(dir, os.DirFS(written)))
	tr := limitedTrace(1)
	want := expectation{
		Calls: tr.Calls.Len(), Histograms: 8, Trials: 1, Status: report.Complete, Verdict: report.Pass,
		Treatments: []string{"default"},
		Rates:      map[string]float64{"default": 150}, Ended: uint64(tr.Calls.Len()),
	}
	for _, c := range load.CallsOf(tr.Calls) {
		if c.Outcome == load.OK {
			want.Good++
		}
	}
	b, err := json.MarshalIndent(want, "", "  ")
	must(t, err)
	must(t, os.WriteFile(dir+".expect.json", append(b, '\n'), 0o644))
}
