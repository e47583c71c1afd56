package analyze

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/report"
)

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

// writeComparisons writes those that are not there. A record that is there is never written again.
func writeComparisons(t *testing.T) {
	t.Helper()
	for name, c := range comparisons() {
		dir := filepath.Join("testdata", "records", name)
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		must(t, os.CopyFS(dir, os.DirFS(c.x.write(t, t.TempDir()))))
		b, err := json.MarshalIndent(c.want, "", "  ")
		must(t, err)
		must(t, os.WriteFile(dir+".expect.json", append(b, '\n'), 0o644))
	}
}

// TestGoldenReports: the whole report of the kept records.
func TestGoldenReports(t *testing.T) {
	t.Parallel()
	names := []string{"v1-capacity", "v1-quota"}
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
