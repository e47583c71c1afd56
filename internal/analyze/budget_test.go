package analyze

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
	"tare/rigs/simulation"
)

func TestBudgetsAgainstTheBaseline(t *testing.T) {
	t.Parallel()
	j := journal{
		treatments: []design.Treatment{{ID: "cache=on", Baseline: true}, {ID: "cache=off"}},
		budget: []string{
			"capacity >= -1%", "capacity >= -10/s", "cache=on: capacity >= 100/s", "nobody: capacity >= 1/s", "capacity >= +50%",
		},
		trace: func(id string) capacity.Trace {
			if id == "cache=on" {
				return limitedTrace(1)
			}
			return limitedTrace(2)
		},
	}
	rep := measured(t, j)
	var got []string
	for _, b := range rep.Budgets {
		got = append(got, b.Text+" | "+b.Treatment+" | "+string(b.Verdict))
	}
	want := []string{
		"capacity >= -1% | cache=off | inconclusive", "capacity >= -10/s | cache=off | pass",
		"cache=on: capacity >= 100/s | cache=on | pass",
		"nobody: capacity >= 1/s | nobody | not-measured", "capacity >= +50% | cache=off | fail",
	}
	// Both have a capacity of 150/s to within their intervals, which are wider than 1 % together.
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("budgets (-want +got):\n%s\n%+v", d, rep.Budgets)
	}
}

func TestBudgetsAtARate(t *testing.T) {
	t.Parallel()
	want := map[string]report.Verdict{
		"response.p50 <= 6ms at 147/s":      report.Pass,         // measured there
		"response.p50 <= 6ms at 100/s":      report.Pass,         // holds at 147/s, so below too
		"response.p50 <= 5ms at 10/s":       report.Fail,         // every good call takes longer
		"response.p50 <= 5ms at 30/s":       report.Fail,         // broken at 20/s, so above too
		"response.p50 <= 5ms at 1/s":        report.Inconclusive, // broken at higher rates only
		"response.p999 <= 6.015ms at 147/s": report.Inconclusive, // 735 calls are too few
		"error <= 1% at 147/s":              report.Pass,
		"error <= 1% at 195/s":              report.Fail,
		"response.p50 >= 1ms at 147/s":      report.Pass,
		"response.p50 >= 1ms at 100/s":      report.NotMeasured, // a lower limit cannot be carried over
		"nothing.response <= 1s at 20/s":    report.NotMeasured,
		"response.p50 <= 6ms":               report.NotMeasured, // at which rate?
		"service.max <= 10ms at 147/s":      report.Pass,
		"pool_wait.mean <= 1ms at 147/s":    report.Pass,
		"cpu <= 1ms":                        report.NotMeasured,  // one block
		"rss <= 64MiB":                      report.Inconclusive, // nobody read the peak
		"rss <= 30MiB":                      report.Fail,         // a reading is above it
		"goodput >= 1/s":                    report.NotMeasured,
	}
	verdicts(t, measured(t, journal{budget: sortedKeys(want)}), want)
}

