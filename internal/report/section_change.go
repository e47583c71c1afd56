package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// endless is a magnitude from which a bound is none: JSON holds no infinity.
const endless = 1e300

// space keeps a number and its unit in one line.
const space = "\u00a0"

// isRatio says whether an effect is a share of the baseline, not a difference in the metric's unit.
func isRatio(e *Effect) bool { return e.Kind != "difference" }

// estimated says whether an effect has an estimate at all; without one its Reason says why.
func estimated(e *Effect) bool {
	return e.Level > 0 || e.Reason == "" || e.Estimate != 0 || e.Lo != 0 || e.Hi != 0
}

// bounded says whether an effect has an interval.
func hasInterval(e *Effect) bool { return e.Level > 0 || e.Lo != 0 || e.Hi != 0 }

// A scale of changes writes them with a sign and with as many decimals as their interval is worth.
type changes struct {
	decimals int
	show     func(float64) string // of a difference; nil: shares, in percent
	points   bool                 // percentage points: a difference of shares
}

// changesOf is the scale for an effect: two digits of half its interval.
func changesOf(e *Effect, u metric.Unit) changes {
	if !isRatio(e) && u != metric.Ratio {
		return changes{show: Quantity(u)}
	}
	half := math.Abs(e.Estimate) / 10
	if hasInterval(e) {
		half = (e.Hi - e.Lo) / 2
	}
	c := changes{points: !isRatio(e)}
	for limit := 0.0295; c.decimals < 3 && half < limit; limit /= 10 {
		c.decimals++
	}
	if hasInterval(e) {
		c.decimals = e.Decimals(c.decimals)
	}
	return c
}

// number writes a change without its unit of percent: "+61".
func (c changes) number(v float64) string {
	switch {
	case v >= endless:
		return "+∞"
	case v <= -endless:
		return "−∞"
	case c.show != nil:
		return withSign(v, c.show(math.Abs(v)))
	}
	return withSign(v, strconv.FormatFloat(math.Abs(v)*100, 'f', c.decimals, 64))
}

// signed puts a sign before a magnitude, unless it was rounded to zero.
func withSign(v float64, magnitude string) string {
	switch {
	case !strings.ContainsAny(magnitude, "123456789"):
		return magnitude
	case v < 0:
		return "−" + magnitude
	}
	return "+" + magnitude
}

// value writes a change with its unit: "+61 %".
func (c changes) value(v float64) string {
	switch {
	case c.show != nil:
		return c.number(v)
	case c.points:
		return c.number(v) + space + "pp"
	}
	return c.number(v) + space + "%"
}

// between writes an interval: "[+55, +67]".
func (c changes) between(lo, hi float64) string {
	return "[" + c.number(lo) + ", " + c.number(hi) + "]"
}

// estimateText is an effect in numbers: "+61 % [+55, +67]".
func estimateText(r *Report, e *Effect) string {
	if !estimated(e) {
		return unit.Unknown
	}
	c := changesOf(e, unitOf(r, e.Metric))
	if !hasInterval(e) {
		return c.value(e.Estimate)
	}
	return c.value(e.Estimate) + " " + c.between(e.Lo, e.Hi) + manifoldText(e)
}

// multiple is an effect of more than 200 % as a factor and a difference, in brackets: " (×6.8, +14 ms)".
func manifoldText(e *Effect) string {
	if also := e.Multiple(); also != "" {
		return " (" + strings.ReplaceAll(also, " ", space) + ")"
	}
	return ""
}

// share writes a share of the baseline for an axis or a margin: "2 %", "+5 %".
func axisShare(v float64) string { return strings.Replace(unit.Share(v), "%", space+"%", 1) }

// tickShare is a change on an axis: "−5 %", "0", "+10 %".
func tickShare(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	return withSign(v, axisShare(math.Abs(v)))
}

// unitOf finds a metric's unit: as the run measured it, or as it is known.
func unitOf(r *Report, name string) metric.Unit {
	for i := range r.Treatments {
		for k := range r.Treatments[i].Metrics {
			if m := &r.Treatments[i].Metrics[k]; m.Name == name && m.Unit != "" {
				return metric.Unit(m.Unit)
			}
		}
	}
	for i := range r.Blocks {
		if b := &r.Blocks[i]; b.Metric == name && b.Unit != "" {
			return b.Unit
		}
	}
	m, _ := metric.Find(name)
	return m.Unit
}

// quantity is what an effect is about, in words: "CPU time of open", "p99 of response of token".
func quantity(name, quantile, operation string) string {
	s := measure(name, quantile)
	if operation != "" {
		s += " of " + operation
	}
	return s
}

// measure is a metric in words.
func measure(name, quantile string) string {
	known := map[string]string{"cpu": "CPU time", "wall": "wall time", "response": "response time", "service": "service time", "error": "error share", "upstream_calls": "upstream calls"}
	s := known[name]
	if s == "" {
		s = strings.ReplaceAll(name, "_", " ")
	}
	if quantile != "" && quantile != "mean" {
		return quantile + " of " + s
	}
	if quantile != "" {
		return quantile + " " + s
	}
	return s
}

// effectWord is a verdict's word, its class in a table, and whether it is bad news.
func effectWord(v EffectVerdict) (word, class string) {
	switch v {
	case Regressed:
		return "✗ regressed", bad
	case Improved:
		return "✓ improved", good
	case Equivalent:
		return "✓ equivalent", good
	case Slower:
		return "? slower", unsure
	case Faster:
		return "? faster", unsure
	case EffectInconclusive:
		return "? inconclusive", unsure
	case NotJudged:
		return "– not judged", unsure
	}
	return string(v), unsure
}

// short is a treatment's name without the factor that all names begin with: "landlock rules=8" of "enforcer=landlock rules=8". Tables and
// budgets keep the whole name, which is what other outputs call it.
func short(r *Report, id string) string {
	factor, rest, ok := strings.Cut(id, "=")
	if !ok || rest == "" || strings.Contains(factor, " ") {
		return id
	}
	for i := range r.Treatments {
		t := &r.Treatments[i]
		if t.Control == "" && (!strings.HasPrefix(t.ID, factor+"=") || strings.Count(t.ID, "=") == 0) {
			return id
		}
	}
	if !several(r) || meaningless(r, factor) {
		return id
	}
	return rest
}

// meaningless says whether a name would be a bare number or switch without its factor.
func meaningless(r *Report, factor string) bool {
	for i := range r.Treatments {
		rest, ok := strings.CutPrefix(r.Treatments[i].ID, factor+"=")
		first, _, _ := strings.Cut(rest, " ")
		first = strings.TrimRight(first, ",;")
		if !ok {
			continue
		}
		if _, err := strconv.ParseFloat(first, 64); err == nil || slices.Contains([]string{"on", "off", "true", "false", "yes", "no"}, first) {
			return true
		}
	}
	return false
}

// measured is a metric's value with its unit.
func measured(m *Metric) string {
	return Amount(m.Name, metric.Unit(m.Unit))(m.Value) + m.Beside()
}
