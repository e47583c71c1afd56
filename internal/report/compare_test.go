package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/design"
)

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
