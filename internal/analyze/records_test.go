package analyze

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		x, want := keptSoak()
		keepRecord(t, "v1-soak", x.write(t, t.TempDir()), want)
		for name, c := range comparisons() {
			keepRecord(t, name, c.x.write(t, t.TempDir()), c.want)
		}
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
	r := opened(t, dir)
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

// keepRecord keeps a record by the code of today, unless one of the name is there, with what a correct reader must find
// in it: a record that is there is never written again.
func keepRecord(t *testing.T, name, written string, want expectation) {
	t.Helper()
	dir := filepath.Join("testdata", "records", name)
	if _, err := os.Stat(dir); err == nil {
		return
	}
	must(t, os.MkdirAll(filepath.Dir(dir), 0o755), os.CopyFS(dir, os.DirFS(written)))
	b, err := json.MarshalIndent(want, "", "  ")
	must(t, err, os.WriteFile(dir+".expect.json", append(b, '\n'), 0o644))
}

// writeSample keeps a search of the simulated limiter at 150/s.
func writeSample(t *testing.T) {
	t.Helper()
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
	j := journal{budget: []string{"capacity >= 100/s", "response.p99 <= 500ms at 50/s"}}
	keepRecord(t, "v1-capacity", j.write(t, t.TempDir()), want)
}

// comparisons are the kept records of the questions compare and scale, with what a correct reader must find in them.
func comparisons() map[string]struct {
	x    experiment
	want expectation
} {
	batches := experiment{
		blocks: 10, rounds: 6, seed: 4211, treatments: enforcers(), operations: []string{"open", "getpid"},
		negative: []string{"getpid"},
		budget:   []string{"landlock: open.cpu <= +40%", "seccomp: open.cpu <= +20%", "open.cpu <= 2us"},
	}
	batches.cost = func(treatment, op string, _ int) float64 {
		factor := map[string]float64{
			"enforcer=seccomp": 1.1, "enforcer=landlock rules=8": 1.25, "enforcer=landlock rules=50": 1.25,
		}[treatment]
		switch {
		case op == "getpid":
			return 1e-7
		case factor > 0:
			return 1e-6 * factor
		}
		return 1e-6
	}
	calls := experiment{
		blocks: 6, calls: 60, seed: 4211, operations: []string{"token"}, cost: millisecond, block: .01,
		budget: []string{"cpu <= +20%", "response.p50 <= 10ms"},
	}
	scale := growing([]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, func(n float64) float64 { return 1e-3 + 4e-5*n })
	scale.blocks, scale.rounds, scale.budget = 8, 3, []string{"create-pod.cpu <= 10ms"}
	ids := func(x *experiment) (out []string) {
		p, _ := x.plan()
		for _, t := range p.Treatments {
			out = append(out, t.ID)
		}
		return out
	}
	calls = calls.withDefaults()
	type kept = struct {
		x    experiment
		want expectation
	}
	return map[string]kept{
		"v1-compare": {batches, expectation{
			Trials: 50, Blocks: 10, Status: report.Complete, Verdict: report.Pass, Treatments: ids(&batches),
			Effects: map[string]float64{
				"enforcer=seccomp open.cpu": .1, "enforcer=landlock rules=8 open.cpu": .25,
				"enforcer=landlock rules=50 open.wall": .25,
			},
		}},
		"v1-compare-calls": {calls, expectation{
			Trials: 18, Calls: 18 * 160, Blocks: 6, Status: report.Complete, Verdict: report.Inconclusive,
			Treatments: ids(&calls), Good: 18 * 60, Ended: 18 * 60,
			Effects: map[string]float64{"enforcer=seccomp token.cpu": .1, "enforcer=seccomp token.response.p50": .1},
		}},
		"v1-scale": {scale, expectation{
			Trials: 88, Blocks: 8, Status: report.Complete, Verdict: report.Fail, Treatments: ids(&scale),
			Laws: map[string]string{"create-pod.cpu": "linear"},
		}},
	}
}

