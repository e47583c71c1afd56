package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
)

// Effects in words, for every format that people read.

// The kinds of effects.
const (
	asRatio      = "ratio"
	asDifference = "difference"
)

// Measured is what an effect, a growth law or a block value is about, as budgets write it: "open.cpu",
// "token.response.p99".
func Measured(operation, metric, quantile string) string {
	parts := []string{operation, metric, quantile}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}

func (x *Effect) measured() string      { return Measured(x.Operation, x.Metric, x.Quantile) }
func (m *Metric) measured() string      { return Measured(m.Operation, m.Name, m.Quantile) }
func (b *BlockValues) measured() string { return Measured(b.Operation, b.Metric, b.Quantile) }

// estimated reports whether there is an estimate.
func (x *Effect) estimated() bool {
	return !math.IsNaN(x.Estimate) && (x.Blocks > 0 || x.Reason == "" || x.Lo != x.Hi)
}

// excludesZero reports whether the interval excludes zero.
func (x *Effect) excludesZero() bool { return x.estimated() && (x.Lo > 0 || x.Hi < 0) }

// Change prints an effect with its interval: "+110 µs [80 µs, 140 µs]"; a share that differs from 0 also as a
// difference, "+4.1 % [3.6, 4.5] (+49 ns)", and of more than 200 % as a factor: "+580 % [540, 620] (×6.8, +14 ms)".
// Digits follow the interval's width. Without an estimate it is "not measured".
func (x *Effect) Change() string {
	if !x.estimated() {
		return "not measured"
	}
	if _, ok := x.inUnits(); ok {
		return x.ranged() + inBrackets(multiple(1+x.Estimate))
	}
	return x.ranged() + inBrackets(x.Multiple())
}

// ranged prints an effect and its interval alone: "+4.1 % [3.6, 4.5]".
func (x *Effect) ranged() string {
	if !x.estimated() {
		return "not measured"
	}
	y, ok := x.inUnits()
	if !ok {
		y = x
	}
	return strings.TrimSpace(y.size() + " " + y.interval())
}

// Brief prints an effect without its interval: "+4.1 % (+49 ns)".
func (x *Effect) Brief() string {
	if y, ok := x.inUnits(); ok && x.estimated() {
		return y.size()
	}
	if !x.estimated() {
		return "not measured"
	}
	return x.size() + inBrackets(x.Multiple())
}

// mostlyHarness is the share of the harness in a baseline from which a share of that baseline says little: the
// operation's own cost is then below the harness's.
const mostlyHarness = 0.5

// inUnits returns an effect on a baseline that is mostly the harness as a difference in the metric's unit. ok is false
// for other effects.
func (x *Effect) inUnits() (y *Effect, ok bool) {
	if x.Kind != asRatio || x.BaselineHarness == nil || *x.BaselineHarness < mostlyHarness || x.Difference == nil ||
		x.Estimate == 0 {
		return x, false
	}
	base := *x.Difference / x.Estimate
	return &Effect{
		Metric: x.Metric, Kind: asDifference, Estimate: *x.Difference, Lo: x.Lo * base, Hi: x.Hi * base, Blocks: x.Blocks,
	}, true
}

// size returns the estimate with its sign: "+4.1 %".
func (x *Effect) size() string {
	s := x.scale()(x.Estimate)
	if x.Estimate > 0 {
		s = "+" + s
	}
	return s
}

// interval returns the interval in the unit of the estimate: "[3.6, 4.5]".
func (x *Effect) interval() string {
	show := x.scale()
	lo, hi := sameUnit(show(x.Estimate), show(x.Lo), show(x.Hi))
	return "[" + lo + ", " + hi + "]"
}

