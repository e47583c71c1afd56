package chart

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
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
		"panel": Panel{}, "stack": Stack{}, "percentiles": Percentiles{Series: []Series{{X: []float64{1}, Y: []float64{1}}}},
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

var update = flag.Bool("update", false, "rewrite the goldens")

// drawable is any of the charts.
type drawable interface{ SVG(id string) []byte }

func seconds(v float64) string {
	switch {
	case v >= 1:
		return fmt.Sprintf("%.4g s", v)
	case v >= 1e-3:
		return fmt.Sprintf("%.4g ms", v*1e3)
	}
	return fmt.Sprintf("%.4g µs", v*1e6)
}

func count(v float64) string { return fmt.Sprintf("%.6g", v) }

// samples are one chart of each kind, with numbers of the size that reports have.
func samples() map[string]drawable {
	return map[string]drawable{
		"breaking":    breaking(),
		"failing":     failing(),
		"growth":      growth(),
		"percentiles": tails(),
		"forest":      costs(),
		"margins":     margins(),
		"bars":        usage(),
		"scores":      scores(),
		"heat":        blocks(),
		"amounts": Heat{
			Title: "Calls", Desc: "Calls by shard.", Rows: []string{"shard 0", "shard 1"},
			Cols: []string{"1", "2", "3"}, Values: [][]float64{{1, 2, 3}, {4, math.NaN(), 9}}, ColLabel: "second",
		},
		"empty": Panel{
			Title: "Nothing", Desc: "Nothing was measured.", X: Axis{Label: "time"},
			Y: Axis{Label: "p99", Log: true}, Empty: "No call was answered.",
		},
	}
}

func breaking() Stack {
	rng := rand.New(rand.NewPCG(1, 1))
	var x, good, base, p99, p99b []float64
	for r := 50.0; r <= 1200; r += 50 {
		x = append(x, r)
		good = append(good, min(r, 620)*(1+rng.NormFloat64()*0.01))
		base = append(base, min(r, 1050)*(1+rng.NormFloat64()*0.01))
		p99 = append(p99, 0.009*math.Exp(6*max(0, r-560)/640))
		p99b = append(p99b, 0.004*math.Exp(6*max(0, r-1000)/640))
	}
	top := Panel{
		Title: "Offered against achieved", Desc: "Goodput follows the offered rate up to 620 calls per second.",
		X:        Axis{Label: "offered (calls/s)", Format: count, Min: new(0.0)},
		Y:        Axis{Label: "answered well (calls/s)", Format: count},
		Diagonal: "all answered", Legend: true,
		Series: []Series{
			{Name: "baseline", X: x, Y: base, Line: true, Dots: true, Kind: Neutral},
			{Name: "webhook: kyverno", X: x, Y: good, Line: true, Dots: true},
		},
		Rules: []Rule{
			{At: 620, Vertical: true, Label: "capacity 620/s", Kind: Color(0)},
			{At: 600, Vertical: true, Label: "seen to hold 600/s", Kind: Good},
			{At: 640, Vertical: true, Label: "seen to break 640/s", Kind: Bad},
		},
		Spans: []Span{{From: 590, To: 650, Kind: Color(0)}},
	}
	below := Panel{
		Title: "p99", Desc: "p99 grows tenfold beyond it.", Y: Axis{Label: "response, p99 (log)", Log: true, Format: seconds},
		Series: []Series{
			{Name: "baseline", X: x, Y: p99b, Line: true, Kind: Neutral},
			{Name: "webhook: kyverno", X: x, Y: p99, Line: true},
		},
		Rules: []Rule{{At: 0.5, Label: "budget 500 ms", Kind: Bad}},
	}
	return Stack{top, below}
}

