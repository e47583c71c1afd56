package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/metric"
	"tare/internal/unit"
)

// Trends in words.

// driftOrder is the order of drifts in every format: memory first, because finding leaks is the purpose of a soak.
var driftOrder = []string{"rss", "heap", "cpu", "response.p99", "response.mean"}

// driftNames are the metrics of drifts in their order.
func driftNames(d map[string]Drift) []string {
	rank := func(name string) int {
		if i := slices.Index(driftOrder, name); i >= 0 {
			return i
		}
		return len(driftOrder)
	}
	return slices.SortedFunc(maps.Keys(d), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)),
			strings.Compare(a, b))
	})
}

// trends describes the trend of each metric: drifting ones separately, the others together.
func (s *Soak) trends() []string {
	var loud, same, open []string
	margin := 0.0
	for _, name := range driftNames(s.Drift) {
		d := s.Drift[name]
		switch d.Verdict {
		case Regressed, Slower, Improved, Faster:
			loud = append(loud, d.Trend(name))
		case Equivalent:
			same, margin = append(same, name), d.Margin
		case EffectInconclusive, NotJudged:
			open = append(open, name)
		}
	}
	if len(same) > 0 {
		text := "no drift of " + listed(same)
		if margin > 0 {
			text += " over " + share(margin)
		}
		loud = append(loud, text)
	}
	if len(open) > 0 {
		loud = append(loud, "whether "+listed(open)+" "+plural(len(open), "drifts", "drift")+" is not decided")
	}
	return loud
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// listed returns "a, b and c".
func listed(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Trend describes how a metric drifts: "rss grows by 60 MiB/h [58, 62]: a leak?".
func (d *Drift) Trend(name string) string {
	s := name + " " + d.verb() + " by " + d.size()
	switch {
	case d.JumpedAt != nil:
		return name + " " + d.verb() + " by " + signed(d.Total, Quantity(d.Unit)) + ", " + d.Slope()
	case d.Jumped():
		return name + " " + d.verb() + " by " + Quantity(d.Unit)(math.Abs(d.Total)) + " " + d.Slope()
	case d.Verdict == EffectInconclusive || d.Verdict == Equivalent:
		return s
	case d.Verdict == Regressed && d.Unit == metric.Bytes:
		s += ": a leak?"
	}
	if d.Verdict == Slower || d.Verdict == Faster {
		s += ", size undecided"
	}
	return s
}

// verb says in which direction a metric drifts.
func (d *Drift) verb() string {
	memory := d.Unit == metric.Bytes
	down := d.PerHour < 0 || d.Jumped() && d.Total < 0
	switch {
	case d.JumpedAt != nil:
		return "jumps"
	case down && memory:
		return "shrinks"
	case down:
		return "falls"
	case memory:
		return "grows"
	}
	return "rises"
}

// size returns the slope without its sign, and its interval: "60 MiB/h [58, 62]".
func (d *Drift) size() string {
	if d.PerHour >= 0 {
		return d.Slope()
	}
	up := Drift{PerHour: -d.PerHour, Unit: d.Unit}
	if d.Lo != nil && d.Hi != nil {
		up.Lo, up.Hi = new(-*d.Hi), new(-*d.Lo)
	}
	return up.Slope()
}

// Slope prints the change per hour with its interval, all in the unit that suits the largest of them: "60 MiB/h [58,
// 62]", "-0.09 MiB/h [-9.9, 9.7]"; of a change from one level to another, when it was: "at once after 4m30s (within
// 2s)", "between 4m20s and 5m15s".
func (d *Drift) Slope() string {
	if d.Jumped() {
		return d.when()
	}
	if !d.Known() {
		return "–"
	}
	show := Differences(d.Unit)
	largest := d.PerHour
	for _, v := range []*float64{d.Lo, d.Hi} {
		if v != nil && !math.IsInf(*v, 0) && math.Abs(*v) > math.Abs(largest) {
			largest = *v
		}
	}
	if d.Unit == metric.Seconds || d.Unit == metric.CPUSeconds || d.Unit == metric.Bytes {
		show = inSameUnit(show(largest), show)
	}
	s := show(d.PerHour)
	if d.Lo == nil || d.Hi == nil {
		return s + "/h"
	}
	lo, hi := sameUnit(s, show(*d.Lo), show(*d.Hi))
	return s + "/h [" + lo + ", " + hi + "]"
}

// when is the time of a change from one level to another.
func (d *Drift) when() string {
	show := func(seconds float64, to time.Duration) string {
		return time.Duration(seconds * float64(time.Second)).Round(to).String()
	}
	if d.JumpedAt != nil {
		return "at once after " + show(*d.JumpedAt, time.Second) + " (within " +
			show(*d.ChangedTo-*d.ChangedFrom, time.Second/10) + ")"
	}
	return "between " + show(*d.ChangedFrom, time.Second) + " and " + show(*d.ChangedTo, time.Second)
}

// sizes of the units that a number with a unit may be shown in, in base units.
var unitSizes = map[string]float64{
	"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// inSameUnit prints numbers in the unit of the first one, if they fit: an interval in three units is hard to read.
func inSameUnit(shown string, show func(float64) string) func(float64) string {
	_, word, _ := strings.Cut(shown, " ")
	size, ok := unitSizes[word]
	if !ok {
		return show
	}
	return func(v float64) string {
		if a := math.Abs(v / size); v == 0 || math.IsInf(a, 0) || a < 0.0001 || a >= 10000 {
			return show(v)
		}
		return unit.Number(v/size) + " " + word
	}
}

// change returns the total change over the measured time: "+50 MiB (+28 %)".
func (d *Drift) change() string {
	if d.Total == 0 && d.Start == 0 {
		return ""
	}
	s := signed(d.Total, Quantity(d.Unit))
	if d.Start > 0 {
		s += " (" + signed(d.Total/d.Start, share) + ")"
	}
	return s
}

func signed(v float64, show func(float64) string) string {
	if v == 0 {
		return "+" + show(0) // and not that of -0
	}
	if v < 0 {
		return "-" + show(-v)
	}
	return "+" + show(v)
}

// word returns the verdict as reports for people say it, with its sign. Nobody set its margin: a limit is a budget's.
func (d *Drift) word() string {
	if m := d.shown().mark(); m != "" {
		return m + " " + d.says()
	}
	return d.says()
}

// shown returns the verdict whose sign reports for people use.
func (d *Drift) shown() EffectVerdict {
	return (&Effect{Verdict: d.Verdict, Estimate: d.PerHour}).shown()
}

// says describes in short what is known of the trend: "grows over 5 %".
func (d *Drift) says() string {
	over := ""
	if d.Margin > 0 {
		over = " over " + share(d.Margin)
	}
	switch d.Verdict {
	case Regressed, Improved:
		return d.verb() + over
	case Slower, Faster:
		return d.verb()
	case Equivalent:
		return "none" + over
	case EffectInconclusive:
		return "undecided"
	case NotJudged:
	}
	return string(d.Verdict)
}
