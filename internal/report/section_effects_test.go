package report

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/metric"
)

// TestChangeOfEveryKind: shares, percentage points and differences, with the digits of their interval.
func TestChangeOfEveryKind(t *testing.T) {
	for _, c := range []struct {
		x    Effect
		want string
	}{
		{Effect{Metric: "cpu", Kind: "ratio", Estimate: .61, Lo: .55, Hi: .67, Level: .98}, "+61 % [55, 67]"},
		{Effect{Metric: "cpu", Kind: "ratio", Estimate: -.0012, Lo: -.004, Hi: .001, Level: .98}, "-0.1 % [-0.4, 0.1]"},
		{Effect{Metric: "cpu", Kind: "ratio", Estimate: 9.07, Lo: -1e308, Hi: 1e308, Level: .98}, "+907 % [-∞, ∞] (×10.1)"},
		{
			Effect{Metric: "error", Kind: "difference", Estimate: .004, Lo: .001, Hi: .007, Level: .98},
			"+0.40 points [0.10, 0.70]",
		},
		{Effect{Metric: "wall", Kind: "difference", Estimate: -.0031, Lo: -.004, Hi: 0, Level: .98}, "-3.1 ms [-4 ms, 0 s]"},
		{Effect{Metric: "wall", Kind: "ratio", Reason: "too few blocks"}, "not measured"},
	} {
		if got := c.x.Change(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// comparisonOf is a comparison with just these deciding effects.
func comparisonOf(effects ...Effect) *Report {
	r := pageBase("few")
	r.Question, r.Generator = design.Compare, nil
	r.Design = &Design{Blocks: 10, Planned: 20, Margin: .02}
	for i := range effects {
		effects[i].Gating, effects[i].Level, effects[i].Kind = true, .98, "ratio"
		effects[i].Metric, effects[i].Baseline = "cpu", "none"
	}
	r.Effects = effects
	return r
}

func TestConclusion(t *testing.T) {
	landlock := Effect{
		Treatment: "landlock rules=50", Operation: "open", Estimate: .61, Lo: .55, Hi: .67,
		Verdict: Regressed,
	}
	same := Effect{
		Treatment: "landlock rules=50", Operation: "exec", Estimate: .001, Lo: -.01, Hi: .01,
		Verdict: Equivalent,
	}
	slower := Effect{Treatment: "seccomp", Operation: "open", Estimate: .02, Lo: .01, Hi: .03, Verdict: Slower}
	open := Effect{
		Treatment: "seccomp", Operation: "exec", Estimate: .01, Lo: -.03, Hi: .05, Verdict: EffectInconclusive,
		BlocksToDecide: new(40),
	}
	wall := open
	margin := .02
	few := Effect{
		Treatment: "seccomp", Operation: "open", Estimate: .22, Lo: .212, Hi: .24, Blocks: 5, Margin: &margin,
		Verdict: NotJudged, Reason: "5 blocks are too few for a verdict: 8 are needed",
	}
	unjudged := comparisonOf(few)
	unjudged.Effects[0].Level = .9
	partly := comparisonOf(same, few)
	explored := comparisonOf(same)
	explored.Effects = append(explored.Effects, Effect{
		Treatment: "seccomp", Operation: "open", Metric: "wall", Kind: "ratio", Estimate: .31, Lo: .24, Hi: .41, Level: .99,
		Verdict: Regressed, Blocks: 10,
	})
	invalid := comparisonOf(landlock)
	invalid.Verdict, invalid.Reason = Invalid, "landlock was not in force"
	for name, c := range map[string]struct {
		r    *Report
		want string
	}{
		"one": {
			comparisonOf(landlock, same),
			"landlock rules=50 adds 61 % CPU time to open; nothing else is above the margin of 2 %.",
		},
		"undecided": {comparisonOf(landlock, same, slower, open), "landlock rules=50 adds 61 % CPU time to " +
			"open; of the other 3: 1 equivalent within the margin of 2 %, 1 higher, size undecided, 1 inconclusive."},
		"none": {comparisonOf(same), "Nothing costs more than the margin of 2 %: the one effect is equivalent " +
			"within it."},
		"not shown": {comparisonOf(same, wall), "Nothing is shown to cost more than the margin of 2 %. Of 2 effects: 1 " +
			"equivalent within the margin of 2 %, 1 inconclusive."},
		"everything": {comparisonOf(landlock), "landlock rules=50 adds 61 % CPU time to open; the one effect is " +
			"beyond the margin of 2 %."},
		"invalid": {invalid, ""},
		"too few blocks": {
			unjudged, "No effect is judged: 5 blocks are too few for a verdict: 8 are needed; that of open.cpu under seccomp " +
				"was seen beyond the margin, at +22.0 % [21.2, 24.0], an interval at 90 % only.",
		},
		"some not judged": {
			partly, "Of 2 effects: 1 equivalent within the margin of 2 %, 1 not judged; that of open.cpu under seccomp was " +
				"seen beyond the margin, at +22.0 % [21.2, 24.0], an interval at 98 % only.",
		},
		"exploratory": {
			explored, "No deciding effect costs more than the margin of 2 %: the one effect is equivalent within it; " +
				"exploratory: seccomp open.wall +31 % [24, 41].",
		},
	} {
		if got := strings.ReplaceAll(conclusion(c.r), space, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestInvalidAndUnfinishedComeFirst(t *testing.T) {
	page := render(t, pageUnreliable())
	if m := regexp.MustCompile(`<p class="lead[^>]*>.*`).FindString(page); !strings.Contains(m, "✗ INVALID</strong> Unreliable on this host") {
		t.Errorf("the sentence of an unreliable run is %s", m)
	}
	if strings.Contains(bare(page), "✗ regressed<") || strings.Contains(bare(page), "Beyond the margin") {
		t.Error("an unreliable run has a verdict on an effect")
	}
	page = render(t, stopped())
	notice, lead := strings.Index(page, "The run was interrupted;"), strings.Index(page, `class="lead`)
	if notice < 0 || notice > lead || !strings.Contains(page, "<strong>10 of 160</strong>") {
		t.Errorf("an interrupted run does not say so first (%d, %d)", notice, lead)
	}
}

// TestOneFarOutDoesNotFlattenTheOthers: +900 % beside ±1 % leaves those an axis that shows them.
func TestOneFarOutDoesNotFlattenTheOthers(t *testing.T) {
	var effects []Effect
	for i := range 9 {
		v := .002 * float64(i-4)
		effects = append(effects, Effect{
			Treatment: "t", Operation: "open", Estimate: v, Lo: v - .004, Hi: v + .004,
			Margin: new(.02),
		})
	}
	effects = append(effects, Effect{Treatment: "far", Operation: "open", Estimate: 9, Lo: 8, Hi: 10, Margin: new(.02)})
	r := comparisonOf(effects...)
	groups := effectGroups(r)
	if len(groups) != 1 {
		t.Fatalf("%d comparisons, want 1", len(groups))
	}
	if w := windowOf(r, &groups[0]); w.hi > .2 || w.lo > -.02 || w.hi < .02 {
		t.Errorf("the axis goes from %v to %v", w.lo, w.hi)
	}
	figure := forest(r, &groups[0], sharedParts(r, groups), "x")
	if !strings.Contains(figure.Caption, "1 mark beyond the end of the axis") {
		t.Errorf("the caption does not say that a mark is outside: %q", figure.Caption)
	}
	if svg := string(figure.SVG); strings.Contains(svg, "NaN") || !strings.Contains(svg, "+900") || !strings.Contains(svg, `fill="none" stroke="currentColor" stroke-width="1.5"><title>far`) {
		t.Error("what is far out is not a hollow mark with its number")
	}
}

// TestOutlyingOperationHasItsOwnAxis: the others keep one that shows them.
func TestOutlyingOperationHasItsOwnAxis(t *testing.T) {
	var effects []Effect
	for _, operation := range []string{"open", "exec", "fork", "pipe", "copy"} {
		effects = append(effects, Effect{
			Treatment: "t", Operation: operation, Estimate: .03, Lo: .02, Hi: .04,
			Margin: new(.02),
		})
	}
	effects[4].Estimate, effects[4].Lo, effects[4].Hi = 3, 2.8, 3.2
	r := comparisonOf(effects...)
	groups := effectGroups(r)
	all := sharedParts(r, groups)
	if all.hi > .5 {
		t.Errorf("the shared axis ends at %v", all.hi)
	}
	for i := range groups {
		own := strings.Contains(forest(r, &groups[i], all, "x").Caption, "not that of the other charts")
		if want := groups[i].operation == "copy"; own != want {
			t.Errorf("%s has an axis of its own: %v", groups[i].operation, own)
		}
	}
}

func TestBudgetsStandAtTheirEffects(t *testing.T) {
	r := pageEnforcers(10)
	for _, c := range effectGroups(r) {
		got := rules(r, &c)
		if c.operation != "open" && len(got) > 0 || c.operation == "open" && (len(got) != 1 || got[0].At != .05) {
			t.Errorf("%s has the budgets %v", c.operation, got)
		}
	}
}

func TestHeatIsAgainstEachArmsOwnMedian(t *testing.T) {
	of := func(arm string, v ...float64) BlockValues {
		b := BlockValues{Treatment: arm, Operation: "open", Metric: "cpu", Unit: metric.CPUSeconds}
		for _, x := range v {
			if math.IsNaN(x) {
				b.Values = append(b.Values, nil)
			} else {
				b.Values = append(b.Values, &x)
			}
		}
		return b
	}
	r := pageBase("x")
	r.Treatments = []Treatment{{ID: "none"}, {ID: "dear"}}
	r.Blocks = []BlockValues{of("none", 1, 1, 1.5, 1, 1), of("dear", 10, 10, 15, 10, math.NaN())}
	joint := jointly(r, ratedBlocks(r))
	if len(joint) != 3 || joint[2].arm != allArms {
		t.Fatalf("%v", joint)
	}
	for _, d := range joint {
		if d.values[2] < .499 || d.values[2] > .501 || d.values[0] != 0 {
			t.Errorf("%s: %v, want the third block 50 %% off", d.arm, d.values)
		}
	}
	if !math.IsNaN(joint[1].values[4]) {
		t.Error("a block that was not measured has a deviation")
	}
	if text := strings.ReplaceAll(blockText(joint), space, " "); !strings.Contains(text,
		"1 block of 5, most of all block 3 by +50 %") {
		t.Errorf("%q", text)
	}
}

func TestManyBlocksShareColumns(t *testing.T) {
	d := deviations{arm: "a", values: make([]float64, 160)}
	d.values[77] = -.3
	svg := string(heatFigure(pageBase("x"), "x", []deviations{d}, "h", 1).SVG)
	if n := strings.Count(svg, "<rect x="); n > 2*maxColumns || n < maxColumns {
		t.Errorf("%d cells in two drawings, want at most %d", n, 2*maxColumns)
	}
	if !strings.Contains(svg, "77–80: −30") {
		t.Error("the block that was furthest off is not shown")
	}
}

func TestSizeZeroIsShown(t *testing.T) {
	g := scaled().Growth[0]
	p := zeroColumnFor(&g)
	if p.at <= 0 || p.at >= 1 || p.axis("rules").Format(p.of(0)) != "0" || p.of(5) != 5 {
		t.Errorf("0 stands at %v", p.at)
	}
	if svg := string(curveOf(scaled(), &g, "g").SVG); !strings.Contains(svg, "measured: 0, 2.1") {
		t.Error("the size 0 is not drawn")
	}
	if p := zeroColumnFor(&scaled().Growth[2]); p.at != 0 {
		t.Error("a growth without the size 0 has a place for it")
	}
}

func TestAtMostEightLines(t *testing.T) {
	r := pageEnforcers(10)
	lines, left := chosen(r, spectra(r))
	if len(lines) != maxLines || left != 3 || lines[0] != "none" || lines[maxLines-1] != design.AAArm {
		t.Errorf("%q and %d others", lines, left)
	}
}

// TestLargestPageIsBounded: 12 arms on 8 operations over 160 blocks.
func TestLargestPageIsBounded(t *testing.T) {
	r := pageEnforcers(160)
	n := len(r.Blocks)
	for i := range n {
		if b := r.Blocks[i]; b.Operation == "open" {
			b.Operation = "rename"
			r.Blocks = append(r.Blocks, b)
		}
	}
	for i := range len(r.Effects) {
		if e := r.Effects[i]; e.Operation == "open" {
			e.Operation = "rename"
			r.Effects = append(r.Effects, e)
		}
	}
	page := render(t, r)
	if len(page) > 1_500_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if !strings.Contains(page, "but for its blocks") {
		t.Error("the page does not say what it leaves out")
	}
	if strings.Contains(page, `"blocks":[`) {
		t.Error("the block values are in the page")
	}
}

func TestHostileComparisonStaysText(t *testing.T) {
	page := render(t, hostileCompare())
	for _, e := range elements(t, page) {
		if tag := e.Name.Local; tag == "img" || tag == "script" && len(e.within) > 2 {
			t.Errorf("a text became <%s> within %v", tag, e.within)
		}
	}
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("the page has %d scripts, want its data alone", n)
	}
	if n := strings.Count(bare(page), "&lt;/script&gt;"); n < 20 {
		t.Errorf("the attacks are shown as texts %d times only", n)
	}
}

// TestAxisOfManyTimesTheBaseline: changes of many times the baseline, or of one that is mostly the harness, are drawn
// in the metric's unit; no axis counts in thousands of percent.
func TestAxisOfManyTimesTheBaseline(t *testing.T) {
	effect := func(estimate float64, harness *float64) Effect {
		return Effect{
			Treatment: "directfs", Operation: "check", Estimate: estimate, Lo: .9 * estimate, Hi: 1.1 * estimate,
			Verdict: Regressed, Difference: new(estimate * 5e-9), BaselineHarness: harness, Margin: new(.02),
		}
	}
	unknown := Effect{Treatment: "x", Operation: "check", Estimate: 1, Hi: 2}
	other := unknown
	other.Difference = new(1.0)
	for name, c := range map[string]struct {
		effects []Effect
		units   bool
	}{
		"4000 times":           {[]Effect{effect(4000, nil), effect(500, nil)}, true},
		"twice":                {[]Effect{effect(1, nil)}, false},
		"mostly the harness":   {[]Effect{effect(3, new(.7))}, true},
		"of unknown baseline":  {[]Effect{effect(4000, nil), unknown}, false},
		"of several baselines": {[]Effect{effect(4000, nil), other}, false},
	} {
		r := comparisonOf(c.effects...)
		groups := effectGroups(r)
		ticks := regexp.MustCompile(`>\+[0-9.]+.(%|µs|ns)<`).FindAllStringSubmatch(
			string(forest(r, &groups[0], sharedParts(r, groups), "chart").SVG), -1)
		if len(ticks) == 0 {
			t.Fatalf("%s: the axis has no ticks", name)
		}
		for _, x := range ticks {
			if (x[1] != "%") != c.units {
				t.Errorf("%s: the axis says %s", name, x[0])
			}
		}
	}
}
