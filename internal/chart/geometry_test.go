package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// box is a rectangle on the page.
type box struct {
	x1, y1, x2, y2 float64
	what           string
}

func (b box) holds(o box, slack float64) bool {
	return o.x1 >= b.x1-slack && o.x2 <= b.x2+slack && o.y1 >= b.y1-slack && o.y2 <= b.y2+slack
}

func (b box) overlaps(o box) bool {
	const hair = 0.15 // coordinates have one decimal
	return b.x1 < o.x2-hair && o.x1 < b.x2-hair && b.y1 < o.y2-hair && o.y1 < b.y2-hair
}

// picture is an <svg> read back.
type picture struct {
	page                 box
	font                 float64
	frames, texts, marks []box // the plots, the texts, and what lies in plots
	title, desc          string
	labelled             string
	ids                  []string
	class, display       string
	problems             []string
}

var numbers = regexp.MustCompile(`-?[0-9.]+(?:e[-+]?\d+)?`)

// allowed are the only elements and attributes that a chart needs; a strict policy forbids style and scripts.
var (
	allowedElements   = words("svg title desc g line path rect circle text")
	allowedAttributes = words(`xmlns class display viewBox width height preserveAspectRatio role aria-labelledby font-family
		font-size font-weight fill fill-opacity stroke stroke-opacity stroke-width stroke-linejoin stroke-dasharray color id
		x y x1 y1 x2 y2 cx cy r d text-anchor`)
)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// node is an element with its ancestors' classes.
type node struct {
	name  string
	attrs map[string]string
	path  string
	text  *strings.Builder
}

func (n node) num(key string) float64 {
	v, err := strconv.ParseFloat(n.attrs[key], 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// read parses a fragment into its pictures.
func read(svg []byte) ([]*picture, error) {
	d := xml.NewDecoder(strings.NewReader("<page>" + string(svg) + "</page>"))
	var pictures []*picture
	var stack []node
	for {
		token, err := d.Token()
		if token == nil {
			if len(stack) != 0 || err.Error() != "EOF" {
				return nil, err
			}
			return pictures, nil
		}
		switch e := token.(type) {
		case xml.StartElement:
			n := node{name: e.Name.Local, attrs: map[string]string{}, text: &strings.Builder{}}
			for _, a := range e.Attr {
				n.attrs[a.Name.Local] = a.Value
			}
			if len(stack) > 0 {
				n.path = stack[len(stack)-1].path
			}
			n.path += "/" + n.attrs["class"]
			stack = append(stack, n)
			if n.name == "svg" {
				pictures = append(pictures, newPicture(n))
			}
		case xml.CharData:
			stack[len(stack)-1].text.Write(e)
		case xml.EndElement:
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(stack) > 1 {
				pictures[len(pictures)-1].add(n, stack[len(stack)-1].name)
			}
		}
	}
}

func newPicture(n node) *picture {
	p := &picture{
		labelled: n.attrs["aria-labelledby"], class: n.attrs["class"], display: n.attrs["display"],
		font: n.num("font-size"),
	}
	view := strings.Fields(n.attrs["viewBox"])
	w, _ := strconv.ParseFloat(view[2], 64)
	h, _ := strconv.ParseFloat(view[3], 64)
	p.page = box{0, 0, w, h, "page"}
	if n.attrs["role"] != "img" || n.attrs["width"] != "100%" || !(h > 0) {
		p.problems = append(p.problems, fmt.Sprintf("svg has %v", n.attrs))
	}
	return p
}

// add notes an element's geometry.
func (p *picture) add(n node, parent string) {
	if !allowedElements[n.name] {
		p.problems = append(p.problems, "element "+n.name)
	}
	for key, value := range n.attrs {
		if !allowedAttributes[key] {
			p.problems = append(p.problems, "attribute "+key)
		}
		if strings.Contains(value, "NaN") || strings.Contains(value, "Inf") {
			p.problems = append(p.problems, key+" = "+value)
		}
	}
	p.place(n, parent)
}

// place notes where an element lies.
func (p *picture) place(n node, parent string) {
	key := strings.Contains(n.path, "/key") || strings.Contains(n.path, "/flag")
	switch n.name {
	case "title", "desc":
		if parent == "svg" {
			p.ids = append(p.ids, n.attrs["id"])
			if n.name == "title" {
				p.title = n.text.String()
			} else {
				p.desc = n.text.String()
			}
		}
	case "text":
		p.texts = append(p.texts, p.textBox(n))
	case "line":
		b := box{
			min(n.num("x1"), n.num("x2")), min(n.num("y1"), n.num("y2")), max(n.num("x1"), n.num("x2")),
			max(n.num("y1"), n.num("y2")), n.path,
		}
		if strings.HasSuffix(n.path, "/axis/") {
			p.axis(b)
		} else if !key {
			p.marks = append(p.marks, b)
		}
	case "circle":
		if !key {
			p.marks = append(p.marks, box{n.num("cx"), n.num("cy"), n.num("cx"), n.num("cy"), n.path})
		}
	case "rect":
		p.marks = append(p.marks, box{n.num("x"), n.num("y"), n.num("x") + n.num("width"), n.num("y") +
			n.num("height"), n.path})
	case "path":
		if !key {
			p.marks = append(p.marks, pathBox(n))
		}
	}
}

// axis collects the two lines of a plot's axes into its frame.
func (p *picture) axis(b box) {
	if b.y1 == b.y2 {
		p.frames = append(p.frames, b)
		return
	}
	p.frames[len(p.frames)-1].y1 = b.y1
}

func pathBox(n node) box {
	b := box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1), n.path}
	for i, s := range numbers.FindAllString(n.attrs["d"], -1) {
		v, _ := strconv.ParseFloat(s, 64)
		if i%2 == 0 {
			b.x1, b.x2 = min(b.x1, v), max(b.x2, v)
		} else {
			b.y1, b.y2 = min(b.y1, v), max(b.y2, v)
		}
	}
	if strings.HasSuffix(n.path, "/dot") {
		x, y := (b.x1+b.x2)/2, (b.y1+b.y2)/2
		b = box{x, y, x, y, n.path}
	}
	return b
}

