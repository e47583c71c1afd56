package chart

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestSamplesAreSound(t *testing.T) {
	for name, c := range samples() {
		t.Run(name, func(t *testing.T) {
			svg := c.SVG(name)
			pictures := check(t, svg)
			if !bytes.Equal(svg, c.SVG(name)) {
				t.Error("two drawings of one chart differ")
			}
			for _, p := range pictures {
				if p.title == "" || p.desc == "" {
					t.Errorf("title %q, description %q", p.title, p.desc)
				}
			}
		})
	}
}

func TestTicksCoverTheRangeAndStayFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 20000 {
		a := Axis{Log: rng.IntN(2) == 0, Time: rng.IntN(2) == 0}
		lo := math.Pow(10, rng.Float64()*24-12)
		hi := lo * math.Pow(10, rng.Float64()*6)
		if !a.Log && rng.IntN(2) == 0 {
			lo = -lo
		}
		e := extent{axis: a}
		e.add(lo)
		e.add(hi)
		s, _ := e.scale(rng.IntN(2) * 6)
		if s.lo > lo+1e-9*math.Abs(lo) || s.hi < hi*(1-1e-9) {
			t.Fatalf("%+v: scale %g … %g cuts data %g … %g", a, s.lo, s.hi, lo, hi)
		}
		n := 2 + rng.IntN(12)
		ticks := s.ticks(n)
		if len(ticks) > max(n, 5) || len(ticks) == 0 {
			t.Fatalf("%+v %g … %g: asked for at most %d ticks, got %v", a, s.lo, s.hi, n, ticks)
		}
		for i, v := range ticks {
			if p := s.pos(v); p < -1e-6 || p > 1+1e-6 || i > 0 && v <= ticks[i-1] {
				t.Fatalf("%+v %g … %g: ticks %v", a, s.lo, s.hi, ticks)
			}
		}
		if n >= 4 && len(ticks) >= 2 && s.pos(ticks[len(ticks)-1])-s.pos(ticks[0]) < 0.3 {
			t.Fatalf("%+v %g … %g: ticks %v cover too little", a, s.lo, s.hi, ticks)
		}
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		lo, hi float64
		n      int
		want   string
	}{
		{Axis{}, 0, 1, 6, "0 0.2 0.4 0.6 0.8 1"},
		{Axis{}, 0, 0.3, 4, "0 0.1 0.2 0.3"},
		{Axis{}, -50, 50, 6, "-40 -20 0 20 40"},
		{Axis{}, 0, 1200, 7, "0 200 400 600 800 1000 1200"},
		{Axis{Log: true}, 1, 100, 9, "1 2 5 10 20 50 100"},
		{Axis{Log: true}, 1, 1000, 5, "1 10 100 1000"},
		{Axis{Log: true}, 1, 1e12, 5, "1 1000 1e+06 1e+09 1e+12"},
		{Axis{Log: true}, 31, 35, 6, "31 32 33 34 35"},
		{Axis{Time: true}, 0, 60, 8, "0 10 20 30 40 50 60"},
		{Axis{Time: true}, 0, 360, 8, "0 60 120 180 240 300 360"},
		{Axis{Time: true}, 0, 3600, 5, "0 900 1800 2700 3600"},
		{Axis{Time: true}, 0, 0.5, 6, "0 0.1 0.2 0.3 0.4 0.5"},
		{Axis{Time: true}, 0, 4 * 86400, 5, "0 86400 172800 259200 345600"},
		{Axis{tail: true}, 0, 0.9995, 6, "0 0.5 0.9 0.99 0.999"},
		{Axis{Ticks: []float64{3, 1, 2, 99, math.NaN(), 1}}, 0, 4, 6, "1 2 3"},
	} {
		s := scale{axis: c.axis, lo: c.lo, hi: c.hi}
		var got []string
		for _, v := range s.ticks(c.n) {
			got = append(got, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v %g … %g, at most %d: %v, want %s", c.axis, c.lo, c.hi, c.n, got, c.want)
		}
	}
}