// extent prints a magnitude on the scale of the effect, with digits of its own: a margin, a smallest visible effect.
func (x *Effect) extent(v *float64) string {
	if x.Kind == asRatio {
		return opt(v, share)
	}
	if v != nil && math.Abs(*v) < 1e-9*math.Abs(x.Estimate) {
		v = new(0.0) // what floating point leaves of a difference that did not vary
	}
	return opt(v, x.differences())
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// manifold is the ratio above which a percentage is also printed as a factor.
const manifold = 2

// Multiple returns an effect that differs from 0 as a difference in the metric's unit, and one of more than 200 % also
// as a factor: "×6.8, +14 ms"; "" for others.
func (x *Effect) Multiple() string {
	if x.Kind != asRatio || math.IsInf(x.Estimate, 0) {
		return ""
	}
	var parts []string
	if x.Estimate > manifold {
		parts = append(parts, multiple(1+x.Estimate))
	}
	if x.Difference != nil && x.excludesZero() {
		parts = append(parts, signed(*x.Difference, Amount(x.Metric, x.unit())))
	}
	return strings.Join(parts, ", ")
}

// maxDecimals is how many decimals a percentage has at most.
const maxDecimals = 9

// Decimals returns the number of decimals of a percentage. It adds decimals until rounding moves no bound of the
// interval across 0 or the margin.
func (x *Effect) Decimals(least int) int {
	margin := 0.0
	if x.Margin != nil {
		margin = *x.Margin
	}
	for digits := least; digits < maxDecimals; digits++ {
		if intervalPosition(printed(x.Lo, digits), printed(x.Hi, digits),
			printed(margin, maxDecimals)) == intervalPosition(x.Lo, x.Hi, margin) {
			return digits
		}
	}
	return maxDecimals
}

// intervalPosition says where an interval lies: beyond the margin on either side, within it, or on either side of 0.
func intervalPosition(lo, hi, margin float64) string {
	switch {
	case margin > 0 && lo > margin:
		return "above"
	case margin > 0 && hi < -margin:
		return "below"
	case margin > 0 && lo > -margin && hi < margin:
		return "within, " + intervalPosition(lo, hi, 0)
	case lo > 0:
		return "more"
	case hi < 0:
		return "less"
	}
	return ""
}

// printed returns a share in percent, printed with so many decimals.
func printed(v float64, digits int) float64 {
	shown, _ := strconv.ParseFloat(strconv.FormatFloat(v*100, 'f', digits, 64), 64) // what was formatted can be parsed
	return shown
}

// sameUnit removes the unit from the bounds of an interval if it is the unit of the estimate.
func sameUnit(estimate, lo, hi string) (string, string) {
	_, unit, ok := strings.Cut(estimate, " ")
	l, lok := strings.CutSuffix(lo, " "+unit)
	h, hok := strings.CutSuffix(hi, " "+unit)
	if ok && (lok || strings.HasSuffix(lo, "∞") || lo == "0") && (hok || strings.HasSuffix(hi, "∞") || hi == "0") {
		return l, h
	}
	return lo, hi
}

// scale returns the function that prints the effect's values, all with the same decimals.
func (x *Effect) scale() func(float64) string {
	if x.Kind != asRatio {
		return x.differences()
	}
	half := math.Abs(x.Hi-x.Lo) * 50
	switch {
	case half == 0:
		half = 1 // nothing varied: the estimate is exact, and one decimal tells it from its neighbours
	case math.IsInf(half, 0):
		half = math.Abs(x.Estimate) * 100
	}
	digits := 1
	switch {
	case half >= 5, math.Abs(x.Estimate) >= 1:
		digits = 0
	case half < 0.05:
		digits = 2
	}
	digits = x.Decimals(digits)
	return func(v float64) string {
		return bounded(v, func(v float64) string {
			return nonNegativeZero(strconv.FormatFloat(v*100, 'f', digits, 64)) +
				" %"
		})
	}
}

// nonNegativeZero removes the sign of a number that was rounded to 0.
func nonNegativeZero(s string) string {
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0.") == "" {
		return s[1:]
	}
	return s
}

// unboundedFrom is the magnitude from which a bound counts as infinite: JSON has no infinity.
const unboundedFrom = 1e300