// textBox is where a text is expected to be drawn.
func (p *picture) textBox(n node) box {
	s := strings.Clone(n.text.String())
	w, x, y := textWidth(s, p.font), n.num("x"), n.num("y")
	switch n.attrs["text-anchor"] {
	case "middle":
		x -= w / 2
	case "end":
		x -= w
	}
	return box{x, y - 0.75*p.font, x + w, y + 0.2*p.font, s}
}

// check reports what is wrong with a chart: XML, ids, texts that touch or leave the page, marks outside their plot.
func check(t *testing.T, svg []byte) []*picture {
	t.Helper()
	pictures, err := read(svg)
	if err != nil {
		t.Fatalf("not well-formed: %v\n%s", err, svg)
	}
	if len(pictures) != 2 {
		t.Fatalf("%d pictures, want a wide and a narrow one", len(pictures))
	}
	seen := map[string]bool{}
	for _, p := range pictures {
		for _, problem := range p.problems {
			t.Errorf("%s: %s", p.class, problem)
		}
		if p.labelled != strings.Join(p.ids, " ") || len(p.ids) != 2 {
			t.Errorf("aria-labelledby %q, but title and desc are %q", p.labelled, p.ids)
		}
		for _, id := range p.ids {
			if seen[id] {
				t.Errorf("id %q twice", id)
			}
			seen[id] = true
		}
		checkTexts(t, p)
		checkMarks(t, p)
	}
	if pictures[0].display != "" || pictures[1].display != "none" {
		t.Errorf("display is %q and %q: without a stylesheet the wide one must show alone", pictures[0].display,
			pictures[1].display)
	}
	return pictures
}

func checkTexts(t *testing.T, p *picture) {
	t.Helper()
	for i, a := range p.texts {
		if !p.page.holds(a, 1) {
			t.Errorf("%s: text %q leaves the page: %v", p.class, a.what, a)
		}
		for _, b := range p.texts[:i] {
			if a.overlaps(b) {
				t.Errorf("%s: texts %q and %q overlap: %v %v", p.class, a.what, b.what, a, b)
			}
		}
	}
}

func checkMarks(t *testing.T, p *picture) {
	t.Helper()
	for _, m := range p.marks {
		if !p.page.holds(m, 0.1) {
			t.Errorf("%s: %s leaves the page: %v", p.class, m.what, m)
		}
		inside := len(p.frames) == 0
		for _, f := range p.frames {
			inside = inside || f.holds(m, 0.11)
		}
		if !inside && !strings.HasSuffix(m.what, "/frame") {
			t.Errorf("%s: %s lies in no plot: %v of %v", p.class, m.what, m, p.frames)
		}
	}
}

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
		return Stack{m.panel(), m.panel(), m.panel()}
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
	if seed%7 == 0 && !bytes.Equal(svg, draw()) {
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
