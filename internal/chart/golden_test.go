package chart

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// drawable is any of the charts.
type drawable interface{ SVG(id string) []byte }

// pile is a stack, as one chart.
type pile []Panel

func (p pile) SVG(id string) []byte { return Stack(id, p...) }

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

func breaking() pile {
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
	return pile{top, below}
}

func failing() pile {
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
	return pile{rates, outstanding, response}
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