// bounded prints a value that may be infinite.
func bounded(v float64, show func(float64) string) string {
	switch {
	case v >= unboundedFrom:
		return "∞"
	case v <= -unboundedFrom:
		return "-∞"
	}
	return show(v)
}

// Differences returns the function that prints differences in a unit, without a sign if positive; those of ratios are
// percentage points.
func Differences(u metric.Unit) func(float64) string {
	show := Quantity(u)
	if u == metric.Ratio {
		show = func(v float64) string { return nonNegativeZero(strconv.FormatFloat(v*100, 'f', 2, 64)) + " points" }
	}
	return func(v float64) string { return bounded(v, show) }
}

// differences returns the function that prints differences of the effect's metric: like Differences, and counts with
// their name.
func (x *Effect) differences() func(float64) string {
	if u := x.unit(); u != metric.Ratio {
		return func(v float64) string { return bounded(v, Amount(x.Metric, u)) }
	}
	return Differences(metric.Ratio)
}

// unit returns the unit of the effect's metric.
func (x *Effect) unit() metric.Unit {
	if m, ok := probe.Known(x.Metric); ok {
		return m.Unit
	}
	return cmp.Or(x.Unit, metric.Count)
}

// share prints a relative size without a sign: a margin, a smallest visible effect.
func share(v float64) string {
	digits := 1
	if p := v * 100; p >= 10 || p == math.Trunc(p) {
		digits = 0
	}
	return bounded(v, func(v float64) string { return strconv.FormatFloat(v*100, 'f', digits, 64) + " %" })
}

// baselineNote follows the baseline's name.
const baselineNote = " (baseline)"

// labels returns short names of treatments for tables, by ID. Levels that are words appear without their factor, as
// budgets may name them, if all names stay distinct. The baseline is marked.
func (r *Report) labels() map[string]string {
	short := map[string]string{}
	taken := map[string]int{}
	for i := range r.Treatments {
		t := &r.Treatments[i]
		s := t.short()
		if id, ok := r.inA(t.ID); ok {
			x := *t
			x.ID = id
			s = "A:" + x.short()
		}
		short[t.ID] = s
		taken[s]++
	}
	for i := range r.Treatments {
		t := &r.Treatments[i]
		if taken[short[t.ID]] > 1 || short[t.ID] == "" {
			short[t.ID] = t.ID
		}
		if t.Control == design.AA {
			short[t.ID] = "A/A"
		}
		short[t.ID] = abridge(short[t.ID], labelLength)
		if t.Baseline {
			short[t.ID] += baselineNote
		}
	}
	return short
}

// labelLength limits a treatment's label; a longer one loses its middle, because treatments differ at the ends.
const labelLength = 44

func abridge(s string, length int) string {
	r := []rune(s)
	if len(r) <= length {
		return s
	}
	half := length / 2
	return string(r[:half-1]) + "…" + string(r[len(r)-half:])
}

// short omits the factors of self-explanatory levels: "enforcer=landlock rules=8" becomes "landlock rules=8".
func (t *Treatment) short() string {
	parts := strings.Split(t.ID, " ")
	for i, p := range parts {
		factor, level, ok := strings.Cut(p, "=")
		if !ok || t.Levels[factor] != level {
			return t.ID
		}
		if isSelfExplanatory(level) {
			parts[i] = level
		}
	}
	return strings.Join(parts, " ")
}

// isSelfExplanatory reports whether a level is clear without its factor.
func isSelfExplanatory(level string) bool {
	switch strings.ToLower(level) {
	case "", "on", "off", "yes", "no", "true", "false":
		return false
	}
	return strings.ContainsFunc(level, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }) &&
		(level[0] < '0' || level[0] > '9')
}

// named returns a treatment's short name, or its ID if the report does not know it.
func named(labels map[string]string, id string) string {
	if s, ok := labels[id]; ok {
		return s
	}
	return id
}
