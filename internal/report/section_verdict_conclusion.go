package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/question"
	"tare/internal/unit"
)

// maxNamed is how many effects or laws the one sentence names.
const maxNamed = 3

// conclusion is a comparison in a sentence or two: what costs more than the margin, and what is known of the rest. A
// run that cannot be trusted has none but that.
func conclusion(r *Report) string {
	if r.Verdict == Invalid {
		return ""
	}
	if question.Of(r.Question).Answer.GrowthFirst && len(r.Growth) > 0 {
		return growthConclusion(r)
	}
	if r.Diff != nil {
		return r.diffConclusion()
	}
	failures := r.failureSentences()
	if text := r.serversConclusion(); text != "" {
		return failures + text
	}
	t := tallyOf(r)
	if len(t.all) == 0 {
		return strings.TrimSpace(failures)
	}
	var s []string
	beyond := t.of[Regressed]
	if len(beyond) == 0 {
		beyond = t.of[Improved]
	}
	for _, e := range beyond[:min(maxNamed, len(beyond))] {
		s = append(s, costSentence(r, e))
	}
	if n := len(beyond) - len(s); n > 0 && len(t.of[Regressed]) < len(t.all) {
		s = append(s, strconv.Itoa(n)+" more "+plural(n, "is", "are")+" beyond the margin")
	}
	return failures + strings.TrimSpace(strings.Join(append(s, t.rest(r)), "; ")) + "."
}

// failureSentences say under which treatments more, or fewer, calls fail, where the sentence on the effects beyond the
// margin does not: it must be known before their times are.
func (r *Report) failureSentences() string {
	var text strings.Builder
	all := r.effectsThat(func(x *Effect) bool {
		return x.failsOtherwise() && (!x.Primary() || x.Verdict != Regressed && x.Verdict != Improved)
	})
	for _, x := range all[:min(maxNamed, len(all))] {
		than := "More"
		if x.Estimate < 0 {
			than = "Fewer"
		}
		text.WriteString(than + " calls fail under " + r.short(x.Treatment) + " than under " + r.short(x.Baseline) + ": " +
			x.measured() + " " + x.ranged())
		if x.leftOpen() {
			text.WriteString(", which is not judged")
		}
		text.WriteString(". ")
	}
	return text.String()
}

// A tally is the deciding effects by verdict, the largest first.
type tally struct {
	all []*Effect
	of  map[EffectVerdict][]*Effect
}

func tallyOf(r *Report) tally {
	t := tally{of: map[EffectVerdict][]*Effect{}}
	for i := range r.Effects {
		if e := &r.Effects[i]; e.Primary() {
			t.all = append(t.all, e)
		}
	}
	slices.SortStableFunc(t.all, func(a, b *Effect) int {
		return cmp.Or(cmp.Compare(kindRank(a), kindRank(b)), cmp.Compare(math.Abs(b.Estimate), math.Abs(a.Estimate)))
	})
	for _, e := range t.all {
		t.of[e.Verdict] = append(t.of[e.Verdict], e)
	}
	return t
}

// kindRank puts shares, which can be compared with one another, before differences, which cannot.
func kindRank(e *Effect) int {
	if isRatio(e) {
		return 0
	}
	return 1
}

// costSentence is one effect as a sentence without its end: "landlock-50 adds 61 % [55, 67] CPU time to open".
func costSentence(r *Report, e *Effect) string {
	of := measure(e.Metric, e.Quantile)
	size := strings.TrimPrefix(e.Brief(), "+")
	if e.Estimate < 0 {
		return r.short(e.Treatment) + " lowers " + e.measured() + " by " + strings.TrimPrefix(size, "-")
	}
	if e.Operation != "" && isRatio(e) && e.Quantile == "" {
		return r.short(e.Treatment) + " adds " + size + " " + of + " to " + e.Operation
	}
	return r.short(e.Treatment) + " raises " + e.measured() + " by " + size
}

// rest says what is known of the effects that did not regress.
func (t *tally) rest(r *Report) string {
	margin := "the margin"
	if d := r.Design; d != nil && d.Margin > 0 {
		margin += " of " + axisShare(d.Margin)
	}
	regressed, same, improved := len(t.of[Regressed]), len(t.of[Equivalent]), len(t.of[Improved])
	rest := len(t.all) - regressed
	open := rest - same - improved
	nothing, explored := "nothing", r.exploredBeyond()
	if explored != "" {
		nothing = "no deciding effect"
	}
	switch {
	case rest == 0:
		return every(regressed) + " beyond " + margin
	case open == 0 && (regressed > 0 || same == 0) && explored != "":
		return "no other deciding effect is above " + margin
	case open == 0 && regressed > 0, open == 0 && same == 0:
		return "nothing else is above " + margin
	case open == 0 && improved == 0:
		return capital(nothing) + " costs more than " + margin + ": " + every(same) + " equivalent within it" + explored
	}
	var parts []string
	add := func(n int, word string) {
		if n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+word)
		}
	}
	add(same, "equivalent within "+margin)
	if improved > 0 && !t.of[Improved][0].MarginGiven {
		add(improved, "cheaper by more than it")
	} else {
		add(improved, "improved")
	}
	undecided := map[EffectVerdict]int{}
	for _, e := range append(t.of[Slower], t.of[Faster]...) {
		undecided[e.shown()]++
	}
	for _, v := range []EffectVerdict{higher, lower} {
		add(undecided[v], v.meaning(0, ""))
	}
	add(len(t.of[EffectInconclusive]), "inconclusive")
	add(len(t.of[NotJudged]), "not judged")
	if len(parts) == 0 { // their verdicts are words of another version
		return "nothing is known of " + unit.Count(rest, "other effect")
	}
	if regressed == 0 {
		parts[len(parts)-1] += explored
	}
	text := capital(nothing) + " is shown to cost more than " + margin + ". Of " + unit.Count(len(t.all), "effect") + ": "
	switch seen := t.unjudgedBeyond(r); {
	case len(t.of[NotJudged]) == len(t.all):
		return "No effect is judged" + because(t.of[NotJudged][0].Reason) + seen
	case seen != "" && regressed == 0 && improved == 0:
		return "Of " + unit.Count(len(t.all), "effect") + ": " + strings.Join(parts, ", ") + seen
	case seen != "":
		parts[len(parts)-1] += seen
	}
	if improved > 0 {
		text = nothing + text[len(nothing):]
	}
	switch _, word, _ := strings.Cut(parts[0], " "); {
	case regressed > 0 && len(parts) == 1:
		return plural(rest, "the other one is ", "the other "+strconv.Itoa(rest)+" are ") + word
	case regressed > 0:
		text = "of the other " + strconv.Itoa(rest) + ": "
	}
	return text + strings.Join(parts, ", ")
}

