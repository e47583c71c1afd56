package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"tare/internal/chart"
	terminal "tare/internal/term"
)

//go:embed page/page.html page/page.css page/zoom.js page/uplot/uPlot.iife.min.js page/uplot/uPlot.min.css page/uplot/LICENSE
var files embed.FS

var layout = sync.OnceValues(func() (*template.Template, error) {
	notes := func(g *grid) []string {
		shown, _ := g.shown(onPage)
		return shown.notes()
	}
	words := template.FuncMap{"heads": pageHeads, "rows": pageRows, "notes": notes, "sentence": sentence}
	return template.New("page.html").Funcs(words).ParseFS(files, "page/page.html")
})

// A pageLayout is all that the layout shows.
type pageLayout struct {
	Title, Name, About string
	Sections           []section
	CSS                template.CSS
	Script             template.JS
	JSON               template.JS
	Live               bool // there is a chart for the script to replace
}

// HTML writes the page. It fails on a report that JSON cannot hold, and when w fails; then part of the page may have been written.
func HTML(w io.Writer, r *Report) error {
	t, err := layout()
	if err != nil {
		return fmt.Errorf("read the page's layout: %w", err)
	}
	d, err := layOut(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	_, err = io.WriteString(w, terminal.XML(terminal.Visible(b.String())))
	return err
}

// layOut is the document without what the page does not show, and what the page needs beside it.
func layOut(r *Report) (*pageLayout, error) {
	data, without, err := embedded(r)
	if err != nil {
		return nil, err
	}
	css, script, err := assets(len(r.Timeline) > 0)
	if err != nil {
		return nil, err
	}
	d := &pageLayout{
		Title: r.Experiment.Name + ": " + string(r.Verdict) + " – tare report", Name: r.Experiment.Name, About: about(r),
		CSS: css, Script: script, JSON: data, Live: len(r.Timeline) > 0,
	}
	for _, s := range compose(r, without) {
		s.Blocks = slices.DeleteFunc(s.Blocks, func(b block) bool { return !b.in(onPage) || b.empty() })
		if len(s.Blocks) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
	return d, nil
}

// about is the run in one line.
func about(r *Report) string {
	parts := []string{"tare"}
	for _, s := range []string{string(r.Question), r.Area} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if !r.Started.IsZero() {
		parts = append(parts, r.Started.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return strings.Join(parts, " · ")
}

// assets joins the stylesheets and, where there is something to zoom, the scripts. uPlot's licence goes wherever its code goes.
func assets(zoom bool) (template.CSS, template.JS, error) {
	css, err := joined("page.css")
	if err != nil {
		return "", "", err
	}
	css += chart.Style
	if !zoom {
		return template.CSS(css), "", nil
	}
	plot, err := joined("uplot/uPlot.min.css")
	if err != nil {
		return "", "", err
	}
	licence, err := joined("uplot/LICENSE")
	if err != nil {
		return "", "", err
	}
	script, err := joined("uplot/uPlot.iife.min.js", "zoom.js")
	if err != nil {
		return "", "", err
	}
	return template.CSS(plot + css), template.JS("/*!\nuPlot\n" + licence + "*/\n" + script), nil
}

func joined(names ...string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		text, err := files.ReadFile("page/" + name)
		if err != nil {
			return "", fmt.Errorf("read the page's %s: %w", name, err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// maxEmbedded is how large the report in a page may be, in bytes; of a larger one the values block by block are left out, and the
// distributions and the courses of soaks if that is not enough. "-o json" has them all.
const maxEmbedded = 384 << 10

// embedded is the report as "-o json" writes it, without its white space and with everything escaped that could end a script element or
// that HTML would change: what parses it gets the same values. What had to be left out is named.
func embedded(r *Report) (data template.JS, without []string, err error) {
	data, err = encoded(r)
	if err != nil || len(data) <= maxEmbedded {
		return data, nil, err
	}
	shorter := *r
	if len(r.Blocks) > 0 {
		shorter.Blocks, without = nil, append(without, "blocks")
		if data, err = encoded(&shorter); err != nil || len(data) <= maxEmbedded {
			return data, without, err
		}
	}
	if len(r.Percentiles) > 0 {
		shorter.Percentiles, without = nil, append(without, "percentiles")
		if data, err = encoded(&shorter); err != nil || len(data) <= maxEmbedded {
			return data, without, err
		}
	}
	if len(r.Soak) > 0 {
		shorter.Soak, without = withoutMoments(r.Soak), append(without, "moments")
		data, err = encoded(&shorter)
	}
	return data, without, err
}

// withoutMoments is soaks without their courses in time, which the page has in a table.
func withoutMoments(soaks []Soak) []Soak {
	out := slices.Clone(soaks)
	for i := range out {
		out[i].Moments = nil
	}
	return out
}

func encoded(r *Report) (template.JS, error) {
	var whole, compact, escaped bytes.Buffer
	if err := JSON(&whole, r); err != nil {
		return "", err
	}
	if err := json.Compact(&compact, whole.Bytes()); err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return template.JS(escaped.String()), nil
}
