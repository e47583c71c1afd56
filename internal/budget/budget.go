// Package budget reads the limits that people set on metrics and decides whether a measured interval keeps them.
package budget

import (
	"fmt"
	"strconv"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// A Budget is one limit on one metric.
type Budget struct {
	Text      string // as it was given
	Treatment string // empty: every treatment but the baseline, or every one if there is none
	Operation string // empty: all operations together
	Metric    string // "response", "cpu", "capacity", "error"
	Drift     bool   // limits the metric's growth over time, not its level
	Quantile  string // "p50", "p99", "p999", "min", "mean", "stddev", "max"; empty: the metric's own main value
	Op        Op
	Limit     Limit   //
	At        float64 // the offered rate at which it must hold, in 1/s; 0: at whatever the experiment offers
}

// Op is the direction of a limit.
type Op string

// The directions.
const (
	AtMost  Op = "<="
	AtLeast Op = ">="
)

// Limit is a bound in base units.
type Limit struct {
	// Value is in Unit, and in Unit per hour for a drift. A limit of +5 % against the baseline is 0.05.
	Value   float64
	Unit    metric.Unit
	Against Against
	// Text is the limit in the unit and over the time in which it was given, without a sign: "1MiB/d". It parses to
	// Value.
	Text string
}

// Against says what a limit is compared with.
type Against string

// What limits are compared with.
const (
	Absolute   Against = "absolute"   // the metric's value
	Ratio      Against = "ratio"      // its change relative to the baseline, treated ÷ baseline − 1
	Difference Against = "difference" // its change, treated − baseline
)

// Bound is the largest (or, for ">=", smallest) value of the metric that keeps the budget, when the baseline's value is
// known.
func (l Limit) Bound(baseline float64) float64 {
	switch l.Against {
	case Ratio:
		return baseline * (1 + l.Value)
	case Difference:
		return baseline + l.Value
	case Absolute:
	}
	return l.Value
}

// String is the limit as it was given, with its sign. It parses to the same limit.
func (l Limit) String() string { return l.sign() + l.Text }

// sign is what stands before the number: a limit against the baseline has a sign always.
func (l Limit) sign() string {
	switch {
	case l.Value < 0:
		return "-"
	case l.Against != Absolute:
		return "+"
	}
	return ""
}

// plain prints a number so that it reads back as itself, without an exponent.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// String is the budget in a canonical form that parses to the same budget.
func (b Budget) String() string { return b.with(b.Limit.String()) }

// with is the budget with a limit that is written like this.
func (b *Budget) with(limit string) string {
	var s strings.Builder
	if b.Treatment != "" {
		s.WriteString(b.Treatment + ": ")
	}
	if b.Operation != "" {
		s.WriteString(b.Operation + ".")
	}
	s.WriteString(b.Metric)
	if b.Quantile != "" {
		s.WriteString("." + b.Quantile)
	}
	if b.Drift {
		s.WriteString(" drift")
	}
	s.WriteString(" " + string(b.Op) + " " + limit)
	if b.At > 0 {
		s.WriteString(" at " + unit.Rate(b.At).String())
	}
	return s.String()
}

// checkUnit says why the budget's limit cannot be one of m, or nothing: a rate is no limit for a time.
func (b *Budget) checkUnit(m metric.Metric) *Refusal {
	want, limit := commonUnit(m.Unit), commonUnit(b.Limit.Unit)
	if b.Limit.Against == Ratio || want == limit || (b.Drift && limit == metric.Ratio) {
		return nil
	}
	if limit == metric.Count && b.Limit.Value == 0 && m.Unit == metric.Ratio {
		b.Limit.Unit = m.Unit // no share at all needs none
		return nil
	}
	r := &Refusal{Part: PartLimit, Reason: fmt.Sprintf("%s is measured %s, so that its limit cannot be %s",
		m.Name, inUnit[want], inUnit[limit])}
	if limit != metric.Count {
		r.Write = "write it like " + examples[want]
		if b.Drift {
			r.Write += "/h"
		}
		return r
	}
	r.Reason = fmt.Sprintf("the limit of %s needs a unit", m.Name)
	r.Write = fmt.Sprintf("write %q", b.withUnit(want))
	return r
}

// withUnit is the budget with a unit behind the number that has none.
func (b *Budget) withUnit(u metric.Unit) string {
	number, per, drift := strings.Cut(b.Limit.Text, "/")
	switch u {
	case metric.Seconds, metric.CPUSeconds:
		number += "ms"
	case metric.PerSecond:
		number += "/s"
	case metric.Bytes:
		number += "MiB"
	case metric.Ratio:
		if v, err := strconv.ParseFloat(number, 64); err == nil && v < 1 {
			number = unit.Percent(v).String()
		} else {
			number += "%"
		}
	case metric.Count:
	}
	if drift {
		number += "/" + per
	}
	return b.with(b.Limit.sign() + number)
}

// commonUnit joins the units that people write alike: CPU time is written as time.
func commonUnit(u metric.Unit) metric.Unit {
	if u == metric.CPUSeconds {
		return metric.Seconds
	}
	return u
}

// inUnit says what a metric of a unit is measured in.
var inUnit = map[metric.Unit]string{
	metric.Seconds: "in seconds", metric.PerSecond: "as a rate", metric.Bytes: "in bytes", metric.Ratio: "as a share",
	metric.Count: "as a number",
}

var examples = map[metric.Unit]string{
	metric.Seconds: "10ms", metric.PerSecond: "150/s", metric.Bytes: "64MiB", metric.Ratio: "0.1%", metric.Count: "100",
}
