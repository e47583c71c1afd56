package chart

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// The two layouts. A phone shows the narrow one at 343 of 360 units, so that its text stays above 11 px; the wide one
// would shrink to half there.
const (
	wideWidth, wideFont     = 760, 13
	narrowWidth, narrowFont = 360, 12
	// Forest plots have two columns of text beside the plot, and need the room.
	forestWidth = 920
)

// frame is what a chart is laid out in.
type frame struct {
	width, font float64
	narrow      bool
}

// drawing is a finished chart, before its <svg> element.
type drawing struct {
	title, desc string
	height      float64
	body        canvas
}

// fragment draws a chart in both layouts.
func fragment(id string, draw func(frame) drawing) []byte { return fragmentOf(id, wideWidth, draw) }

// fragmentOf draws a chart whose wide layout has a width of its own.
func fragmentOf(id string, wide float64, draw func(frame) drawing) []byte {
	var out bytes.Buffer
	id = name(id)
	for _, f := range []frame{{width: wide, font: wideFont}, {width: narrowWidth, font: narrowFont, narrow: true}} {
		d := draw(f)
		d.write(&out, id, f)
	}
	return out.Bytes()
}

// write closes the drawing into an <svg>. The height attribute caps the size without a stylesheet: the picture keeps
// its shape inside the box, and would otherwise fill a large window with large letters.
func (d drawing) write(out *bytes.Buffer, id string, f frame) {
	class, display := "chart chart-wide", ""
	if f.narrow {
		id, class, display = id+"-narrow", "chart chart-narrow", "none"
	}
	title, desc := id+"-title", id+"-desc"
	var c canvas
	c.open("svg", "xmlns", "http://www.w3.org/2000/svg", "class", class, "display", display,
		"viewBox", "0 0 "+coord(f.width)+" "+coord(d.height), "width", "100%", "height", d.height,
		"preserveAspectRatio", "xMinYMin meet", "role", "img", "aria-labelledby", title+" "+desc,
		"font-family", "system-ui, sans-serif", "font-size", f.font, "fill", "currentColor")
	c.leaf("title", d.title, "id", title)
	c.leaf("desc", d.desc, "id", desc)
	c.Write(d.body.Bytes())
	c.close("svg")
	c.WriteByte('\n')
	out.Write(c.Bytes())
}

// canvas writes elements. Attributes come in pairs of a name and a string or a number; those that are "" are left out.
type canvas struct{ bytes.Buffer }

func (c *canvas) open(element string, attrs ...any) {
	c.tag(element, attrs)
	c.WriteByte('>')
}

func (c *canvas) close(element string) { c.WriteString("</" + element + ">") }

func (c *canvas) empty(element string, attrs ...any) {
	c.tag(element, attrs)
	c.WriteString("/>")
}

// leaf writes an element that holds text alone.
func (c *canvas) leaf(element, text string, attrs ...any) {
	c.open(element, attrs...)
	c.text(oneLine(text))
	c.close(element)
}

func (c *canvas) tag(element string, attrs []any) {
	c.WriteString("<" + element)
	for i := 0; i+1 < len(attrs); i += 2 {
		key, _ := attrs[i].(string)
		var value string
		switch v := attrs[i+1].(type) {
		case string:
			value = v
		case float64:
			value = coord(v)
		case int:
			value = coord(float64(v))
		}
		if value != "" {
			c.WriteString(" " + key + `="`)
			c.text(value)
			c.WriteByte('"')
		}
	}
}

// text writes s so that nothing in it is markup. Characters that XML cannot hold become U+FFFD.
func (c *canvas) text(s string) { _ = xml.EscapeText(c, []byte(s)) } // a canvas takes every write

// line returns a straight stroke in the current colour.
func (c *canvas) line(class string, x1, y1, x2, y2 float64, attrs ...any) {
	all := append([]any{"class", class, "x1", x1, "y1", y1, "x2", x2, "y2", y2, "stroke", "currentColor"}, attrs...)
	c.empty("line", all...)
}

// label returns text that is cut to a width and then has the whole of it in its title.
func (c *canvas) label(class, anchor string, x, y, room, size float64, s string, attrs ...any) {
	s = oneLine(s)
	if anchor == "start" {
		anchor = ""
	}
	all := append([]any{"class", class, "x", x, "y", y, "text-anchor", anchor}, attrs...)
	shown := cut(s, room, size)
	if shown == s {
		c.leaf("text", s, all...)
		return
	}
	c.open("text", all...)
	c.leaf("title", s)
	c.text(shown)
	c.close("text")
}

// group opens a <g> that sets the current colour of a kind; its class is what a page overrides.
func (c *canvas) group(class string, k Kind) {
	c.open("g", "class", strings.TrimSpace(class+" "+k.look().class), "color", k.look().color)
}
