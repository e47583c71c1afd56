package analyze

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/record"
	"tare/internal/report"
)

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

// writeSoak writes the record if it is not there. A record that is there is never written again.
func writeSoak(t *testing.T) {
	t.Helper()
	const dir = "testdata/records/v1-soak"
	if _, err := os.Stat(dir); err == nil {
		return
	}
	x, want := keptSoak()
	must(t, os.CopyFS(dir, os.DirFS(x.write(t, t.TempDir()))))
	b, err := json.MarshalIndent(want, "", "  ")
	must(t, err)
	must(t, os.WriteFile(dir+".expect.json", append(b, '\n'), 0o644))
}

// TestGoldenSoak: the whole report of the kept record.
func TestGoldenSoak(t *testing.T) {
	t.Parallel()
	rep := analyzed(t, filepath.Join("testdata", "records", "v1-soak"))
	var got bytes.Buffer
	must(t, report.JSON(&got, rep))
	path := filepath.Join("testdata", "v1-soak.report.json")
	if *update {
		must(t, os.WriteFile(path, got.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("(-want +got), -update writes it anew:\n%s", d)
	}
}

// TestAnalysisLeavesTheRecord: a record may be analyzed again, with other budgets.
func TestAnalysisLeavesTheRecord(t *testing.T) {
	t.Parallel()
	x := endurance{warm: 10, measured: 60, lateness: 0.004}
	r, err := record.Open(x.write(t, t.TempDir()))
	must(t, err)
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
	r, err := record.Open(x.write(t, t.TempDir()))
	must(t, err)
	every := Windows(r, "engine=cedar")
	if len(every) != 750 || !every[0].WarmUp || every[50].WarmUp || every[50].Start != 100 || !every[200].Restarted ||
		every[200].CPU != nil || every[201].CPU == nil {
		t.Errorf("%d windows: %+v", len(every), every[min(len(every)-1, 200)])
	}
	if Windows(r, "other") != nil || len(Windows(r, "")) != 750 {
		t.Error("windows of another treatment")
	}
	rep, err := Analyze(r, Options{})
	must(t, err)
	few := all(t, rep).Moments
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