func TestScalePlacesValues(t *testing.T) {
	for _, c := range []struct {
		axis         Axis
		lo, hi, v, p float64
	}{
		{Axis{}, 0, 10, 2.5, 0.25},
		{Axis{}, -10, 10, 0, 0.5},
		{Axis{Log: true}, 1, 100, 10, 0.5},
		{Axis{Log: true}, 1e-3, 1e3, 1, 0.5},
		{Axis{tail: true}, 0, 0.9999, 0.99, 0.5},
		{Axis{tail: true}, 0, 0.999, 0.9, 1. / 3},
	} {
		if got := (scale{axis: c.axis, lo: c.lo, hi: c.hi}).pos(c.v); math.Abs(got-c.p) > 1e-9 {
			t.Errorf("%+v: %g of %g … %g lies at %g, want %g", c.axis, c.v, c.lo, c.hi, got, c.p)
		}
	}
}

func TestFixedEndsHoldAndImpossibleOnesDoNot(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		lo, hi float64
	}{
		{Axis{Min: new(0.0), Max: new(1.0)}, 0, 1},
		{Axis{Min: new(7.0), Max: new(7.0)}, 0, 40},
		{Axis{Min: new(math.NaN()), Max: new(math.Inf(1))}, 0, 40},
		{Axis{Log: true, Min: new(0.0)}, 5, 50},
		{Axis{Log: true, Min: new(1.0)}, 1, 50},
	} {
		e := extent{axis: c.axis}
		e.add(7)
		e.add(35)
		if s, _ := e.scale(6); s.lo != c.lo || s.hi != c.hi {
			t.Errorf("%+v: %g … %g, want %g … %g", c.axis, s.lo, s.hi, c.lo, c.hi)
		}
	}
}

func TestDistantRuleDoesNotFlattenTheData(t *testing.T) {
	e := extent{}
	e.add(10)
	e.add(20)
	e.widen(1000)
	if e.hi != 20 {
		t.Errorf("a rule at 1000 widens 10 … 20 to %g", e.hi)
	}
	if e.widen(28); e.hi != 28 {
		t.Errorf("a rule at 28 should be taken in, range ends at %g", e.hi)
	}
	p := Panel{
		Series: []Series{{X: []float64{1, 2}, Y: []float64{10, 20}}},
		Rules:  []Rule{{At: 1000, Label: "budget"}, {At: 99, Vertical: true, Label: "goal"}},
	}
	for _, want := range []string{">↑ budget<", "budget ↑<", "goal →<"} {
		if got := strings.Contains(string(p.SVG("p")), want); got == (want == ">↑ budget<") {
			t.Errorf("contains %q: %v", want, got)
		}
	}
}

func TestGapsStayGaps(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := Series{X: []float64{0, 1, 2, 3, 4, 5, nan, 7}, Y: []float64{1, 2, nan, 4, 5, inf, 6, 0}}
	var lens []int
	for _, run := range s.runs(Axis{Log: true}, Axis{}) {
		lens = append(lens, len(run))
	}
	if len(lens) != 2 || lens[0] != 2 || lens[1] != 2 {
		t.Errorf("stretches of %v points, want 2 and 2", lens)
	}
	svg := string(Panel{Y: Axis{Log: true}, Series: []Series{s}}.SVG("p"))
	_, path, _ := strings.Cut(svg, `class="line" d="`)
	path, _, _ = strings.Cut(path, `"`)
	if strings.Count(path, "M") != 2 {
		t.Errorf("path %q should start twice", path)
	}
}

