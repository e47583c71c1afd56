package report

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/design"
	"tare/internal/metric"
)

// comparisonOf is a comparison with just these deciding effects.
func comparisonOf(effects ...Effect) *Report {
	r := base("few")
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
	if svg := string(figure.SVG()); strings.Contains(svg, "NaN") || !strings.Contains(svg, "+900") || !strings.Contains(svg, `fill="none" stroke="currentColor" stroke-width="1.5"><title>far`) {
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
	r := base("x")
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
	svg := string(heatFigure(base("x"), "x", []deviations{d}, "h", 1).SVG())
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
	if svg := string(curveOf(scaled(), &g, "g").SVG()); !strings.Contains(svg, "measured: 0, 2.1") {
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
			string(forest(r, &groups[0], sharedParts(r, groups), "chart").SVG()), -1)
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

func TestChange(t *testing.T) {
	for want, x := range map[string]Effect{
		"+4.1 % [3.6, 4.5]":             {Kind: "ratio", Estimate: 0.041, Lo: 0.036, Hi: 0.0451},
		"-2.3 % [-2.8, -1.7]":           {Kind: "ratio", Estimate: -0.0231, Lo: -0.028, Hi: -0.017},
		"0.0 % [-0.1, 0.1]":             {Kind: "ratio", Estimate: -0.0002, Lo: -0.0012, Hi: 0.0012},
		"+0.03 % [0.02, 0.04]":          {Kind: "ratio", Estimate: 0.0003, Lo: 0.0002, Hi: 0.0004},
		"+58 % [41, 77]":                {Kind: "ratio", Estimate: 0.58, Lo: 0.41, Hi: 0.77},
		"+541 % [538, 545] (×6.41)":     {Kind: "ratio", Estimate: 5.41, Lo: 5.38, Hi: 5.45},
		"+1140 % [1130, 1150] (×12.4)":  {Kind: "ratio", Estimate: 11.4, Lo: 11.3, Hi: 11.5},
		"+5 % [-100, ∞]":                {Kind: "ratio", Estimate: 0.05, Lo: -1, Hi: math.Inf(1)},
		"+110 µs [80, 140]":             {Kind: "difference", Metric: "response", Estimate: 110e-6, Lo: 80e-6, Hi: 140e-6},
		"+980 µs [900 µs, 1.06 ms]":     {Kind: "difference", Metric: "response", Estimate: 980e-6, Lo: 900e-6, Hi: 1060e-6},
		"+0.21 points [0.08, 0.40]":     {Kind: "difference", Metric: "error", Estimate: 0.0021, Lo: 0.0008, Hi: 0.004},
		"not measured":                  {Kind: "ratio", Estimate: math.NaN()},
		"+12 [10, 14]":                  {Kind: "difference", Metric: "instructions", Estimate: 12, Lo: 10, Hi: 14},
		"+3.0 % [2.0, 4.0]":             {Kind: "ratio", Estimate: 0.03, Lo: 0.02, Hi: 0.04, Reason: "unblocked"},
		"-12.00/s [-14.00/s, -10.00/s]": {Kind: "difference", Metric: "goodput", Estimate: -12, Lo: -14, Hi: -10},
		"+100 % [100, 100]":             {Kind: "ratio", Estimate: 1, Lo: 1, Hi: 1},
		"+3.5 ms [-∞, 4]":               {Kind: "difference", Metric: "wall", Estimate: 3.5e-3, Lo: math.Inf(-1), Hi: 4e-3},
		"-0.1 % [-0.4, 0.1]":            {Kind: "ratio", Estimate: -.0012, Lo: -.004, Hi: .001},
		"+907 % [-∞, ∞] (×10.1)":        {Kind: "ratio", Estimate: 9.07, Lo: -1e308, Hi: 1e308},
		"-3.1 ms [-4 ms, 0 s]":          {Kind: "difference", Metric: "wall", Estimate: -.0031, Lo: -.004, Hi: 0},
	} {
		if got := x.Change(); got != want {
			t.Errorf("%+v is %q, want %q", x, got, want)
		}
	}
}

func TestLabels(t *testing.T) {
	arm := func(id string, levels ...string) Treatment {
		t := Treatment{ID: id, Levels: map[string]string{}}
		for i := 0; i+1 < len(levels); i += 2 {
			t.Levels[levels[i]] = levels[i+1]
		}
		return t
	}
	r := &Report{Treatments: []Treatment{
		arm("enforcer=none", "enforcer", "none"),
		arm("enforcer=landlock rules=8", "enforcer", "landlock", "rules", "8", "fixed", "x"),
		arm("cache=off", "cache", "off"),
		arm("a=same", "a", "same"),
		arm("b=same", "b", "same"),
		arm("given name", "enforcer", "none"),
		arm("aa", "enforcer", "none"),
	}}
	r.Treatments[0].Baseline, r.Treatments[6].Control = true, design.AA
	for id, want := range map[string]string{
		"enforcer=none": "none (baseline)", "enforcer=landlock rules=8": "landlock rules=8", "cache=off": "cache=off",
		"a=same": "a=same",
		"b=same": "b=same", "given name": "given name", "aa": "A/A", "unknown": "unknown",
	} {
		if got := named(r.labels(), id); got != want {
			t.Errorf("%s is called %q, want %q", id, got, want)
		}
	}
}

// wide is a comparison of ten treatments on seven operations.
func wide() *Report {
	c := comparison{name: "wide", metric: "cpu", blocks: 10, margin: 0.02, noise: 0.005, base: map[string]float64{}}
	for i := range 7 {
		op := fmt.Sprintf("operation%d", i)
		c.operations, c.base[op] = append(c.operations, op), 1e-6
	}
	for i := range 11 {
		c.arms = append(c.arms, trialled{
			levels: map[string]string{"enforcer": fmt.Sprintf("enforcer-number-%c", 'a'+i)},
			cost:   map[string]float64{"operation3": float64(i) / 20},
		})
	}
	return c.report()
}

func TestWideComparisonFits(t *testing.T) {
	r := wide()
	for _, width := range []int{60, 80, 100, 200} {
		text := string(encode(t, Style{Width: width}.Text, r))
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns in %q, want at most %d", n, line, width)
			}
		}
		// Every effect is there, with its interval and mark; where there is no room, without the absolute difference.
		for i := range r.Effects {
			cell := r.Effects[i].Change() + " " + r.Effects[i].shown().mark()
			if width < 64 && strings.HasPrefix(cell, r.Effects[i].ranged()+" (") {
				cell = r.Effects[i].ranged() + " " + r.Effects[i].shown().mark()
			}
			if !strings.Contains(text, cell) {
				t.Errorf("at %d columns %q of %s is missing", width, cell, r.Effects[i].Treatment)
			}
		}
	}
}