// unjudgedBeyond names the largest effect whose interval lies beyond the margin though it is not judged, since the
// sentence must not contradict the table; "" if there is none.
func (t *tally) unjudgedBeyond(r *Report) string {
	for _, e := range t.of[NotJudged] {
		if e.Margin != nil && e.estimated() && hasInterval(e) && (e.Lo > *e.Margin || e.Hi < -*e.Margin) {
			at := ""
			if e.Level > 0 {
				at = ", an interval at " + unit.Decimal(e.Level*100, 4) + " % only"
			}
			return "; that of " + e.measured() + " under " + r.short(e.Treatment) + " was seen beyond the margin, at " +
				e.Change() + at
		}
	}
	return ""
}

// exploredBeyond names the largest exploratory effect beyond the margin; "" if there is none.
func (r *Report) exploredBeyond() string {
	beyond := r.effectsThat(func(x *Effect) bool { return !x.Primary() && x.Verdict == Regressed })
	if len(beyond) == 0 {
		return ""
	}
	x := slices.MaxFunc(beyond, func(a, b *Effect) int {
		return cmp.Or(cmp.Compare(kindRank(b), kindRank(a)), cmp.Compare(math.Abs(a.Estimate), math.Abs(b.Estimate)))
	})
	return "; exploratory: " + r.short(x.Treatment) + " " + x.measured() + " " + x.ranged()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func every(n int) string {
	if n == 1 {
		return "the one effect is"
	}
	return "all " + strconv.Itoa(n) + " effects are"
}

// growthConclusion is the first laws.
func growthConclusion(r *Report) string {
	var s []string
	all := r.growth()
	for _, law := range all[:min(maxNamed, len(all))] {
		s = append(s, sentence(law))
	}
	if n := len(all) - maxNamed; n > 0 {
		s = append(s, strconv.Itoa(n)+" more, see “Growth”.")
	}
	return strings.Join(s, " ")
}

// comparedFacts are the few numbers of a comparison that say how much to make of it.
func comparedFacts(r *Report) []block {
	d := r.Design
	if d == nil {
		return nil
	}
	var out []fact
	add := func(name, value, note, class string) {
		out = append(out, fact{Name: name, Value: value, Note: note, Class: class})
	}
	t := tallyOf(r)
	if n := len(t.all); n > 0 {
		of := "of " + unit.Count(n, "effect")
		add("Beyond the margin", strconv.Itoa(len(t.of[Regressed])), of+", ±"+axisShare(d.Margin), "")
		add("Equivalent within it", strconv.Itoa(len(t.of[Equivalent])), of, "")
		if open := n - len(t.of[Regressed]) - len(t.of[Equivalent]) - len(t.of[Improved]); open > 0 {
			add("Undecided", strconv.Itoa(open), more(t), "")
		}
	}
	value := strconv.Itoa(d.Blocks)
	if d.Planned > d.Blocks {
		value += " of " + strconv.Itoa(d.Planned)
	}
	add("Blocks", value, "", "")
	if a := r.AA; a != nil {
		word, class, note := "✓ quiet", good, ""
		shown, found := r.selfCheck(a.Effects)
		switch {
		case !a.Reliable:
			word, class = "✗ unreliable", bad
		case found != checkQuiet:
			word, class = "? "+orElse(found, checkOpen), unsure
		}
		if shown != nil {
			note = shown.ranged() + shown.fewBlocks()
		}
		add("A/A", word, note, class)
	}
	return []block{{Facts: out}}
}

// more says how many blocks would decide what is open.
func more(t tally) string {
	least, most, known := math.MaxInt, 0, 0
	for _, e := range t.all {
		if e.BlocksToDecide != nil {
			least, most, known = min(least, *e.BlocksToDecide), max(most, *e.BlocksToDecide), known+1
		}
	}
	switch {
	case known == 0:
		return ""
	case least == most:
		return "about " + unit.Count(least, "block") + " would decide"
	}
	return "about " + strconv.Itoa(least) + " to " + unit.Count(most, "block") + " would decide"
}