func TestEmptyChartsSayTheirSentence(t *testing.T) {
	nan := []float64{math.NaN()}
	for name, c := range map[string]drawable{
		"panel": Panel{}, "stack": pile{}, "percentiles": Percentiles{Series: []Series{{X: []float64{1}, Y: []float64{1}}}},
		"bars": Bars{}, "forest": Forest{}, "heat": Heat{},
		"nan":                 Panel{Series: []Series{{X: nan, Y: nan}}},
		"zero on log":         Panel{Y: Axis{Log: true}, Series: []Series{{X: []float64{1}, Y: []float64{0}}}},
		"heat nan":            Heat{Rows: []string{"a"}, Cols: []string{"b"}, Values: [][]float64{nan}},
		"rows without values": Bars{Rows: []Bar{{Label: "a", Value: math.NaN()}}},
		"uneven":              Panel{Series: []Series{{X: []float64{1, 2, 3}}, {Y: []float64{1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			svg := c.SVG("e")
			for _, p := range check(t, svg) {
				if !strings.Contains(p.said(), noData) {
					t.Errorf("%s says %q", p.class, p.said())
				}
			}
		})
	}
	if p := (Panel{Empty: "No call was answered."}); !bytes.Contains(p.SVG("e"), []byte(">No call was answered.<")) {
		t.Error("the caller's own sentence is not shown")
	}
}

func (p *picture) said() string {
	var all []string
	for _, b := range p.texts {
		all = append(all, b.what)
	}
	return strings.Join(all, " | ")
}

func TestLongSeriesAreThinnedWithoutLosingExtremes(t *testing.T) {
	s := Series{Line: true}
	for i := range 100000 {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, math.Sin(float64(i)/1000))
	}
	s.Y[54321] = 9 // one outlier
	svg := Panel{Series: []Series{s}, Y: Axis{Min: new(-1.0), Max: new(9.0)}}.SVG("long")
	if len(svg) > 120_000 {
		t.Errorf("100000 points take %d bytes", len(svg))
	}
	for _, p := range check(t, svg) {
		top := math.Inf(1)
		for _, m := range p.marks {
			if strings.HasSuffix(m.what, "/line") {
				top = min(top, m.y1)
			}
		}
		if math.Abs(top-p.frames[0].y1) > 0.11 {
			t.Errorf("%s: the outlier is drawn at %g, the top is %g", p.class, top, p.frames[0].y1)
		}
	}
}

func TestDataOutsideFixedEndsAreCutNotBent(t *testing.T) {
	p := Panel{
		X: Axis{Min: new(0.0), Max: new(10.0)}, Y: Axis{Min: new(0.0), Max: new(10.0)},
		Series: []Series{{X: []float64{-10, 20}, Y: []float64{-10, 20}, Line: true, Dots: true}},
	}
	for _, q := range check(t, p.SVG("cut")) {
		for _, m := range q.marks {
			if strings.HasSuffix(m.what, "/line") && (math.Abs(m.x1-q.frames[0].x1) > 0.11 ||
				math.Abs(m.y1-q.frames[0].y1) > 0.11) {
				t.Errorf("the diagonal is cut at %v, the frame is %v", m, q.frames[0])
			}
		}
	}
	if svg := string(p.SVG("cut")); strings.Count(svg,
		`fill="none" stroke="currentColor" stroke-width="1.5"><title>`) != 4 {
		t.Error("two dots outside the frame should be hollow, in both layouts")
	}
}

func TestTwoPanelsShareXExactly(t *testing.T) {
	for _, p := range check(t, breaking().SVG("s")) {
		if len(p.frames) != 2 || p.frames[0].x1 != p.frames[1].x1 || p.frames[0].x2 != p.frames[1].x2 {
			t.Errorf("%s: plots at %v", p.class, p.frames)
		}
	}
	svg := string(breaking().SVG("s"))
	if n := strings.Count(svg, "<title>capacity 620/s</title>"); n != 2 {
		t.Errorf("the rule's label is a title %d times, want once for each layout", n)
	}
}

func TestSameNameSameColour(t *testing.T) {
	panels := coloured([]Panel{
		{Series: []Series{{Name: "a"}, {Name: "b"}}},
		{Series: []Series{{Name: "b"}, {Name: "c"}, {Name: "d", Kind: Bad}}},
	})
	got := []Kind{
		panels[0].Series[0].Kind, panels[0].Series[1].Kind, panels[1].Series[0].Kind, panels[1].Series[1].Kind,
		panels[1].Series[2].Kind,
	}
	for i, want := range []Kind{Color(0), Color(1), Color(1), Color(2), Bad} {
		if got[i] != want {
			t.Errorf("series %d has kind %d, want %d", i, got[i], want)
		}
	}
}

// luminance is WCAG 2.2's relative luminance of a colour #rrggbb.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		v := float64(c) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

func TestColoursAreLegibleOnWhiteAndOnNearBlack(t *testing.T) {
	black := luminance(t, "#0d1117")
	for k, l := range looks {
		v := luminance(t, l.color)
		onWhite, onBlack := 1.05/(v+0.05), (v+0.05)/(black+0.05)
		if onWhite < 3 || onBlack < 3 {
			t.Errorf("kind %d %s: contrast %.2f on white, %.2f on near-black; WCAG asks 3 of graphics", k, l.color,
				onWhite, onBlack)
		}
	}
	if Color(-1) != Color(7) || Color(9) != Color(1) {
		t.Error("the palette should wrap around")
	}
}

func TestStyleBrightensEveryKind(t *testing.T) {
	for _, l := range looks {
		if !strings.Contains(Style, ".chart ."+l.class+"{color:") {
			t.Errorf("no dark colour for %s", l.class)
		}
	}
	if strings.Count(Style, "{") != strings.Count(Style, "}") {
		t.Error("braces do not match")
	}
}

func TestTextThatDoesNotFitIsCutAndKeptInItsTitle(t *testing.T) {
	long := strings.Repeat("a very long label ", 30)
	f := Forest{
		Rows: []ForestRow{{Label: long, Value: 1, Lo: 0, Hi: 2, Verdict: Bad, Word: "fail"}},
		Axis: Axis{Label: long}, Rules: []Rule{{At: 1, Label: long}},
	}
	svg := f.SVG("f")
	check(t, svg)
	if !bytes.Contains(svg, []byte("<title>"+strings.TrimSpace(long)+"</title>")) ||
		!bytes.Contains(svg, []byte(ellipsis+"<")) {
		t.Error("the long label should be cut with an ellipsis, and whole in a title")
	}
	if got := cut("abc", 0, 10); got != ellipsis {
		t.Errorf("no room at all gives %q", got)
	}
}

func TestVerdictsHaveAGlyph(t *testing.T) {
	svg := string(costs().SVG("f"))
	for _, want := range []string{"✓ pass", "✗ FAIL", "? inconclusive"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestVeryLongLabelsAreBounded(t *testing.T) {
	label := strings.Repeat("日本 <&> ", 200_000)
	svg := Panel{
		Title: label, X: Axis{Label: label}, Y: Axis{Format: func(float64) string { return label }}, Legend: true,
		Series: []Series{{Name: label, X: []float64{1, 2}, Y: []float64{1, 2}}}, Rules: []Rule{{At: 1, Label: label}},
	}.SVG(label)
	check(t, svg)
	if len(svg) > 1<<20 {
		t.Errorf("a megabyte of label gives %d bytes", len(svg))
	}
}

func TestLinesDifferInMoreThanColour(t *testing.T) {
	shapes := map[shape]bool{}
	for i := range Colors {
		shapes[Color(i).look().marker] = true
	}
	if len(shapes) != Colors {
		t.Errorf("%d markers for %d colours", len(shapes), Colors)
	}
	x := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	a, b, law := Series{Name: "a", X: x, Y: x}, Series{Name: "b", X: x, Y: x}, Series{Name: "law", X: x, Y: x, Dash: true}
	for _, c := range []struct {
		series []Series
		dots   int // in the plots of both layouts: five for each line in the wide one, three in the narrow one
	}{
		{[]Series{a}, 0},
		{[]Series{a, law}, 0},
		{[]Series{a, b}, 2 * (5 + 3)},
		{[]Series{a, b, law}, 2 * (5 + 3)},
	} {
		dots := 0
		for _, p := range check(t, Panel{Series: c.series, Legend: true}.SVG("m")) {
			for _, m := range p.marks {
				if strings.HasSuffix(m.what, "/dot") {
					dots++
				}
			}
		}
		if dots != c.dots {
			t.Errorf("%d series have %d markers, want %d", len(c.series), dots, c.dots)
		}
	}
}

func TestLetterSizeOnAPhone(t *testing.T) {
	for _, p := range check(t, breaking().SVG("s")) {
		const column = 375 - 2*16 // a phone less its margins, in pixels
		if px := p.font * column / p.page.x2; p.display == "none" && px < 11 {
			t.Errorf("letters are %.1f px high on a phone", px)
		}
	}
}