// TestBudgetsAtARateAreDecidedByTheBestStretch: the stretch that was made for the rate decides, else the longest; what
// a moment of the ramp shows neither keeps a budget nor breaks one against a longer stretch.
func TestBudgetsAtARateAreDecidedByTheBestStretch(t *testing.T) {
	t.Parallel()
	const usual, slow = 5 * time.Millisecond, 80 * time.Millisecond
	at := func(role capacity.Role, rate, seconds float64, share int) tried {
		return tried{
			role: role, rate: rate, took: usual, late: usual, share: share, bad: true,
			lasts: time.Duration(seconds * float64(time.Second)),
		}
	}
	cold := at(capacity.RoleRamp, 160, .5, 0)
	cold.took = slow
	few := at(capacity.RoleConfirmLow, 20, 10, 2)
	few.late, few.bad = slow, false
	for name, c := range map[string]struct {
		budget string
		trace  []tried
		want   report.Verdict
		says   string
	}{
		"a moment's allowance": {
			"error <= 5% at 160/s",
			[]tried{at(capacity.RoleRamp, 160, .5, 0), at(capacity.RoleRate, 160, 25, 33)},
			report.Fail, "4000 calls",
		},
		"a cold moment": {
			"response.p50 <= 20ms at 160/s", []tried{cold, at(capacity.RoleRate, 160, 25, 0)}, report.Pass, "4000 calls",
		},
		"a cold moment, kept at a higher rate": {
			"response.p50 <= 20ms at 160/s",
			[]tried{cold, at(capacity.RoleConfirmLow, 200, 10, 0)},
			report.Pass, "2000 calls",
		},
		"a moment's allowance, broken at a lower rate": {
			"error <= 5% at 160/s",
			[]tried{at(capacity.RoleRamp, 160, .5, 0), at(capacity.RoleConfirmHigh, 103, 10, 20)},
			report.Fail, "1030 calls",
		},
		"a moment alone": {
			"error <= 5% at 160/s", []tried{at(capacity.RoleRamp, 160, .5, 0)}, report.Inconclusive, "too short",
		},
		"a moment alone that breaks it": {
			"error <= 5% at 160/s", []tried{at(capacity.RoleRamp, 160, .5, 40)}, report.Fail, "80 calls",
		},
		"a short allowance at a higher rate against an open answer": {
			"error <= 5% at 160/s",
			[]tried{at(capacity.RoleRamp, 200, 2, 0), at(capacity.RoleRate, 160, 25, 5)},
			report.Inconclusive, "4000 calls",
		},
		"too few calls, and kept at a higher rate": {
			"response.p99 <= 20ms at 10/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 10, 0), at(capacity.RoleRate, 10, 30, 0)},
			report.Pass, "1470 calls",
		},
		"two stretches that disagree": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 10, 20), at(capacity.RoleConfirmLow, 147, 12, 0)},
			report.Inconclusive, "1764 calls, and broken at 147/s over 1470 calls",
		},
		"two stretches at a higher rate that disagree": {
			"error <= 5% at 145/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 5, 0), at(capacity.RoleConfirmLow, 147, 24, 20)},
			report.Inconclusive, "kept at 147/s over 735 calls, and broken at 147/s over 3528 calls",
		},
		"a longer stretch at a lower rate that leaves it open, with a value beyond the limit": {
			"response.p99 <= 20ms at 15/s",
			[]tried{at(capacity.RoleConfirmHigh, 200, 5, 0), few},
			report.Inconclusive, "measured at 20/s over 200 calls; kept at 200/s over 1000 calls",
		},
		"a longer stretch at a lower rate that leaves it open, with a value within the limit": {
			"response.p99 <= 20ms at 15/s",
			[]tried{at(capacity.RoleConfirmHigh, 200, 5, 0), at(capacity.RoleConfirmLow, 20, 10, 0)},
			report.Pass, "1000 calls",
		},
		"a longer stretch at a higher rate that disagrees, and a lower rate that held": {
			"error <= 5% at 50/s",
			[]tried{
				at(capacity.RoleConfirmLow, 147, 12, 0), at(capacity.RoleConfirmLow, 147, 24, 20),
				at(capacity.RoleConfirmLow, 140, 10, 0),
			},
			report.Pass, "1400 calls",
		},
		"a moment with a queue before the rate held": {
			"error <= 5% at 50/s",
			[]tried{at(capacity.RoleBusy, 147, 2, 20), at(capacity.RoleConfirmLow, 147, 12, 0)},
			report.Pass, "1764 calls",
		},
		"a stretch made for the rate, and a shorter one before it that disagrees": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 10, 20), at(capacity.RoleRate, 147, 27, 0)},
			report.Pass, "3969 calls",
		},
		"a stretch made for the rate, and a longer one that disagrees": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 40, 20), at(capacity.RoleRate, 147, 27, 0)},
			report.Inconclusive, "3969 calls, and broken at 147/s over 5880 calls",
		},
		"a stretch made for the rate, and a queue that stood at a lower one": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 140, 40, 20), at(capacity.RoleRate, 147, 27, 0)},
			report.Pass, "3969 calls",
		},
		"one caller alone": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleAlone, 147, 10, 60), at(capacity.RoleRate, 147, 27, 0)},
			report.Pass, "3969 calls",
		},
		"most were refused at once": {
			"response.p75 <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 80)},
			report.Inconclusive, "80% of them failed",
		},
		"few were refused at once": {
			"service.p90 <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 2)},
			report.Pass, "2% of them failed",
		},
		"the longest of calls of which few were refused": {
			"response.max <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 2)},
			report.Inconclusive, "2% of them failed",
		},
		"the mean of calls of which few were refused": {
			"response.mean <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 2)},
			report.Inconclusive, "2% of them failed",
		},
		"a short point of a ladder": {
			"error <= 5% at 200/s", []tried{at(capacity.RolePoint, 200, 1, 0)}, report.Pass, "200 calls",
		},
	} {
		b, err := budget.Parse(c.budget)
		must(t, err)
		trace := made(c.trace...)
		if f := decideAt(&b, -1, &trace); f.verdict != c.want || !strings.Contains(f.how, c.says) {
			t.Errorf("%s: %s: %s (%s), want %s (%q)", name, c.budget, f.verdict, f.how, c.want, c.says)
		}
	}
}

