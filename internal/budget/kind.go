package budget

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// Rules say what budgets may say of a question's answer. The zero value judges nothing.
type Rules struct {
	Question design.Question // its name, for refusals
	// Calls are the metrics that every call has.
	Calls []Kind
	// Probed are the names of the probed metrics that it judges; every one is among ProbedMetrics.
	Probed []string
	// Refused are metrics with a refusal of their own; the others are only said not to be measured.
	Refused map[string]Refusal
	// Drift says that it judges how a metric changes over time.
	Drift bool
	// Blocks says that its values are of blocks: an upper quantile takes several of them, and operations stand apart.
	Blocks bool
	// Rates says that it offers many rates, so that a limit on calls names one.
	Rates bool
}

// A Kind says how a metric is kept by a question, and so what a budget may say of it.
type Kind struct {
	Metric metric.Metric
	// Quantiles are those that it has besides the percentiles; "" is the main value, which every metric has.
	Quantiles []string
	// Percentiles says that it has any of them.
	Percentiles bool
	Whole       bool // of all operations together
	AtRate      bool // of the calls at one rate of a search
	Found       bool // what a search finds
	Samples     bool // percentiles are of single calls or batches, which must be enough
}

// Times are the times of calls, each kept in the way of k.
func Times(k Kind) []Kind {
	k.Percentiles = true
	var out []Kind
	for _, m := range []metric.Metric{metric.Response, metric.Service, metric.PoolWait} {
		k.Metric = m
		out = append(out, k)
	}
	return out
}

// Means are metrics of which only the mean is kept.
func Means(metrics ...metric.Metric) (out []Kind) {
	for _, m := range metrics {
		out = append(out, Kind{Metric: m, Quantiles: []string{"mean"}})
	}
	return out
}

// kinds are the metrics that every call has.
func (s *Scope) kinds() []Kind {
	if s.OwnPace {
		return nil // what batches count is up to the area
	}
	return s.Rules.Calls
}

// A Probed metric is one of the target's processes, or of its own counts.
type Probed struct {
	metric.Metric
	Level bool // a level that is read, and not a cost of calls
}

// probed are the metrics of targets that budgets can name. Package probe has them with their sources; a test compares
// the two.
var probed = []Probed{
	{metric.CPU, false},
	{metric.Metric{Name: "rss", Unit: metric.Bytes}, true},
	{metric.Metric{Name: "heap_used", Unit: metric.Bytes}, true},
	{metric.Metric{Name: "threads", Unit: metric.Count}, true},
	{metric.Metric{Name: "fds", Unit: metric.Count}, true},
	{metric.Metric{Name: "goroutines", Unit: metric.Count}, true},
	{metric.Metric{Name: "metaspace", Unit: metric.Bytes}, true},
	{metric.Metric{Name: "upstream_calls", Unit: metric.Count}, false},
	{metric.Metric{Name: "cache_hits", Unit: metric.Count}, false},
	{metric.Metric{Name: "cache_misses", Unit: metric.Count}, false},
	{metric.Metric{Name: "cache_renewals", Unit: metric.Count}, false},
	{metric.Metric{Name: "distinct_tokens", Unit: metric.Count}, false},
}

// ProbedMetrics are the metrics of targets that budgets can name.
func ProbedMetrics() []Probed { return slices.Clone(probed) }

// processes are the metrics that come from the target's processes.
var processes = []string{"cpu", "rss", "heap_used", "threads", "fds", "goroutines", "metaspace"}

