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

// A kind says how a metric is kept by a question, and so what a budget may say of it.
type kind struct {
	metric metric.Metric
	// quantiles are those that it has besides the percentiles; "" is the main value, which every metric has.
	quantiles []string
	// percentiles says that it has any of them.
	percentiles bool
	whole       bool // of all operations together
	atRate      bool // of the calls at one rate of a search
	found       bool // what a search finds
	samples     bool // percentiles are of single calls or batches, which must be enough
}

// kinds are the metrics that every call has, by question.
func (s *Scope) kinds() []kind {
	switch {
	case s.OwnPace:
		return nil // what batches count is up to the area
	case s.Question == design.Capacity:
		return []kind{
			{metric: metric.Capacity, whole: true, found: true},
			{metric: metric.SLOCapacity, whole: true, found: true},
			{metric: metric.Response, percentiles: true, quantiles: []string{"min", "mean", "max"}, atRate: true},
			{metric: metric.Service, percentiles: true, quantiles: []string{"min", "mean", "max"}, atRate: true},
			{metric: metric.PoolWait, percentiles: true, quantiles: []string{"min", "mean", "max"}, atRate: true},
			{metric: metric.Error, quantiles: []string{"mean"}, atRate: true},
		}
	case s.Question == design.Soak:
		return []kind{
			{metric: metric.Response, percentiles: true, quantiles: []string{"min", "mean", "max"}, samples: true},
			{metric: metric.Service, percentiles: true, quantiles: []string{"min", "mean", "max"}, samples: true},
			{metric: metric.PoolWait, percentiles: true, quantiles: []string{"min", "mean", "max"}, samples: true},
			{metric: metric.Error, quantiles: []string{"mean"}},
			{metric: metric.Goodput, quantiles: []string{"mean"}},
		}
	}
	return []kind{
		{metric: metric.Response, percentiles: true, quantiles: summaries, samples: true},
		{metric: metric.Service, percentiles: true, quantiles: summaries, samples: true},
		{metric: metric.PoolWait, percentiles: true, quantiles: summaries, samples: true},
		{metric: metric.Error, quantiles: []string{"mean"}},
		{metric: metric.Goodput, quantiles: []string{"mean"}},
	}
}

// A Probed metric is one of the target's processes, or of its own counts.
type Probed struct {
	metric.Metric
	Level     bool              // a level that is read, and not a cost of calls
	Questions []design.Question // that judge it
}

var (
	blocked = []design.Question{design.Compare, design.Scale}
	always  = []design.Question{design.Compare, design.Scale, design.Capacity, design.Soak}
	soaking = []design.Question{design.Soak}
)

// probed are the metrics of targets that budgets can name. Package probe has them with their sources; a test holds the two together.
var probed = []Probed{
	{metric.CPU, false, []design.Question{design.Compare, design.Scale, design.Soak}},
	{metric.Metric{Name: "rss", Unit: metric.Bytes}, true, always},
	{metric.Metric{Name: "heap_used", Unit: metric.Bytes}, true, soaking},
	{metric.Metric{Name: "threads", Unit: metric.Count}, true, soaking},
	{metric.Metric{Name: "fds", Unit: metric.Count}, true, soaking},
	{metric.Metric{Name: "goroutines", Unit: metric.Count}, true, soaking},
	{metric.Metric{Name: "metaspace", Unit: metric.Bytes}, true, soaking},
	{metric.Metric{Name: "upstream_calls", Unit: metric.Count}, false, blocked},
	{metric.Metric{Name: "cache_hits", Unit: metric.Count}, false, blocked},
	{metric.Metric{Name: "cache_misses", Unit: metric.Count}, false, blocked},
	{metric.Metric{Name: "cache_renewals", Unit: metric.Count}, false, blocked},
	{metric.Metric{Name: "distinct_tokens", Unit: metric.Count}, false, blocked},
}

// ProbedMetrics are the metrics of targets that budgets can name.
func ProbedMetrics() []Probed { return slices.Clone(probed) }

// processes are the metrics that come from the target's processes.
var processes = []string{"cpu", "rss", "heap_used", "threads", "fds", "goroutines", "metaspace"}

// kindOf finds how the metric of b is kept.
func (s *Scope) kindOf(b *Budget, arm *Arm) (kind, *Refusal) {
	own := s.kinds()
	if i := slices.IndexFunc(own, func(k kind) bool { return k.metric.Name == b.Metric }); i >= 0 {
		return own[i], s.checkFound(b)
	}
	if s.OwnPace {
		m, known := metric.Find(b.Metric)
		if known && (arm.Open || slices.Contains(arm.Metrics, m.Name)) {
			return kind{metric: m, percentiles: true, quantiles: summaries, samples: true}, nil
		}
		return kind{}, s.unmeasured(b, arm)
	}
	i := slices.IndexFunc(probed, func(p Probed) bool { return p.Name == b.Metric })
	switch {
	case i < 0:
		return kind{}, s.unmeasured(b, arm)
	case s.Question == design.Capacity && b.Metric == metric.CPU.Name:
		return kind{}, refuse(PartMetric, "ask question: compare or soak, or leave the budget out", "a search is one block, which gives no interval for cpu")
	case !slices.Contains(probed[i].Questions, s.Question):
		return kind{}, s.unmeasured(b, arm)
	case !arm.Open && !slices.Contains(arm.Metrics, b.Metric):
		if arm.Unread != "" && slices.Contains(processes, b.Metric) {
			return kind{}, refuse(PartMetric, arm.Instead, "%s of the target cannot be read, since %s", b.Metric, arm.Unread)
		}
		return kind{}, s.unmeasured(b, arm)
	}
	k := kind{metric: probed[i].Metric, whole: true}
	if !probed[i].Level {
		k.quantiles = []string{"mean"}
	}
	return k, nil
}