func failing() Stack {
	rng := rand.New(rand.NewPCG(2, 2))
	var t, offered, good, bad, waiting, p50, p99 []float64
	for i := range 360 {
		at := float64(i)
		o := 600 + rng.NormFloat64()*12
		broken := at > 120 && at < 240
		g, b := o, 0.0
		if broken {
			g, b = 30, 570
		}
		t, offered, good, bad = append(t, at), append(offered, o), append(good, g), append(bad, b)
		waiting = append(waiting, 10+1015*map[bool]float64{true: min(1, (at-120)/2), false: 0}[broken])
		p50 = append(p50, 0.004*math.Exp(rng.NormFloat64()*0.05))
		p99 = append(p99, map[bool]float64{true: 30, false: 0.018}[broken]*math.Exp(rng.NormFloat64()*0.1))
	}
	p99[200] = math.NaN()
	x := Axis{
		Label: "time since the load began", Time: true,
		Format: func(v float64) string { return fmt.Sprintf("%g:%02g", math.Floor(v/60), math.Mod(v, 60)) },
	}
	rates := Panel{
		Title: "The failing trial", Desc: "The accept queue is full from 120 s to 240 s.", X: x,
		Y: Axis{Label: "calls/s", Format: count, Min: new(0.0)}, Legend: true, Height: 200,
		Series: []Series{
			{Name: "offered", X: t, Y: offered, Step: true, Kind: Neutral},
			{Name: "ended well", X: t, Y: good, Step: true},
			{Name: "ended badly", X: t, Y: bad, Step: true, Kind: Bad},
		},
		Spans: []Span{
			{From: 0, To: 120, Label: "600/s"},
			{From: 120, To: 240, Label: "1200/s"},
			{From: 240, To: 360, Label: "back to 600/s"},
		},
		Rules: []Rule{
			{At: 121, Vertical: true, Label: "accept-queue: 1025 calls stuck", Kind: Bad},
			{At: 271, Vertical: true, Label: "recovered after 31 s", Kind: Good},
		},
	}
	outstanding := Panel{
		Y:      Axis{Label: "outstanding calls", Format: count, Min: new(0.0)},
		Series: []Series{{Name: "outstanding", X: t, Y: waiting, Step: true, Kind: Color(5)}},
		Rules:  []Rule{{At: 1024, Label: "backlog 1024"}},
	}
	response := Panel{
		Y: Axis{Label: "response (log)", Log: true, Format: seconds}, Legend: true,
		Series: []Series{{Name: "p50", X: t, Y: p50, Kind: Color(2)}, {Name: "p99", X: t, Y: p99, Kind: Color(1)}},
		Rules:  []Rule{{At: 0.5, Label: "budget 500 ms", Kind: Bad}},
	}
	return Stack{rates, outstanding, response}
}

func growth() Panel {
	law := Series{Name: "linear: 0.08 + 0.038·N ms", Line: true, Dash: true, Kind: Color(0)}
	seen := Series{Name: "measured", Dots: true, Kind: Color(0)}
	for n := 1.0; n <= 1001; n *= math.Sqrt(2) {
		y := (0.08 + 0.038*n) * 1e-3
		law.X, law.Y, law.Lo, law.Hi = append(law.X, n), append(law.Y, y), append(law.Lo, y*0.8), append(law.Hi, y*1.25)
	}
	for i, n := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		y := (0.08 + 0.038*n) * 1e-3 * (1 + 0.1*math.Sin(2.1*float64(i)))
		seen.X, seen.Y, seen.Lo, seen.Hi = append(seen.X, n), append(seen.Y, y), append(seen.Lo, y*0.85),
			append(seen.Hi, y*1.2)
	}
	return Panel{
		Title: "Growth", Desc: "Added p50 against the number of policies.", Legend: true,
		X:      Axis{Label: "policies N (log)", Log: true, Format: count},
		Y:      Axis{Label: "added p50 (log)", Log: true, Format: seconds},
		Series: []Series{law, seen},
		Rules: []Rule{
			{At: 0.010, Label: "budget 10 ms", Kind: Bad},
			{At: 261, Vertical: true, Label: "breaks the budget at N = 261", Kind: Bad},
		},
	}
}

func tails() Percentiles {
	c := Percentiles{
		Title: "Latency by percentile", Desc: "The tail is where it costs.",
		Y: Axis{Label: "response (log)", Format: seconds}, Legend: true,
	}
	for i, scale := range []float64{0.004, 0.009} {
		s := Series{Name: []string{"baseline", "webhook: kyverno"}[i], Line: true}
		for u := 0.0; u <= 4; u += 0.1 {
			y := scale * math.Exp(0.5*u) * (1 + 0.5*math.Exp(3*(u-3)))
			s.X, s.Y, s.Lo, s.Hi = append(s.X, 1-math.Pow(10, -u)), append(s.Y, y), append(s.Lo, y*0.9),
				append(s.Hi, y*(1+0.05*math.Exp(u*0.7)))
		}
		c.Series = append(c.Series, s)
	}
	c.Rules = []Rule{{At: 0.05, Label: "budget 50 ms", Kind: Bad}, {At: 0.99, Vertical: true, Label: "judged here"}}
	return c
}

