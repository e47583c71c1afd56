package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tare/internal/capacity"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/unit"
)

// rate prints a rate with the trailing zeros that say how well it is known: "150.0/s".
func rate(v float64) string { return Rate(v) + "/s" }

// sentence ends a text with a full stop and begins it with a capital letter, unless its first word is a name: one that
// holds more than letters, or an abbreviation among the metrics.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	first, _, _ := strings.Cut(s, " ")
	name := first == metric.CPU.Name || first == probe.RSS.Name
	if !name && !strings.ContainsFunc(first, func(c rune) bool { return c < 'a' || c > 'z' }) {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}

// interval is " [lo, hi]", or nothing unless both are known.
func interval(lo, hi *float64, show func(float64) string) string {
	if lo == nil || hi == nil {
		return ""
	}
	return " [" + show(*lo) + ", " + show(*hi) + "]"
}

// finding describes a capacity in one sentence with the subject "it".
func capacitySentence(c *Capacity) string {
	const generator = "the generator is the limit, not the target"
	answers := strings.Join(append([]string{""}, c.clauses()...), "; ")
	switch {
	case c.Stop == string(capacity.StopClient) && c.AtLeast != nil:
		return "It holds at least " + unit.PerSecond(*c.AtLeast) + "; " + aboveThat + because(c.Reason) + "."
	case !c.Valid:
		return "Nothing is known of the target: " + generator + because(c.Reason) + "."
	case c.Rate != nil && c.Wedged:
		return "It breaks at " + rate(*c.Rate) + answers + "; it did not recover by itself."
	case c.Rate != nil:
		return "It breaks at " + rate(*c.Rate) + answers + "."
	case len(c.Points) > 0 && c.Broke && c.VerifiedLow != nil && c.VerifiedHigh != nil:
		return "It holds " + unit.PerSecond(*c.VerifiedLow) + " and breaks at " + unit.PerSecond(*c.VerifiedHigh) + answers +
			"."
	case len(c.Points) == 0 && capacity.Stop(c.Stop).Down():
		return "It " + c.Bound() + answers + "."
	case len(c.Points) == 0 && !c.Broke && c.AtLeast != nil:
		return "It did not break: it holds at least " + unit.PerSecond(*c.AtLeast) + "."
	case len(c.Points) == 0 && c.Bound() != "":
		return "Its capacity is " + c.Bound() + answers + "."
	case len(c.Points) > 0:
		return held(c.Points)
	}
	return "Where it breaks was not found" + because(c.Reason) + "."
}

// held describes in a sentence how far a ladder's calls succeeded. A ladder does not say where the target breaks.
func held(points []Point) string {
	var valid []*Point
	for i := range points {
		if g := points[i].Generator; (g == nil || g.Valid) && points[i].Success != nil {
			valid = append(valid, &points[i])
		}
	}
	if len(valid) == 0 {
		return "Nothing is known of the target: the generator was the limit at " +
			plural(len(points), "the only point", "all "+strconv.Itoa(len(points))+" points") + "."
	}
	worst := slices.MinFunc(valid, func(a, b *Point) int { return cmp.Compare(*a.Success, *b.Success) })
	if points[0].Name != "" {
		if *worst.Success == 1 {
			return "Every call of every workload was answered well."
		}
		return "Not every call was answered well: fewest with the workload " + worst.Name + ", " + Percent(*worst.Success) +
			"."
	}
	slices.SortStableFunc(valid, func(a, b *Point) int { return cmp.Compare(a.Rate, b.Rate) })
	first := slices.IndexFunc(valid, func(p *Point) bool { return *p.Success < 1 })
	switch first {
	case -1:
		return "Every call was answered well up to " + unit.PerSecond(valid[len(valid)-1].Rate) + "."
	case 0:
		return "At " + unit.PerSecond(valid[0].Rate) + ", the lowest rate that counts, " + Percent(*valid[0].Success) +
			" of the calls were answered well."
	}
	return "Every call was answered well up to " + unit.PerSecond(valid[first-1].Rate) + "; at " +
		unit.PerSecond(valid[first].Rate) + ", " +
		Percent(*valid[first].Success) + " of them were."
}

// comesBack returns recovery, or "" for a target that did not break.
func comesBack(c *Capacity) string {
	if !c.Broke && !c.Wedged {
		return ""
	}
	return recovery(c)
}

// recovery says whether the target recovered after the load; "" if that was not probed.
func recovery(c *Capacity) string {
	_, text := c.recovery()
	if c.Wedged {
		return "no: " + text
	}
	return text
}

// several reports whether treatments must be distinguished.
func several(r *Report) bool { return len(r.Treatments) > 1 }