// TestAnAllowanceKeepsNoBudget: a search of a virtual server that takes 100 calls a second, and 300 more once, does
// not say that it answers 160 a second well.
func TestAnAllowanceKeepsNoBudget(t *testing.T) {
	t.Parallel()
	c := simulation.Composition{
		Seed: 3, MaxRate: 2000, Timeout: 10, Latency: .002, Parts: []simulation.Part{
			{Kind: "service", With: map[string]float64{"workers": 32, "mean": .01}},
			{Kind: "token-bucket", With: map[string]float64{"rate": 100, "burst": 300}},
		},
	}
	must(t, c.Validate())
	o := c.Options()
	o.Rates = []float64{80, 160}
	trace, err := capacity.Search(t.Context(), c.World(), o, nil)
	must(t, err)
	for text, want := range map[string]report.Verdict{
		"error <= 5% at 160/s": report.Fail, "error <= 5% at 80/s": report.Pass,
	} {
		b, err := budget.Parse(text)
		must(t, err)
		if f := decideAt(&b, -1, &trace); f.verdict != want {
			t.Errorf("%s: %s, want %s: %v, %s", text, f.verdict, want, f.Interval, f.how)
		}
	}
}

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
			now := 31 + float64(trial.Block)/100
			around(t, w, trial, held{7, 1, now, 31}.of("plane"), held{7, 1, now, c.peak}.of("plane"))
		}
		for _, b := range measured(t, x).Budgets {
			if b.Verdict != c.want {
				t.Errorf("compare, a peak of %v: %s: %s", c.peak, b.Verdict, b.Reason)
			}
		}
		verdicts(t, measured(t, endurance{measured: 60, budget: x.budget, peak: func(at float64) float64 {
			if at < 90 {
				return 40 * mib
			}
			return c.peak * mib
		}}), map[string]report.Verdict{"rss <= 64MiB": c.want})
	}
}

// limits are limits that a metric of a unit may have, without and with a sign.
var limits = map[metric.Unit][2]string{
	metric.Seconds: {"1s", "+1s"}, metric.CPUSeconds: {"1s", "+1s"}, metric.Bytes: {"1GiB", "+1GiB"},
	metric.Count: {"100", "+100"},
	metric.Ratio: {"50%", "+50%"}, metric.PerSecond: {"1/s", "+1/s"},
}