// kindOf finds how the metric of b is kept.
func (s *Scope) kindOf(b *Budget, arm *Arm) (Kind, *Refusal) {
	own := s.kinds()
	if i := slices.IndexFunc(own, func(k Kind) bool { return k.Metric.Name == b.Metric }); i >= 0 {
		return own[i], s.checkFound(b, own[i])
	}
	if s.OwnPace {
		m, known := metric.Find(b.Metric, s.Own...)
		if known && (arm.Open || slices.Contains(arm.Metrics, m.Name)) {
			return Kind{Metric: m, Percentiles: true, Quantiles: Summaries(), Samples: true}, nil
		}
		return Kind{}, s.unmeasured(b, arm)
	}
	i := slices.IndexFunc(probed, func(p Probed) bool { return p.Name == b.Metric })
	if r, ok := s.Rules.Refused[b.Metric]; ok && i >= 0 {
		return Kind{}, &r
	}
	switch {
	case i < 0, !slices.Contains(s.Rules.Probed, b.Metric):
		return Kind{}, s.unmeasured(b, arm)
	case !arm.Open && !slices.Contains(arm.Metrics, b.Metric):
		if arm.Unread != "" && slices.Contains(processes, b.Metric) {
			return Kind{}, refuse(PartMetric, arm.Instead, "%s of the target cannot be read, since %s", b.Metric, arm.Unread)
		}
		return Kind{}, s.unmeasured(b, arm)
	}
	k := Kind{Metric: probed[i].Metric, Whole: true}
	if !probed[i].Level {
		k.Quantiles = []string{"mean"}
	}
	return k, nil
}

// checkFound refuses what a search finds where there is no search, or no objective.
func (s *Scope) checkFound(b *Budget, k Kind) *Refusal {
	switch {
	case k.Found && len(s.Ladder) > 0:
		instead := fmt.Sprintf("leave out the ladder for a search, or limit a metric at one of its rates, as in "+
			"\"error <= 1%% at %v\"", unit.Rate(s.Ladder[0]))
		return refuse(PartMetric, instead, "a ladder measures the rates of the file and finds no %s", b.Metric)
	case b.Metric == metric.SLOCapacity.Name && !s.Objective:
		return refuse(PartMetric, "load: {slo: {limit: 500ms}}", "no latency objective is given")
	}
	return nil
}

// unmeasured refuses a metric that the question does not measure.
func (s *Scope) unmeasured(b *Budget, arm *Arm) *Refusal {
	var names []string
	for _, k := range s.kinds() {
		if k.Metric.Name != metric.SLOCapacity.Name || s.Objective {
			names = append(names, k.Metric.Name)
		}
	}
	for _, name := range arm.Metrics {
		if s.OwnPace || slices.Contains(s.Rules.Probed, name) {
			names = append(names, name)
		}
	}
	if arm.Open && s.OwnPace {
		for _, m := range append(metric.Known(), s.Own...) {
			names = append(names, m.Name)
		}
	}
	where := "the question " + string(s.Rules.Question)
	if s.OwnPace {
		where = "this area"
	}
	reason := fmt.Sprintf("%s does not measure %s; it measures %s%s", where, b.Metric, strings.Join(names, ", "),
		spelling.DidYouMean(b.Metric, names))
	if b.Operation != "" || !s.OwnPace || len(names) == 0 {
		return refuse(PartMetric, "", "%s", reason)
	}
	if arm.has(b.Metric) {
		return refuse(PartMetric, fmt.Sprintf("write %q", strings.Replace(b.Text, b.Metric, b.Metric+"."+names[0], 1)),
			"%s is an operation, and one of its metrics must be named", b.Metric)
	}
	example := "OPERATION"
	if busy := arm.busy(1); len(busy) > 0 {
		example = busy[0]
	}
	return refuse(PartMetric, "", "%s; a limit of one operation names both, such as %s.%s", reason, example, names[0])
}

// checkQuantile refuses quantiles that the metric does not have.
func (s *Scope) checkQuantile(b *Budget, k Kind) *Refusal {
	if b.Quantile == "" {
		return nil
	}
	leave := fmt.Sprintf("leave out %q", "."+b.Quantile)
	_, percentile := Fraction(b.Quantile)
	switch {
	case b.Drift:
		if have := driftsOf(b.Metric); !slices.Contains(have, b.Quantile) {
			return refuse(PartQuantile, leave, "the drift of %s has no %s%s", b.Metric, b.Quantile, listed(have))
		}
		return nil
	case s.Rules.Blocks && Extreme(b.Quantile) && b.Limit.Against != Absolute:
		return refuse(PartLimit, "limit it without a sign, or a percentile such as p99",
			"one call makes the %s of %s, so that no change of it can be told", b.Quantile, b.Metric)
	case percentile && k.Percentiles, slices.Contains(k.Quantiles, b.Quantile):
		return nil
	case k.Percentiles:
		return refuse(PartQuantile, "", "%s of %s has no interval here; there are percentiles such as p99, %s",
			b.Quantile, b.Metric, strings.Join(k.Quantiles, ", "))
	}
	return refuse(PartQuantile, leave, "%s is one value and has no %s", b.Metric, b.Quantile)
}

