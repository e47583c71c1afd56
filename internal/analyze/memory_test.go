package analyze

import (
	"strings"
	"testing"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// held is what a probe reads of a part of the target: when it started, its processes, and their memory now and at
// most, in MB.
type held struct{ started, processes, now, peak float64 }

func (m held) of(subject string) []metric.Sample {
	const mb = 1e6
	return []metric.Sample{
		{Subject: subject, Metric: probe.Started.Name, Value: m.started},
		{Subject: subject, Metric: probe.Processes.Name, Value: m.processes},
		{Subject: subject, Metric: probe.RSSPeak.Name, Value: m.peak * mb},
		{Subject: subject, Metric: probe.RSS.Name, Value: m.now * mb},
	}
}

// TestPeaksOfMemoryAreJudged: what the target had during a search decides a limit of 67.1 MB, where the kernel's peak
// tells, and leaves it open where that is not of the search, or of another process.
func TestPeaksOfMemoryAreJudged(t *testing.T) {
	t.Parallel()
	type when [2]held // before and after
	for name, c := range map[string]struct {
		store, gate when
		want        report.Verdict
		says        string
	}{
		"within":          {when{}, when{{7, 1, 18, 19}, {7, 1, 41, 60}}, report.Pass, "the peak of its process"},
		"beyond":          {when{}, when{{7, 1, 18, 19}, {7, 1, 41, 548}}, report.Fail, "the peak of its process"},
		"older, beyond":   {when{}, when{{7, 1, 18, 548}, {7, 1, 41, 548}}, report.Inconclusive, "began, 523 MiB"},
		"older, within":   {when{}, when{{7, 1, 18, 60}, {7, 1, 41, 60}}, report.Pass, "it had 39.1 MiB, and at most"},
		"read beyond":     {when{}, when{{7, 1, 68, 548}, {7, 1, 41, 548}}, report.Fail, "it had 64.8 MiB"},
		"replaced":        {when{}, when{{7, 1, 18, 19}, {8, 1, 41, 42}}, report.Inconclusive, "gate in between is not"},
		"a worker ended":  {when{}, when{{7, 2, 18, 30}, {7, 1, 41, 42}}, report.Inconclusive, "gate in between is not"},
		"workers, beyond": {when{}, when{{7, 4, 18, 30}, {7, 4, 41, 548}}, report.Inconclusive, "began, 523 MiB"},
		"workers, within": {when{}, when{{7, 4, 18, 30}, {7, 4, 41, 60}}, report.Pass, "began, 57.2 MiB"},
		"one of two beyond": {
			when{{3, 1, 5, 5}, {3, 1, 5, 5}}, when{{7, 1, 18, 19}, {7, 1, 41, 548}}, report.Fail, "it had 523 MiB",
		},
		"the peaks of two": {
			when{{3, 1, 5, 5}, {3, 1, 5, 40}}, when{{7, 1, 18, 19}, {7, 1, 41, 42}}, report.Inconclusive, "began, 78.2 MiB",
		},
		"one of two ended": {
			when{{3, 1, 5, 5}, {}}, when{{7, 1, 18, 19}, {7, 1, 41, 42}}, report.Inconclusive, "store in between is not",
		},
	} {
		var seen [2][]metric.Sample
		for i := range seen {
			for subject, m := range map[string]held{"gate": c.gate[i], "store": c.store[i]} {
				if m.processes > 0 {
					seen[i] = append(seen[i], m.of(subject)...)
				}
			}
		}
		f, _ := mostMemory(seen[0], seen[1])
		b, err := budget.Parse("rss <= 64MiB")
		must(t, err)
		if f = f.judged(&b); f.verdict != c.want || !strings.Contains(f.how, c.says) {
			t.Errorf("%s: %s (%s), want %s (%q): %+v", name, f.verdict, f.how, c.want, c.says, f.Interval)
		}
	}
}

// TestPeaksBetweenReadings: in a comparison and in a soak, too, what a target gave back before it was read keeps no
// limit.
func TestPeaksBetweenReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peak float64
		want report.Verdict
	}{{60, report.Pass}, {500, report.Inconclusive}} {
		x := policyGrowth("create-pod")
		x.budget = []string{"rss <= 64MiB"}
		x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
			for when, peak := range map[record.When]float64{record.Before: 31, record.After: c.peak} {
				must(t, w.Samples(record.Samples{
					Treatment: trial.Treatment, Block: trial.Block, When: when,
					Samples: held{7, 1, 31 + float64(trial.Block)/100, peak}.of("plane"),
				}))
			}
		}
		for _, b := range analyzed(t, x.write(t, t.TempDir())).Budgets {
			if b.Verdict != c.want {
				t.Errorf("compare, a peak of %v: %s: %s", c.peak, b.Verdict, b.Reason)
			}
		}
		verdicts(t, soaked(t, endurance{measured: 60, budget: x.budget, peak: func(at float64) float64 {
			if at < 90 {
				return 40 * mib
			}
			return c.peak * mib
		}}), map[string]report.Verdict{"rss <= 64MiB": c.want})
	}
}