func TestTrust(t *testing.T) {
	quiet := Effect{
		Operation: "open", Metric: "cpu", Kind: "ratio", Estimate: 0.003, Lo: -0.005, Hi: 0.011,
		Verdict: Equivalent, Gating: true,
	}
	loud := Effect{
		Operation: "exec", Metric: "cpu", Kind: "ratio", Estimate: 0.03, Lo: 0.02, Hi: 0.04, Verdict: Regressed,
		Measurable: true, Gating: true,
	}
	wild := Effect{
		Operation: "open", Metric: "wall", Kind: "ratio", Estimate: 0.5, Lo: -0.2, Hi: 1,
		Verdict: EffectInconclusive,
	}
	broad := loud
	broad.Estimate, broad.Lo, broad.Hi, broad.Verdict, broad.Measurable = 0.21, -0.46, 1.48, EffectInconclusive, false
	few := broad
	few.Verdict, few.Gating = NotJudged, false
	negative := Effect{
		Operation: "fork", Metric: "cpu", Kind: "ratio", Estimate: 0.001, Lo: -0.002, Hi: 0.004,
		Verdict: Equivalent,
	}
	for name, c := range map[string]struct {
		aa   AA
		want string
		ok   bool
	}{
		"quiet": {
			AA{Reliable: true, Effects: []Effect{quiet, wild}},
			"the baseline against itself is quiet: largest +0.3 % [-0.5, 1.1] of open.cpu", true,
		},
		"quiet, with a control": {
			AA{Reliable: true, Effects: []Effect{quiet}, NegativeControls: []Effect{negative}},
			"the baseline against itself is quiet: largest +0.3 % [-0.5, 1.1] of open.cpu; negative controls quiet: fork, " +
				"largest +0.1 % [-0.2, 0.4]", true,
		},
		"loud": {
			AA{Effects: []Effect{quiet, loud}},
			"UNRELIABLE on this host: the baseline differs from itself: +3.0 % [2.0, 4.0] of exec.cpu", false,
		},
		"loud, yet within margins": {
			AA{Reliable: true, Effects: []Effect{quiet, loud}},
			"the baseline differs from itself by less than half the margin: +3.0 % [2.0, 4.0] of exec.cpu", true,
		},
		"wide": {
			AA{Reliable: true, Effects: []Effect{quiet, broad}, NegativeControls: []Effect{negative, few}},
			"not known whether the baseline differs from itself: +21 % [-46, 148] of exec.cpu; not known whether negative " +
				"controls are quiet: fork, exec, widest +21 % [-46, 148], from too few blocks", true,
		},
		"unchecked": {AA{}, "UNCHECKED: there is no effect of the baseline on itself", false},
	} {
		r := &Report{AA: &c.aa}
		if got, ok := r.trust(); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestNext(t *testing.T) {
	report := func(change func(*Report)) *Report {
		r := small("x", 0.005).report()
		r.Verdict = Inconclusive
		for i := range r.Effects {
			r.Effects[i].Verdict, r.Effects[i].BlocksToDecide = Equivalent, nil
		}
		r.Effects[1].Verdict, r.Effects[1].BlocksToDecide = Slower, new(19)
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		change func(*Report)
		want   string
	}{
		"blocks": {
			func(*Report) {},
			"about 9 more blocks would decide 1 open effect: tare run x.yaml --add-blocks 9",
		},
		"one block": {
			func(r *Report) { r.Effects[1].BlocksToDecide = new(11) },
			"about 1 more block would decide 1 open effect: tare run x.yaml --add-blocks 1",
		},
		"the most": {func(r *Report) {
			r.Effects[0].Verdict, r.Effects[0].BlocksToDecide = EffectInconclusive,
				new(40)
		}, "about 30 more blocks would decide 2 open effects: tare run x.yaml --add-blocks 30"},
		"too many": {
			func(r *Report) { r.Effects[1].BlocksToDecide = new(5000) },
			"1 open effect would need more than 160 blocks with this noise, so small is the distance to the margin: a wider " +
				"margin, or longer batches",
		},
		"nothing open": {func(r *Report) { r.Effects[1].Verdict = Regressed }, ""},
		"unreliable": {func(r *Report) { r.AA.Reliable = false }, "the host is too noisy for this: tare doctor shows " +
			"its noise; a quieter host, pinned CPUs or longer batches help"},
		"unblocked":      {func(r *Report) { r.Design.Unblocked = true }, ""},
		"invalid anyhow": {func(r *Report) { r.Verdict = Invalid }, ""},
		"interrupted": {
			func(r *Report) { r.Status = Interrupted },
			"continue it: tare run --resume RUN, where RUN is its folder",
		},
	} {
		if got := strings.Join(report(c.change).next(), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestOpenMetricsIsBounded(t *testing.T) {
	r := wide()
	gating := len(r.Effects)
	var more []Effect
	for i := range 3000 {
		x := r.Effects[0]
		x.Operation, x.Gating = fmt.Sprint("more", i), false
		more = append(more, x)
		r.Treatments[0].Metrics = append(r.Treatments[0].Metrics, Metric{Name: "cpu", Operation: x.Operation, Unit: "CPU-s"})
	}
	r.Effects = append(more, r.Effects...)
	text := string(encode(t, OpenMetrics, r))
	m, err := readOpenMetrics(text)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "\ntare_effect_estimate{"); n != maxSeries {
		t.Errorf("%d effects, want %d", n, maxSeries)
	}
	if n := strings.Count(text, "\ntare_metric_estimate{"); n != maxSeries {
		t.Errorf("%d metrics, want %d", n, maxSeries)
	}
	gates := 0
	for id, v := range m.points {
		if strings.HasPrefix(id, "tare_effect_gating{") && v == 1 {
			gates++
		}
	}
	if gates != gating {
		t.Errorf("%d gating effects, want all %d before the others", gates, gating)
	}
	left := 0.0
	for id, v := range m.points {
		if strings.HasPrefix(id, "tare_left_out{") {
			left = v
		}
	}
	metrics := 0
	for i := range r.Treatments {
		metrics += len(r.Treatments[i].Metrics)
	}
	if want := float64(len(r.Effects) + metrics - 2*maxSeries); left != want {
		t.Errorf("%v are said to be left out, want %v", left, want)
	}
}

// TestCrossedBaselines: with factors crossed, each arm has its own baseline, and the table says which.
func TestCrossedBaselines(t *testing.T) {
	r := small("crossed", 0.005).report()
	for i, b := range []string{"cache=on n=1", "cache=on n=1", "cache=on n=2", "cache=on n=2"} {
		r.Effects[i].Baseline, r.Effects[i].Treatment = b, "cache=off "+strings.TrimPrefix(b, "cache=on ")
	}
	text := string(encode(t, Text, r))
	for _, want := range []string{"against", "cache=off n=1   cache=on n=1", "cache=off n=2   cache=on n=2"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "(baseline)") {
		t.Error("one of several baselines stands as if it were the only one")
	}
}

// TestUndecidedBaselineIsNotCalledQuiet: with too few blocks, or a wide interval, nobody knows whether the baseline
// differs from itself.
func TestUndecidedBaselineIsNotCalledQuiet(t *testing.T) {
	for verdict, want := range map[EffectVerdict]string{
		NotJudged: "? not known", EffectInconclusive: "? not known", Equivalent: "✓ quiet", Slower: "? differs",
	} {
		r := &Report{Design: &Design{Blocks: 2}, AA: &AA{Reliable: true, Effects: []Effect{{Verdict: verdict}}}}
		facts := comparedFacts(r)[0].Facts
		if last := facts[len(facts)-1]; last.Name != "A/A" || last.Value != want {
			t.Errorf("%s: the card is %q %q, want %q", verdict, last.Name, last.Value, want)
		}
	}
}

func TestGrowthForms(t *testing.T) {
	r := growthSteps()
	side := r.Growth[0]
	side.Step = new(*side.Step)
	side.Step.Before, side.Step.After = nil, &GrowthSide{
		Range: Interval{Lo: 2001, Hi: 10000}, Best: "linear", Coefficients: Coefficients{C0: 23e-6, C1: 1e-12},
	}
	const want = "beyond it ×5.6 [5.2, 6] that, over 10–10000; breaks check.cpu <= 10us between records = 1999 and " +
		"2001, in the step; by themselves, 2001–10000: best linear, 23 µs + 0.001 ns·records"
	if got := r.law(&side); !strings.Contains(got, want) {
		t.Errorf("\n%s\n, want in it\n%s", got, want)
	}
	const misses = "no form fits: the best, quadratic, misses the cost at 1000 by 35 %"
	unfit := Growth{
		Operation: "load", Metric: "cpu", Factor: "n", Unit: metric.CPUSeconds, Range: Interval{1, 3000}, Reason: misses,
		BreaksBudgetAt: &Crossing{Value: 2000, Lo: new(1000.0), Hi: new(3000.0)}, Budget: "load.cpu <= 12us",
		Constant: &Interval{-0.001, 0.002},
	}
	stepped := unfit
	stepped.Step, stepped.BreaksBudgetAt = &Step{From: 30, To: 100, Factor: 3}, nil
	stepped.Reason += "; the budget is exceeded at 1–30, kept at 100–3000"
	for want, g := range map[string]Growth{
		"load.cpu: no law is named: " + misses + "; over 1–3000; breaks load.cpu <= 12us between n = 1000 and 3000; its " +
			"growth from the smallest to the largest size lies between -0.1 % and 0.2 %": unfit,
		"load.cpu: no single law: step between n = 30 and 100: ×3; " + misses + "; the budget is exceeded at 1–30, kept at " +
			"100–3000, over 1–3000; its growth from the smallest to the largest size lies between -0.1 % and 0.2 %": stepped,
	} {
		if got := (&Report{}).law(&g); got != want {
			t.Errorf("\n%s\n, want\n%s", got, want)
		}
	}
	if got, want := (&Growth{Law: "log", Factor: "rules"}).formula("log"), "0 + 0·log₂(1+rules)"; got != want {
		t.Errorf("a law in log₂ reads %q, want %q", got, want)
	}
	svg := string(curveOf(r, &r.Growth[0], "x").SVG())
	if !strings.Contains(svg, "step ×5.4, breaks the budget") || !strings.Contains(svg, "fitted: constant with a step") ||
		strings.Contains(svg, "breaks the budget at") {
		t.Error("the chart does not mark the step")
	}
	if lines := fittedLines(&r.Growth[0]); len(lines) != 2 {
		t.Errorf("%d lines for a cost with a step", len(lines))
	}
	if svg := string(curveOf(r, &r.Growth[1], "x").SVG()); !strings.Contains(svg, "slope changes at 2004") ||
		!strings.Contains(svg, "fitted: with a bend") {
		t.Error("the chart does not mark the bend")
	}
	table := laws(r)
	if row := fmt.Sprint(rowsOf(table.table)[0]); !strings.Contains(row, "1999 and 2001: ×5.6 [5.2, 6]") {
		t.Errorf("the table of laws: %s", row)
	}
}