// TestGoldenReports: the whole report of the kept records.
func TestGoldenReports(t *testing.T) {
	t.Parallel()
	names := []string{"v1-capacity", "v1-quota", "v1-soak"}
	for name := range comparisons() {
		names = append(names, name)
	}
	for _, name := range names {
		rep := analyzed(t, filepath.Join("testdata", "records", name))
		var got bytes.Buffer
		must(t, report.JSON(&got, rep))
		path := filepath.Join("testdata", name+".report.json")
		if *update {
			must(t, os.WriteFile(path, got.Bytes(), 0o644))
			continue
		}
		want, err := os.ReadFile(path)
		must(t, err)
		if d := cmp.Diff(string(want), got.String()); d != "" {
			t.Errorf("%s (-want +got), -update writes it anew:\n%s", name, d)
		}
	}
}

// keptSoak is the kept record of a soak: a leak, a restart within an outage, and wrong answers.
func keptSoak() (endurance, expectation) {
	x := endurance{
		warm: 10, measured: 120, rate: 60, seed: 9, restarts: []float64{61}, outage: [2]float64{60, 64},
		budget: []string{"rss drift <= 1MiB/h", "error <= 5%", "permit.response.p90 <= 50ms", "cpu <= 10ms"},
		rss:    func(at float64) float64 { return 30*mib + sawtooth(at)/4 + at/20*mib },
		wrong: func(at float64) uint64 {
			if at > 100 {
				return 1
			}
			return 0
		},
		answers: func(seen map[string]uint64) record.Answers {
			return record.Answers{
				Before: map[string]float64{"permit": 5, "deny": 2},
				After:  map[string]float64{"permit": 5, "deny": float64(seen["deny"])}, Unanswered: 4,
			}
		},
	}
	// 116 s of 120 calls, of which 15 windows have one wrong answer; 4 s of 12.
	return x, expectation{
		Trials: 1, Status: report.Complete, Verdict: report.Fail, Treatments: []string{"engine=cedar"}, Good: 116*120 - 15,
		Ended:      116*120 + 2*24,
		Histograms: 2*4 + 2*4 + 4,
	}
}

// TestAnalysisLeavesTheRecord: a record may be analyzed again, with other budgets.
func TestAnalysisLeavesTheRecord(t *testing.T) {
	t.Parallel()
	x := endurance{warm: 10, measured: 60, lateness: 0.004}
	r := opened(t, x.write(t, t.TempDir()))
	first, err := Analyze(r, Options{Budget: []string{"cpu <= 1s"}})
	must(t, err)
	again, err := Analyze(r, Options{Budget: []string{"response.p50 <= 1s"}})
	must(t, err)
	if d := cmp.Diff(all(t, first), all(t, again)); d != "" {
		t.Errorf("the second analysis differs: %s", d)
	}
}

// TestWindows: every window is written, joined ones keep the sums.
func TestWindows(t *testing.T) {
	t.Parallel()
	x := endurance{warm: 100, measured: 1400, window: 2, restarts: []float64{401}}
	r := opened(t, x.write(t, t.TempDir()))
	every := Windows(r, "engine=cedar")
	if len(every) != 750 || !every[0].WarmUp || every[50].WarmUp || every[50].Start != 100 || !every[200].Restarted ||
		every[200].CPU != nil || every[201].CPU == nil {
		t.Errorf("%d windows: %+v", len(every), every[min(len(every)-1, 200)])
	}
	if Windows(r, "other") != nil || len(Windows(r, "")) != 750 {
		t.Error("windows of another treatment")
	}
	few := all(t, reportOf(t, r)).Moments
	if len(few) > mostMoments || len(few) < mostMoments/3 || few[16].End != 100 || few[17].Start != 100 {
		t.Errorf("%d moments, %+v", len(few), few[16])
	}
	restarts, calls, sum := 0, uint64(0), 0.0
	for i, m := range few {
		if i > 0 && m.Start != few[i-1].End {
			t.Errorf("a gap at %v", m.Start)
		}
		if m.Restarted {
			restarts++
		}
		for _, o := range m.Operations {
			calls += o.Calls
		}
		sum += m.Good * (m.End - m.Start)
	}
	if restarts != 1 || calls != 150000 || sum < 149999 || sum > 150001 {
		t.Errorf("%d restarts, %d calls, %v good", restarts, calls, sum)
	}
}
