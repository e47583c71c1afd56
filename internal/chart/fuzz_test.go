package chart

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// extremes are the numbers that break arithmetic.
var extremes = []float64{
	math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e308, -1e308, 1e300, -1e300, 9.9e299, 5e-324, -5e-324,
	1e-300, 1, -1, 1 + 1e-16, 0.5, 0.99, 0.9999999999, 1e9, 1e9 + 1, 3.3e-7, 60, 3600, 86400,
}

// maker makes random charts of numbers and labels.
type maker struct {
	*rand.Rand
	label string
}

func (m maker) number() float64 {
	switch m.IntN(4) {
	case 0:
		return extremes[m.IntN(len(extremes))]
	case 1:
		return math.Float64frombits(m.Uint64())
	case 2:
		return math.Pow(10, m.Float64()*12-6)
	}
	return m.NormFloat64() * 100
}

func (m maker) numbers() []float64 {
	tame := m.IntN(2) == 0
	all := make([]float64, m.IntN(40))
	for i := range all {
		if all[i] = m.number(); tame {
			all[i] = float64(i) + m.Float64()
		}
	}
	return all
}

func (m maker) text() string {
	switch m.IntN(4) {
	case 0:
		return ""
	case 1:
		return m.label
	case 2:
		return m.label + "\x00<&\"'>]]>\xff\n\t" + m.label
	}
	return fmt.Sprintf("label %d", m.IntN(1000))
}

func (m maker) end() *float64 {
	if m.IntN(3) > 0 {
		return nil
	}
	return new(m.number())
}

func (m maker) axis() Axis {
	a := Axis{Label: m.text(), Log: m.IntN(2) == 0, Time: m.IntN(3) == 0, Min: m.end(), Max: m.end()}
	if m.IntN(2) == 0 {
		a.Format = func(v float64) string { return m.label + fmt.Sprint(v) }
	}
	if m.IntN(4) == 0 {
		a.Ticks = m.numbers()
	}
	return a
}

func (m maker) kind() Kind { return Kind(m.IntN(16) - 1) }

func (m maker) rules() []Rule {
	all := make([]Rule, m.IntN(8))
	for i := range all {
		all[i] = Rule{m.number(), m.IntN(2) == 0, m.text(), m.kind()}
	}
	return all
}

func (m maker) series() []Series {
	all := make([]Series, m.IntN(5))
	for i := range all {
		all[i] = Series{
			Name: m.text(), Kind: m.kind(), X: m.numbers(), Y: m.numbers(), Lo: m.numbers(), Hi: m.numbers(),
			Line: m.IntN(2) == 0, Dots: m.IntN(2) == 0, Dash: m.IntN(2) == 0, Step: m.IntN(2) == 0,
		}
	}
	return all
}

func (m maker) panel() Panel {
	p := Panel{
		Title: m.text(), Desc: m.text(), X: m.axis(), Y: m.axis(), Series: m.series(), Rules: m.rules(), Diagonal: m.text(),
		Height: m.IntN(400) - 50, Legend: m.IntN(2) == 0, Empty: m.text(),
	}
	p.Spans = m.spans()
	return p
}

func (m maker) spans() []Span {
	all := make([]Span, m.IntN(12))
	for i := range all {
		all[i] = Span{m.number(), m.number(), m.text(), m.kind()}
	}
	return all
}

func (m maker) rows() (bars []Bar, forest []ForestRow) {
	for range m.IntN(8) {
		bars = append(bars, Bar{m.text(), m.number(), m.number(), m.number(), m.text(), m.kind()})
		forest = append(forest, ForestRow{
			m.text(), m.number(), m.number(), m.number(), m.kind(), m.text(), m.text(), m.text(),
			m.IntN(3) == 0,
		})
	}
	return bars, forest
}

func (m maker) heat() Heat {
	h := Heat{
		Title: m.text(), ColLabel: m.text(), Diverging: m.IntN(2) == 0, Empty: m.text(), Format: m.axis().Format,
		Limit: m.number(),
	}
	for range m.IntN(6) {
		h.Rows, h.Values = append(h.Rows, m.text()), append(h.Values, m.numbers())
	}
	for range m.IntN(60) {
		h.Cols = append(h.Cols, m.text())
	}
	return h
}

func (m maker) chart(kind int) drawable {
	bars, forest := m.rows()
	switch kind % 6 {
	case 0:
		return m.panel()
	case 1:
		return pile{m.panel(), m.panel(), m.panel()}
	case 2:
		return Percentiles{Title: m.text(), Y: m.axis(), Series: m.series(), Rules: m.rules(), Legend: true, Empty: m.text()}
	case 3:
		return Bars{Title: m.text(), Axis: m.axis(), Rows: bars, Rules: m.rules(), Dots: m.IntN(2) == 0, Empty: m.text()}
	case 4:
		return Forest{Title: m.text(), Axis: m.axis(), Rows: forest, Rules: m.rules(), Spans: m.spans(), Empty: m.text()}
	}
	return m.heat()
}

func sound(t *testing.T, kind int, seed uint64, label string) {
	t.Helper()
	draw := func() []byte {
		return maker{rand.New(rand.NewPCG(seed, 1)), label}.chart(kind).SVG(label)
	}
	svg := draw()
	check(t, svg)
	if !bytes.Equal(svg, draw()) {
		t.Error("two drawings of one chart differ")
	}
}

func TestRandomCharts(t *testing.T) {
	for seed := range uint64(600) {
		label := []string{
			"x", "p99 of a call", "<b>&\"", "日本語のラベル",
			"WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
		}[seed%5]
		if sound(t, int(seed%6), seed, label); t.Failed() {
			t.Fatalf("kind %d seed %d label %q", seed%6, seed, label)
		}
	}
}

func FuzzCharts(f *testing.F) {
	for kind := range 6 {
		f.Add(kind, uint64(kind), "label")
		f.Add(kind, uint64(kind)+100, "<script>alert(1)</script>")
		f.Add(kind, uint64(kind)+200, "\xff\x00 ]]> 日本 \u202e")
	}
	f.Fuzz(func(t *testing.T, kind int, seed uint64, label string) {
		if kind < 0 {
			kind = -(kind + 1)
		}
		sound(t, kind, seed, label)
	})
}
