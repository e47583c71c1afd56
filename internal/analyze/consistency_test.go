package analyze

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tare/internal/design"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

// follows is the verdict that an interval licenses, by the table of verdicts in docs/explanation/statistics.md: of
// metrics of which less is better.
func follows(lo, hi, margin float64, unblocked bool) report.EffectVerdict {
	switch {
	case lo == 0 && hi == 0:
		return report.Equivalent
	case margin > 0 && lo > margin:
		return report.Regressed
	case margin > 0 && hi < -margin:
		return report.Improved
	case margin > 0 && -margin < lo && hi < margin && !unblocked:
		return report.Equivalent
	case lo > 0:
		return report.Slower
	case hi < 0:
		return report.Faster
	}
	return report.EffectInconclusive
}

// randomComparison is a record with random treatments, operations, blocks, effects and noise.
func randomComparison(t *rapid.T) experiment {
	x := experiment{
		blocks: rapid.SampledFrom([]int{2, 5, 7, 8, 9, 10, 12, 20}).Draw(t, "blocks"), seed: rapid.Uint64().Draw(t, "seed"),
		rounds:    3,
		margin:    rapid.SampledFrom([]float64{0.02, 0.05, 0.1}).Draw(t, "margin"),
		unblocked: rapid.IntRange(0, 9).Draw(t, "unblocked") == 0,
		batch:     0.01, arm: math.Pow(10, rapid.Float64Range(-4, -0.5).Draw(t, "noise")),
		treatments: []design.Treatment{{ID: "enforcer=none", Baseline: true, Levels: map[string]string{"enforcer": "none"}}},
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "treatments") {
		level := fmt.Sprintf("kind%c", 'a'+i)
		x.treatments = append(x.treatments, design.Treatment{
			ID: "enforcer=" + level, Levels: map[string]string{"enforcer": level},
		})
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "operations") {
		x.operations = append(x.operations, fmt.Sprintf("op%d", i))
	}
	if len(x.operations) > 2 && rapid.Bool().Draw(t, "negative") {
		x.negative = x.operations[:1]
	}
	if rapid.Bool().Draw(t, "budget") {
		x.budget = []string{x.operations[len(x.operations)-1] + ".wall <= +10%"}
	}
	factor := rapid.SampledFrom([]float64{1, 1, 1.001, 1.02, 0.9, 1.1, 5, 60})
	factors := map[string]float64{}
	for _, tr := range x.treatments[1:] {
		for _, op := range x.operations {
			factors[tr.ID+op] = factor.Draw(t, tr.ID+" "+op)
		}
	}
	x.cost = func(treatment, operation string, _ int) float64 {
		f := factors[treatment+operation]
		if f == 0 || slices.Contains(x.negative, operation) {
			f = 1
		}
		return 1e-6 * f
	}
	return x
}