// checkFound refuses what a search finds where there is no search, or no objective.
func (s *Scope) checkFound(b *Budget) *Refusal {
	if s.Question != design.Capacity {
		return nil
	}
	found := b.Metric == metric.Capacity.Name || b.Metric == metric.SLOCapacity.Name
	switch {
	case found && len(s.Ladder) > 0:
		return refuse(PartMetric, "leave out the ladder for a search, or limit a metric at one of its rates, as in \"error <= 1% at "+unit.Rate(s.Ladder[0]).String()+"\"",
			"a ladder measures the rates of the file and finds no %s", b.Metric)
	case b.Metric == metric.SLOCapacity.Name && !s.Objective:
		return refuse(PartMetric, "load: {slo: {limit: 500ms}}", "no latency objective is given")
	}
	return nil
}

// unmeasured refuses a metric that the question does not measure.
func (s *Scope) unmeasured(b *Budget, arm *Arm) *Refusal {
	var names []string
	for _, k := range s.kinds() {
		if k.metric.Name != metric.SLOCapacity.Name || s.Objective {
			names = append(names, k.metric.Name)
		}
	}
	for _, name := range arm.Metrics {
		i := slices.IndexFunc(probed, func(p Probed) bool { return p.Name == name })
		if s.OwnPace || i >= 0 && slices.Contains(probed[i].Questions, s.Question) && (s.Question != design.Capacity || name != metric.CPU.Name) {
			names = append(names, name)
		}
	}
	if arm.Open && s.OwnPace {
		for _, m := range metric.Known() {
			names = append(names, m.Name)
		}
	}
	where := "the question " + string(s.Question)
	if s.OwnPace {
		where = "this area"
	}
	return refuse(PartMetric, "", "%s does not measure %s; it measures %s%s", where, b.Metric, strings.Join(names, ", "), spelling.DidYouMean(b.Metric, names))
}

// checkQuantile refuses quantiles that the metric does not have.
func (s *Scope) checkQuantile(b *Budget, k kind) *Refusal {
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
	case percentile && k.percentiles, slices.Contains(k.quantiles, b.Quantile):
		return nil
	case k.percentiles:
		return refuse(PartQuantile, "", "%s of %s has no interval here; there are percentiles such as p99, %s", b.Quantile, b.Metric, strings.Join(k.quantiles, ", "))
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

// LeastTrend is how long a soak must measure before a slope is judged: over less, the slow waves of a host, and a program that is still filling its
// caches, look like a trend.
const LeastTrend = 8 * time.Minute

const (
	// TailFrom is the fraction from which on a quantile is estimated from the calls of all blocks, since one block has too few beyond it.
	TailFrom = 0.9
	// TailBlocks is how many blocks that takes, as stat.PooledQuantile has it.
	TailBlocks = 20
	// tailBeyond is how many values must lie beyond the quantile.
	tailBeyond = 100
)

// TailValues is how many values in all, of all blocks together, the q-quantile takes.
func TailValues(q float64) float64 { return math.Round(tailBeyond / (1 - q)) }

// checkLength refuses what the planned time, or the planned calls, cannot tell.
func (s *Scope) checkLength(b *Budget, arm *Arm, k kind) *Refusal {
	if b.Drift && s.Length > 0 && s.Length < LeastTrend {
		return refuse(PartDrift, fmt.Sprintf("load: {duration: %v}", unit.Duration(LeastTrend)),
			"a drift is judged from %v on, and this soak measures %v", unit.Duration(LeastTrend), unit.Duration(s.Length))
	}
	if b.Drift && b.Metric == metric.PoolWait.Name {
		return refuse(PartDrift, "limit the drift of response, of which it is a part", "the course of pool_wait is not kept")
	}
	q, percentile := Fraction(b.Quantile)
	if !k.samples || !percentile || b.Drift || arm.Samples == nil {
		return nil
	}
	if s.Question == design.Soak {
		return refuseShort(b, arm.Samples(b.Operation), math.Round(1/(1-q)), "")
	}
	if q < TailFrom || s.Blocks == 0 {
		return nil
	}
	if s.Blocks < TailBlocks {
		return refuse(PartQuantile, fmt.Sprintf("blocks: %d", TailBlocks), "%s needs %d blocks, and there are at most %d", b.Quantile, TailBlocks, s.Blocks)
	}
	return refuseShort(b, arm.Samples(b.Operation)*float64(s.Blocks), TailValues(q), fmt.Sprintf(" in at most %d blocks", s.Blocks))
}

// refuseShort refuses a quantile of which there will be too few values.
func refuseShort(b *Budget, have, need float64, in string) *Refusal {
	if have == 0 || have >= need {
		return nil
	}
	return refuse(PartQuantile, fmt.Sprintf("measure %s times as many, by a longer duration or a higher rate, or limit a lower quantile", unit.Number(math.Ceil(need/have))),
		"%s needs %.0f values, and there will be %.0f%s", b.Quantile, need, math.Floor(have), in)
}