func costs() Forest {
	ms := func(v float64) string { return fmt.Sprintf("%+.3g", v) }
	return Forest{
		Title: "Cost per control", Desc: "Added p99 with 95 % intervals.",
		Axis: Axis{Label: "added p99 against the baseline (ms), 95 % interval", Format: ms},
		Rows: []ForestRow{
			{Label: "VAP (CEL) ×50", Value: 0.34, Lo: 0.21, Hi: 0.48, Verdict: Good, Word: "pass"},
			{Label: "webhook: gatekeeper", Value: 3.4, Lo: 2.9, Hi: 3.9, Verdict: Good, Word: "pass"},
			{Label: "webhook: kyverno", Value: 7.9, Lo: 6.4, Hi: 9.7, Verdict: Bad, Word: "FAIL"},
			{
				Label: "image credential check, with a long name that has to be cut", Value: 0.04, Lo: -0.11, Hi: 0.19,
				Verdict: Good, Word: "pass",
			},
			{Label: "audit policy: full", Value: 2.1, Lo: 0.9, Hi: 5.6, Verdict: Unsure, Word: "inconclusive"},
			{
				Label: "broke in every block", Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), Verdict: Unsure,
				Word: "not-measured",
			},
		},
		Rules: []Rule{{At: 5, Label: "budget 5 ms", Kind: Bad}},
	}
}

// margins has a margin, values that the axis cuts, intervals without an end, and rows that are apart.
func margins() Forest {
	percent := func(v float64) string { return fmt.Sprintf("%+.3g %%", v*100) }
	return Forest{
		Title: "Cost of open", Desc: "CPU time added to open.", Axis: Axis{
			Label:  "CPU time against the baseline",
			Format: percent, Min: new(-0.05), Max: new(0.4),
		},
		Rows: []ForestRow{
			{Label: "landlock", Value: 0.26, Lo: 0.24, Hi: 0.29, Verdict: Bad, Word: "regressed", Text: "+26 % [+24, +29]"},
			{Label: "traced", Value: 9, Lo: 8.1, Hi: 9.7, Verdict: Bad, Word: "regressed"},
			{Label: "few blocks", Value: 0.1, Lo: math.Inf(-1), Hi: math.Inf(1), Verdict: Unsure, Word: "inconclusive"},
			{Label: "aa", Value: 0.001, Lo: -0.004, Hi: 0.006, Word: "baseline again", Apart: true},
			{Label: "negative", Value: 0.002, Lo: -0.003, Hi: 0.008, Apart: true},
		},
		Spans: []Span{{From: -0.02, To: 0.02, Label: "margin ±2 %"}},
		Rules: []Rule{{At: 0.05, Label: "budget +5 %", Kind: Bad}},
	}
}

func usage() Bars {
	mib := func(v float64) string { return fmt.Sprintf("%.4g MiB", v) }
	return Bars{
		Title: "Memory", Desc: "Peak resident memory of the target.", Axis: Axis{Label: "peak RSS", Format: mib},
		Rows: []Bar{
			{Label: "baseline", Value: 41.5, Kind: Neutral},
			{Label: "webhook: kyverno", Value: 212.25, Lo: 190, Hi: 240},
			{Label: "webhook: gatekeeper", Value: 160.5},
			{Label: "image credential check", Value: math.NaN(), Text: "not measured"},
		},
	}
}

func scores() Bars {
	return Bars{
		Title: "Signatures", Desc: "How well each class explains the failure.",
		Axis: Axis{
			Label: "score", Min: new(0.0), Max: new(1.0),
			Format: func(v float64) string { return fmt.Sprintf("%.2f", v) },
		},
		Rows: []Bar{
			{Label: "accept-queue", Value: 0.93},
			{Label: "quota-hang", Value: 0.31, Kind: Neutral},
			{Label: "queue-growth", Value: 0.05, Kind: Neutral},
		},
		Rules: []Rule{{At: 0.5, Label: "named from here"}},
	}
}

func blocks() Heat {
	rng := rand.New(rand.NewPCG(7, 7))
	h := Heat{
		Title: "Block by treatment", Desc: "Deviation of each block's median from its treatment's.",
		Rows:     []string{"baseline", "webhook: gatekeeper", "webhook: kyverno"},
		ColLabel: "block, in the order of the run", Diverging: true,
		Format: func(v float64) string { return fmt.Sprintf("%+.0f%%", v*100) },
	}
	for b := range 20 {
		h.Cols = append(h.Cols, fmt.Sprint(b+1))
	}
	for range h.Rows {
		var row []float64
		for b := range 20 {
			v := rng.NormFloat64() * 0.03
			if b == 7 {
				v += 0.22
			}
			row = append(row, v)
		}
		h.Values = append(h.Values, row)
	}
	h.Values[1][12] = math.NaN()
	return h
}

func TestGoldens(t *testing.T) {
	for name, c := range samples() {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(string(c.SVG("g-"+name)), "><", ">\n<")
			file := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs from %s (run with -update after looking at it): %s", file, diff)
			}
		})
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