// TestVerdictsFollowFromTheirIntervals: in every form that prints an effect with its interval and its verdict, the
// verdict is the one that follows from the interval as it is printed, and no sentence says otherwise.
func TestVerdictsFollowFromTheirIntervals(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	rapid.Check(t, func(t *rapid.T) {
		x := randomComparison(t)
		rep, err := Analyze(x.record(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		effects := slices.Clone(rep.Effects)
		if rep.AA != nil {
			effects = slices.Concat(effects, rep.AA.Effects, rep.AA.NegativeControls)
		}
		levels := map[bool]map[float64]bool{true: {}, false: {}}
		for i := range effects {
			e := &effects[i]
			if e.Verdict == report.NotJudged {
				if e.Reason == "" {
					t.Errorf("%+v is not judged, without a reason", e)
				}
				continue
			}
			if want := follows(e.Lo, e.Hi, *e.Margin, x.unblocked); e.Verdict != want {
				t.Errorf("%+v, want %s", e, want)
			}
			levels[e.Gating][e.Level] = true
		}
		if len(levels[false]) > 1 && rep.AA != nil && len(rep.AA.NegativeControls) == 0 {
			t.Errorf("exploratory effects of several levels: %v", levels[false])
		}
		readableForms(t, rep, x)
		sentences(t, rep)
	})
}

func written(t *rapid.T, encode func(io.Writer, *report.Report) error, rep *report.Report) string {
	var b bytes.Buffer
	if err := encode(&b, rep); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("\u00a0", " ", "−", "-").Replace(html.UnescapeString(b.String()))
}

// What stands beside an interval in text and Markdown, and in the cells of the page.
var (
	inText = regexp.MustCompile(`[\d.]+ % \[([-+\d.]+), ([-+\d.]+)\](?: \([^)]*\))?[ |]+([✗✓»«≈›‹?–])`)
	inPage = regexp.MustCompile(`<td[^>]*>\[([-+\d.]+), ([-+\d.]+)\]</td><td[^>]*>([\d.]+) %</td><td[^>]*>([^<]*)</td>`)
)

var marks = map[string]report.EffectVerdict{
	"✗": report.Regressed, "✓": report.Improved, "»": report.Regressed, "«": report.Improved,
	"≈": report.Equivalent, "›": report.Slower, "‹": report.Faster,
	"?": report.EffectInconclusive, "–": report.NotJudged,
}

// readableForms holds what people read against itself.
func readableForms(t *rapid.T, rep *report.Report, x experiment) {
	check := func(form, line, lo, hi string, got report.EffectVerdict) {
		l, _ := strconv.ParseFloat(lo, 64)
		h, _ := strconv.ParseFloat(hi, 64)
		margin := math.Round(x.margin * 100)
		if want := follows(l, h, margin, x.unblocked); got != want && got != report.NotJudged {
			t.Errorf("%s: %q follows from no interval at a margin of %v %%: want %s", form, line, margin, want)
		}
	}
	for form, encode := range map[string]func(io.Writer, *report.Report) error{
		"text": report.Style{Width: 4000}.Text, "narrow": report.Style{Width: 70}.Text, "markdown": report.Markdown,
	} {
		found := inText.FindAllStringSubmatch(written(t, encode, rep), -1)
		if len(found) == 0 && len(rep.Effects) > 0 && form == "text" {
			t.Errorf("no effect is found in the %s", form)
		}
		for _, m := range found {
			check(form, m[0], m[1], m[2], marks[m[3]])
		}
	}
	found := inPage.FindAllStringSubmatch(written(t, report.HTML, rep), -1)
	if len(found) == 0 && len(rep.Effects) > 0 {
		t.Error("no effect is found in the page")
	}
	for _, m := range found {
		_, word, _ := strings.Cut(m[4], " ")
		word, _, _ = strings.Cut(word, ",")
		verdict := strings.NewReplacer("not judged", string(report.NotJudged), "costs", string(report.Regressed),
			"saves", string(report.Improved), "higher", string(report.Slower), "lower", string(report.Faster)).Replace(word)
		check("page", m[0], m[1], m[2], report.EffectVerdict(verdict))
	}
	exposed(t, rep, x)
}

// exposed holds the gauges of a gating effect against the state of its verdict.
func exposed(t *rapid.T, rep *report.Report, x experiment) {
	text := written(t, report.OpenMetrics, rep)
	line := regexp.MustCompile(`(?m)^tare_effect_(lower|upper|verdict)\{(.*)\} (\S+)$`)
	type seen struct{ lo, hi float64 }
	got := map[string]*seen{}
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		if got[m[2]] == nil {
			got[m[2]] = &seen{}
		}
		v, _ := strconv.ParseFloat(m[3], 64)
		switch m[1] {
		case "lower":
			got[m[2]].lo = v
		case "upper":
			got[m[2]].hi = v
		case "verdict":
			i := strings.LastIndex(m[2], `,tare_effect_verdict="`)
			if i < 0 {
				t.Fatalf("no state in %q", m[0])
			}
			e := got[m[2][:i]]
			word := report.EffectVerdict(strings.TrimSuffix(m[2][i+len(`,tare_effect_verdict="`):], `"`))
			if v == 1 && word != report.NotJudged && word != follows(e.lo, e.hi, x.margin, x.unblocked) {
				t.Errorf("%q with %+v", m[0], *e)
			}
		}
	}
}

// sentences holds the summaries against the effects that they sum up.
func sentences(t *rapid.T, rep *report.Report) {
	text := written(t, report.Style{Width: 4000}.Text, rep)
	all, differ, unjudged := 0, 0, 0
	for i := range rep.Effects {
		switch e := &rep.Effects[i]; {
		case e.Primary():
			continue
		case e.Verdict == report.NotJudged:
			unjudged++
		case e.Lo > 0 || e.Hi < 0:
			differ++
		}
		all++
	}
	if m := regexp.MustCompile(`(?m)^also +(\d+) further effects?(.*)$`).FindStringSubmatch(text); m != nil {
		if m[1] != strconv.Itoa(all) {
			t.Errorf("%d further effects: %q", all, m[0])
		}
		if strings.Contains(m[2], "none judged") != (unjudged == all) ||
			strings.Contains(m[2], "known to differ") != (differ == 0 && unjudged < all) {
			t.Errorf("%d effects, %d not judged, %d differ: %q", all, unjudged, differ, m[0])
		}
		if n := fmt.Sprintf("; %d differ", differ); differ > 0 && !strings.Contains(m[2], n) {
			t.Errorf("%d differ: %q", differ, m[0])
		}
	}
	if d := rep.Design; d != nil {
		for _, why := range d.Undecidable {
			for i := range rep.Effects {
				e := &rep.Effects[i]
				loud := e.Verdict == report.Regressed || e.Verdict == report.Improved || e.Verdict == report.Slower ||
					e.Verdict == report.Faster
				if !e.Gating && strings.Contains(why, "exploratory") && loud {
					t.Errorf("%q, and %+v", why, e)
				}
			}
		}
	}
	if rep.AA != nil && strings.Contains(text, "against itself is quiet") {
		for i := range rep.AA.Effects {
			if e := &rep.AA.Effects[i]; e.Gating && e.Verdict != report.Equivalent {
				t.Errorf("the baseline is called quiet: %+v", *e)
			}
		}
	}
}