func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; there is " + strings.Join(names, ", ")
}

// driftsOf are the quantiles of which windows keep the course.
func driftsOf(name string) []string {
	switch name {
	case metric.Response.Name:
		return []string{"mean", "p50", "p90", "p99"}
	case metric.Service.Name, metric.Error.Name, metric.Goodput.Name, metric.CPU.Name:
		return []string{"mean"}
	}
	return nil
}

// LeastTrend is how long a soak must measure before a slope is judged: over less, the slow waves of a host, and a
// program that is still filling its caches, look like a trend.
const LeastTrend = 8 * time.Minute

const (
	// PooledBlocks is how many blocks a pooled quantile takes, as stat.PooledQuantile has it.
	PooledBlocks = 20
	// pooledBeyond is how many values must lie beyond the quantile.
	pooledBeyond = 100
)

// Pooled is the fraction of a quantile that is estimated from the calls of all blocks together: any percentile but the
// median.
func Pooled(quantile string) (q float64, ok bool) {
	q, ok = Fraction(quantile)
	return q, ok && q != 0.5
}

// PooledValues is how many values in all, of all blocks together, the q-quantile takes.
func PooledValues(q float64) float64 { return math.Round(pooledBeyond / min(q, 1-q)) }

// Extreme reports whether a quantile is the least or the greatest of the values that there were: a fact without an
// interval.
func Extreme(quantile string) bool { return quantile == "min" || quantile == "max" }

// checkLength refuses what the planned time, or the planned calls, cannot tell.
func (s *Scope) checkLength(b *Budget, arm *Arm, k Kind) *Refusal {
	if b.Drift && s.Length > 0 && s.Length < LeastTrend {
		return refuse(PartDrift, fmt.Sprintf("load: {duration: %v}", unit.Duration(LeastTrend)),
			"a drift is judged from %v on, and this soak measures %v", unit.Duration(LeastTrend), unit.Duration(s.Length))
	}
	if b.Drift && b.Metric == metric.PoolWait.Name {
		return refuse(PartDrift, "limit the drift of response, of which it is a part", "the course of pool_wait is not kept")
	}
	q, percentile := Fraction(b.Quantile)
	if !k.Samples || !percentile || b.Drift || arm.Samples == nil {
		return nil
	}
	if !s.Rules.Blocks {
		return refuseShort(b, arm.Samples(b.Operation), math.Round(1/(1-q)), "")
	}
	if _, pooled := Pooled(b.Quantile); !pooled || s.Blocks == 0 {
		return nil
	}
	if s.Blocks < PooledBlocks {
		return refuse(PartQuantile, fmt.Sprintf("blocks: %d", PooledBlocks), "%s needs %d blocks, and there are at most %d",
			b.Quantile, PooledBlocks, s.Blocks)
	}
	return refuseShort(b, arm.Samples(b.Operation)*float64(s.Blocks), PooledValues(q),
		fmt.Sprintf(" in at most %d blocks", s.Blocks))
}

// refuseShort refuses a quantile of which there will be too few values.
func refuseShort(b *Budget, have, need float64, in string) *Refusal {
	if have == 0 || have >= need {
		return nil
	}
	easier := "lower"
	if q, _ := Fraction(b.Quantile); q < 0.5 {
		easier = "higher"
	}
	return refuse(PartQuantile, fmt.Sprintf("measure %s times as many, by a longer duration or a higher rate, or limit "+
		"a %s quantile", unit.Number(math.Ceil(need/have)), easier),
		"%s needs %.0f values, and there will be %.0f%s", b.Quantile, need, math.Floor(have), in)
}
