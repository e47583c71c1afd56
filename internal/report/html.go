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
	words := template.FuncMap{
		"heads": pageHeads, "rows": pageRows, "kind": pageTable, "notes": notes, "sentence": sentence,
	}
	return template.New("page.html").Funcs(words).ParseFS(files, "page/page.html")
})

// A pageLayout is the data of the page's template.
type pageLayout struct {
	Title, Name, About string
	Sections           []section
	CSS                template.CSS
	Script             template.JS
	JSON               template.JS
	Live               bool // the page has a chart that the script replaces
}

// HTML writes the page. It fails on a report that JSON cannot represent, and when w fails; then w may have received
// part of the page.
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

// layOut returns the document without the parts that the page omits, and the page's other data.
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
		if s.Blocks = withOneNotice(s.Blocks); len(s.Blocks) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
	return d, nil
}

// withOneNotice puts the notices that follow a section's lead into one box below it, and without a lead where the first
// of them was. That a run was interrupted stays above the lead.
func withOneNotice(blocks []block) []block {
	lead := slices.IndexFunc(blocks, func(b block) bool { return b.Lead != nil })
	out := slices.Clone(blocks[:lead+1])
	at := lead + 1
	var all []remark
	for i, b := range blocks[lead+1:] {
		switch {
		case b.Notice == nil:
			out = append(out, b)
		case len(all) == 0 && lead < 0:
			at = i
			fallthrough
		case !slices.Contains(all, *b.Notice):
			all = append(all, *b.Notice)
		}
	}
	for i := range out {
		if n := out[i].Notice; n != nil {
			out[i] = block{Notices: []remark{*n}}
		}
	}
	if len(all) == 0 {
		return out
	}
	return slices.Insert(out, at, block{Notices: all})
}

// about describes the run in one line.
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

// assets joins the stylesheets and, if a chart can be zoomed, the scripts. uPlot's licence accompanies its code.
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

// maxEmbedded limits the size of the report in a page, in bytes. A larger report omits the values block by block, and
// if that is not enough, the distributions and the courses of soaks. "-o json" has all of them.
const maxEmbedded = 384 << 10

// embedded returns the report as "-o json" writes it, without white space, and with every character escaped that could
// end a script element or that HTML would change: a parser gets the same values. It names the parts that it had to
// omit.
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

// withoutMoments returns soaks without their courses in time, which the page shows in a table.
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
