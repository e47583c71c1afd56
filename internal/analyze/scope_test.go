package analyze

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
)

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
