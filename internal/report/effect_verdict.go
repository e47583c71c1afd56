package report

import (
	"slices"
	"strconv"
)

// Verdicts on effects, as reports for people show them.

// What reports for people say instead of regressed and improved where nobody set the margin, and instead of slower and
// faster, since not every metric is a time.
const (
	costs  = "costs"
	saves  = "saves"
	higher = "higher"
	lower  = "lower"
)

// shown returns the verdict as reports for people say it. What is left open though its interval would decide it is not
// judged.
func (x *Effect) shown() EffectVerdict {
	switch {
	case x.leftOpen():
		return NotJudged
	case x.Verdict == Regressed && !x.MarginGiven:
		return costs
	case x.Verdict == Improved && !x.MarginGiven:
		return saves
	case x.Verdict != Slower && x.Verdict != Faster:
	case x.Estimate < 0:
		return lower
	default:
		return higher
	}
	return x.Verdict
}

// leftOpen reports whether an effect is not judged though its interval excludes 0; Reason says why.
func (x *Effect) leftOpen() bool {
	return x.Verdict == EffectInconclusive && x.excludesZero() && x.Reason != ""
}

// Shown returns the verdict as reports for people say it.
func (x *Effect) Shown() string { return string(x.shown()) }

// shownVerdicts lists all words that reports for people use.
func shownVerdicts() []EffectVerdict {
	all := EffectVerdicts()
	return slices.Concat(all[:2], []EffectVerdict{costs, saves, all[2], higher, lower}, all[5:])
}

// mark returns the verdict's sign for a narrow table, whose legend explains it.
func (v EffectVerdict) mark() string {
	switch v {
	case Regressed:
		return "✗"
	case Improved:
		return "✓"
	case Equivalent:
		return "≈"
	case higher:
		return "›"
	case lower:
		return "‹"
	case EffectInconclusive:
		return "?"
	case NotJudged:
		return "–"
	case Slower, Faster: // shown otherwise
	case costs:
		return "»"
	case saves:
		return "«"
	}
	return ""
}

// explained counts effects with this verdict: "3 cost more than 2 %". The margin may be unknown.
func (v EffectVerdict) explained(n int, margin string) string {
	return strconv.Itoa(n) + " " + v.meaning(n, margin)
}

func (v EffectVerdict) meaning(n int, margin string) string {
	beyond, within := " beyond the margin", ""
	if margin != "" {
		beyond, within = " more than "+margin, " within "+margin
	}
	switch v {
	case costs:
		return plural(n, "costs", "cost") + beyond
	case saves:
		return plural(n, "saves", "save") + beyond
	case Equivalent:
		return string(v) + within
	case higher, lower:
		return string(v) + ", size undecided"
	case Regressed, Improved, Slower, Faster, EffectInconclusive, NotJudged:
	}
	return string(v)
}

// class returns the class of a verdict: good, bad or neither.
func (v EffectVerdict) class() string {
	switch v {
	case Regressed:
		return bad
	case Improved, Equivalent:
		return good
	case costs, saves:
		return plain
	case Slower, Faster, EffectInconclusive, NotJudged:
	}
	return unsure
}

// word returns the verdict of this effect as text.
func (x *Effect) word() string {
	w := string(x.shown())
	if x.Verdict == Equivalent && x.Measurable {
		w += ", measurable"
	}
	if m := x.shown().mark(); m != "" {
		w = m + " " + w
	}
	return w
}