// everyBudget crosses all metrics, quantiles, operations, limits and rates, and draws so many of them.
func everyBudget(rate string, draw int) []string {
	metrics := append(metric.Known(), metric.Capacity, metric.SLOCapacity, metric.PoolWait)
	for _, m := range budget.ProbedMetrics() {
		metrics = append(metrics, m.Metric)
	}
	var out []string
	for _, m := range metrics {
		for _, quantile := range []string{"", ".p50", ".p90", ".p99", ".p99999", ".min", ".mean", ".max", ".stddev"} {
			for _, operation := range []string{"", "token.", "nothing."} {
				for _, drift := range []string{"", " drift"} {
					for _, limit := range limits[m.Unit] {
						if drift != "" {
							limit += "/h"
						}
						for _, at := range []string{"", " at " + rate, " at 7/s"} {
							out = append(out, operation+m.Name+quantile+drift+" <= "+limit+at)
						}
					}
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(14, 6))
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(draw, len(out))]
}

// mayFail are reasons for not measuring that only a run can know.
var mayFail = []string{"the baseline's ", "of which a percentage has no meaning"}

// TestAcceptedBudgetsAreMeasured crosses the questions with all that a budget can say: what validation accepts is
// measured on a complete record, and what it refuses is not.
func TestAcceptedBudgetsAreMeasured(t *testing.T) {
	t.Parallel()
	ops := []string{"token"}
	arm := func(metrics ...string) func(*design.Treatment) budget.Arm {
		return func(*design.Treatment) budget.Arm {
			return budget.Arm{Operations: ops, Metrics: metrics, Samples: func(string) float64 { return 600 }}
		}
	}
	wire := experiment{blocks: 20, calls: 600, cost: millisecond, block: .01, seed: 9, operations: ops}
	batches := experiment{blocks: 20, cost: slower(1.1), seed: 6, operations: ops}
	for name, c := range map[string]struct {
		record func(t *testing.T) *record.Record
		rate   string
		scope  budget.Scope
	}{
		"compare calls": {
			func(t *testing.T) *record.Record { return opened(t, wire.write(t, t.TempDir())) }, "1000/s",
			budget.Scope{Rules: question.Of(design.Compare).Budgets, Rate: 1000, Blocks: 20, Of: arm("cpu", "upstream_calls")},
		},
		"compare batches": {
			func(*testing.T) *record.Record { return batches.record() }, "1000/s",
			budget.Scope{
				Rules: question.Of(design.Compare).Budgets, OwnPace: true, Blocks: 20, Of: func(*design.Treatment) budget.Arm {
					return budget.Arm{
						Operations: ops, Metrics: []string{"cpu", "wall"}, Samples: func(string) float64 { return 16 },
					}
				},
			},
		},
		"soak": {
			func(t *testing.T) *record.Record {
				x := endurance{operations: ops, open: true, poolWait: 1e-6}
				return opened(t, x.write(t, t.TempDir()))
			}, "50/s",
			budget.Scope{
				Rules: question.Of(design.Soak).Budgets, Rate: 50, Length: 10 * time.Minute,
				Of: func(*design.Treatment) budget.Arm {
					return budget.Arm{
						Operations: ops, Metrics: []string{"cpu", "rss", "heap_used"},
						Samples: func(string) float64 { return 50 * 600 },
					}
				},
			},
		},
		"capacity": {
			func(t *testing.T) *record.Record { return opened(t, journal{}.write(t, t.TempDir())) }, "147/s",
			budget.Scope{Rules: question.Of(design.Capacity).Budgets, Planned: true, Rate: 147, Of: arm("cpu", "rss")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rec := c.record(t)
			c.scope.Treatments = rec.Plan.Treatments
			texts := everyBudget(c.rate, 2000)
			accepted := 0
			var asked []string
			for _, text := range texts {
				b, err := budget.Parse(text)
				must(t, err)
				refusal := c.scope.Refuse(b)
				if refusal == nil {
					accepted++
					asked = append(asked, text)
				} else if len(asked)%3 == 0 {
					asked = append(asked, text)
				}
			}
			if accepted < 8 || accepted > len(texts)/2 {
				t.Fatalf("%d of %d budgets are accepted", accepted, len(texts))
			}
			rep, err := Analyze(rec, Options{Budget: asked})
			must(t, err)
			for i := range rep.Budgets {
				b := &rep.Budgets[i]
				parsed, err := budget.Parse(b.Text)
				must(t, err)
				refusal := c.scope.Refuse(parsed)
				only := slices.ContainsFunc(mayFail, func(why string) bool { return strings.Contains(b.Reason, why) })
				switch {
				case refusal == nil && b.Verdict == report.NotMeasured && !only:
					t.Errorf("%s: accepted, and not measured: %s", b.Text, b.Reason)
				case refusal != nil && b.Verdict != report.NotMeasured && refusal.Part != budget.PartQuantile:
					t.Errorf("%s: refused (%v), and %s: %s", b.Text, refusal, b.Verdict, b.Reason)
				}
			}
		})
	}
}

func opened(t *testing.T, dir string) *record.Record {
	t.Helper()
	r, err := record.Open(dir)
	must(t, err)
	return r
}

// TestProbedMetricsAreRead holds the metrics of budgets to those that probes read.
func TestProbedMetricsAreRead(t *testing.T) {
	t.Parallel()
	for _, m := range budget.ProbedMetrics() {
		q, ok := quantityOf(m.Name)
		if !ok || q.Unit != m.Unit || m.Level != (q.Kind == probe.Gauge) {
			t.Errorf("%s: a budget has it in %s (level %v), a probe has %+v", m.Name, m.Unit, m.Level, q)
		}
		soaks := slices.Contains(question.Of(design.Soak).Budgets.Probed, m.Name)
		if soaks != (memory(m.Name) && q.Kind == probe.Gauge || m.Name == metric.CPU.Name) {
			t.Errorf("%s: a budget of a soak: %v", m.Name, soaks)
		}
	}
}

// TestLateBlockTakesNoGate: response times decide where every block has calls enough but one from which no times are
// taken, since the generator was late.
func TestLateBlockTakesNoGate(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 11, calls: 1100, cost: millisecond, block: .01, seed: 9, operations: []string{"token"}}
	x.spoil = func(treatment string, block int) bool { return treatment == seccomp && block == 3 }
	rec := opened(t, x.write(t, t.TempDir()))
	for _, trial := range rec.Trials {
		trial.Samples = nil
	}
	rep := analyzedRecord(t, rec)
	if !warned(rep, "no times are taken from block 4") {
		t.Fatalf("no block was late: %q", rep.Warnings)
	}
	if rep.AA.Unchecked != "" || !slices.ContainsFunc(rep.Effects, func(e report.Effect) bool {
		return e.Gating && e.Metric == "response"
	}) {
		t.Errorf("response times decide nothing: %s; effects %+v", rep.AA.Unchecked, rep.Effects)
	}
}

// TestUngatedRunsSayWhy: where every A/A value is there but no metric decides, the run says so, and what to change.
func TestUngatedRunsSayWhy(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 10, calls: 100, cost: millisecond, block: .01, seed: 9, operations: []string{"token"}}
	x.spoil = func(treatment string, block int) bool { return treatment == seccomp && block == 3 }
	rec := opened(t, x.write(t, t.TempDir()))
	for _, trial := range rec.Trials {
		trial.Samples = nil // nothing could be read of the target
	}
	rep := analyzedRecord(t, rec)
	const why = "no metric decides a verdict: there is no CPU time of the target, and response.p50 decides from 1000 " +
		"calls a block on, of which there were 100"
	if rep.Verdict != report.Inconclusive || rep.Reason != why || rep.AA.Reliable || rep.AA.Unchecked != why {
		t.Errorf("%s: %s; A/A %+v", rep.Verdict, rep.Reason, rep.AA)
	}
	if want := fmt.Sprintf("load: {duration: %v}", design.LongEnough(1000)); !strings.Contains(rep.AA.Remedy, want) {
		t.Errorf("remedy %q, want %q", rep.AA.Remedy, want)
	}
	if stop, reason := Decide(rep); stop || !strings.Contains(reason, why) {
		t.Errorf("stop %v: %s", stop, reason)
	}
	var text strings.Builder
	must(t, report.Text(&text, rep))
	if strings.Contains(text.String(), "too noisy") || !strings.Contains(text.String(), "no metric decides a verdict") ||
		!strings.Contains(text.String(), "name a metric that is to decide") {
		t.Error(text.String())
	}
}
