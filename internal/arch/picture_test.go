package arch

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the picture of the packages")

// A box is a group of packages in the picture, in layers.go's names. Its place is in units of the picture.
type box struct {
	title, packages     string
	left, right         int
	top, bottom         int
	isContract, isAreas bool
}

// boxes are the groups. Every package is in one, and a group imports only groups that are lower.
var boxes = []*box{
	{title: "cmd/tare: the list of areas", packages: "cmd/tare", left: 20, right: 940, top: 16, bottom: 50},
	{title: "areas/NAME", packages: "areas", left: 20, right: 230, top: 96, bottom: 322, isAreas: true},
	{title: "commands", packages: "tare cli", left: 270, right: 940, top: 96, bottom: 142},
	{title: "record → report", packages: "analyze", left: 270, right: 640, top: 186, bottom: 232},
	{title: "file → experiment", packages: "config", left: 270, right: 420, top: 276, bottom: 322},
	{title: "report → output", packages: "report", left: 436, right: 586, top: 276, bottom: 322},
	{title: "experiment → record", packages: "run run/drive", left: 636, right: 800, top: 276, bottom: 322},
	{title: "other inputs", packages: "importer doctor", left: 814, right: 940, top: 276, bottom: 322},
	{
		title: "helpers of areas", packages: "driver kit kit/oneshot kit/remote build",
		left: 84, right: 270, top: 382, bottom: 466,
	},
	{
		title: "questions and what answers them", packages: "question budget capacity guard limit signature",
		left: 290, right: 580, top: 382, bottom: 466,
	},
	{title: "what happened", packages: "record", left: 608, right: 940, top: 382, bottom: 466},
	{
		title: "plan, calls, processes, readings, words", packages: "design load proc probe metric glossary",
		left: 84, right: 940, top: 510, bottom: 556,
	},
	{title: "the contract", packages: "area", left: 20, right: 940, top: 600, bottom: 646, isContract: true},
	{
		title:    "basics",
		packages: "clock stat hist unit chart term spelling shell jsonscan ratelimit secretfile mask files",
		left:     20, right: 940, top: 690, bottom: 736,
	},
}

const (
	pictureFile   = "../../docs/explanation/how-tare-is-built.svg"
	pictureWidth  = 960
	pictureHeight = 752
)

// TestPicture draws the packages and compares the drawing with that of docs/explanation. -update draws it anew.
func TestPicture(t *testing.T) {
	imports := importsOfBoxes(t)
	for from, tos := range imports {
		for to := range tos {
			if from.bottom > to.top {
				t.Errorf("%q imports %q, which is not lower in the picture", from.title, to.title)
			}
		}
	}
	program, areas, helpers, contract := boxOf("cmd/tare"), boxOf("areas"), boxOf("kit"), boxOf("area")
	// Each area takes what it needs of what is lower. These arrows are the same whichever areas the tree has.
	if t.Failed() {
		return // with circles
	}
	imports[program][areas] = true
	imports[areas] = map[*box]bool{helpers: true, contract: true}
	got := draw(arrows(imports))
	if *update {
		if err := os.WriteFile(pictureFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(got) != read(t, pictureFile) {
		t.Errorf("%s is not what the imports are: run go test ./internal/arch -run %s -update", pictureFile, t.Name())
	}
}

// boxOf returns the box of a package.
func boxOf(pkg string) *box {
	if familyOf(pkg) != "" {
		pkg = "areas"
	}
	for _, b := range boxes {
		if slices.Contains(strings.Fields(b.packages), pkg) {
			return b
		}
	}
	return nil
}

// importsOfBoxes reads the imports of the product's files, without tests. It fails for a package that is in no box, and
// forgets those that a box has and that do not exist.
func importsOfBoxes(t *testing.T) map[*box]map[*box]bool {
	t.Helper()
	out, exist := map[*box]map[*box]bool{}, map[string]bool{"areas": true}
	for _, root := range []string{"area", "areas", "internal", "cmd/tare", "tare.go"} {
		if _, err := os.Stat("../../" + root); err != nil {
			continue // a tree without areas
		}
		eachFile(t, "../../"+root, func(file string, imports []string) {
			pkg := nameOf(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file))[len("../.."):], "/"))
			if pkg == "" {
				pkg = "tare"
			}
			from := boxOf(pkg)
			if strings.HasSuffix(file, "_test.go") || pkg == "arch" {
				return
			}
			if from == nil {
				t.Errorf("%s is in no box of the picture: add it", pkg)
				return
			}
			exist[pkg] = true
			for _, imp := range imports {
				name, isOurs := strings.CutPrefix(imp, module)
				if to := boxOf(nameOf(name)); (isOurs || imp == "tare") && to != nil && to != from {
					if out[from] == nil {
						out[from] = map[*box]bool{}
					}
					out[from][to] = true
				}
			}
		})
	}
	for _, b := range boxes {
		there := slices.DeleteFunc(strings.Fields(b.packages), func(p string) bool { return !exist[p] })
		b.packages = strings.Join(there, " ")
	}
	return out
}

// arrows returns the imports that do not follow from others, and that of the contract by areas.
func arrows(imports map[*box]map[*box]bool) (out [][2]*box) {
	var reaches func(from, to *box) bool
	reaches = func(from, to *box) bool {
		return imports[from][to] || slices.ContainsFunc(slices.Collect(maps.Keys(imports[from])), func(via *box) bool {
			return reaches(via, to)
		})
	}
	for _, from := range boxes {
		for _, to := range boxes {
			follows := slices.ContainsFunc(boxes, func(via *box) bool { return imports[from][via] && reaches(via, to) })
			if imports[from][to] && (!follows || from.isAreas && to.isContract) {
				out = append(out, [2]*box{from, to})
			}
		}
	}
	return out
}

// draw draws boxes and arrows as SVG, on a white ground: a page does not say which colour is behind a picture.
func draw(arrows [][2]*box) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">`,
		pictureWidth, pictureHeight)
	p(`<title>The packages of tare in layers; an arrow is an import</title>`)
	p(`<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">` +
		`<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>`)
	p(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	for _, a := range arrows {
		x1, x2 := ends(a[0], a[1])
		p(`<path d="M%d %dL%d %d" stroke="#555" fill="none" marker-end="url(#head)"/>`, x1, a[0].bottom, x2, a[1].top)
	}
	for _, x := range boxes {
		fill, stroke := "#f4f5f7", "#8a8f98"
		switch {
		case x.isContract:
			fill, stroke = "#fff1d6", "#b7791f"
		case x.isAreas:
			fill, stroke = "#e3f1e6", "#3f8f57"
		}
		p(`<rect x="%d" y="%d" width="%d" height="%d" rx="5" fill="%s" stroke="%s"/>`,
			x.left, x.top, x.right-x.left, x.bottom-x.top, fill, stroke)
		lines := append([]string{x.title}, wrapped(x.packages, (x.right-x.left-12)/7)...)
		if x.title == x.packages || x.isAreas || strings.HasPrefix(x.title, x.packages+":") {
			lines = lines[:1]
		}
		if x.isAreas {
			lines = append(lines, "code, servers, commands,", "templates, examples, pages")
		}
		y := (x.top+x.bottom)/2 - 9*len(lines) + 14
		for i, line := range lines {
			style := `font-size="12" font-family="ui-monospace, monospace" fill="#333"`
			if i == 0 {
				style = `font-weight="600" fill="#111"`
			}
			p(`<text x="%d" y="%d" text-anchor="middle" %s>%s</text>`, (x.left+x.right)/2, y+18*i, style,
				html.EscapeString(line))
		}
	}
	p(`</svg>`)
	return b.Bytes()
}

// ends returns where an arrow begins and ends: straight down, in the middle of the widest part that both boxes share
// and that no box between them covers; else from edge to edge.
func ends(from, to *box) (x1, x2 int) {
	left, right := max(from.left, to.left), min(from.right, to.right)
	best, width := 0, 0
	for at := left; at < right; {
		end, covered := right, false
		for _, b := range boxes {
			if b.top < from.bottom || b.bottom > to.top || b.right <= at || b.left >= end {
				continue
			}
			if b.left <= at {
				at, covered = b.right, true
				break
			}
			end = b.left
		}
		if covered {
			continue
		}
		if end-at > width {
			best, width = (at+end)/2, end-at
		}
		at = end
	}
	switch {
	case width > 0:
		return best, best
	case from.left >= to.right:
		return from.left + 14, to.right - 14
	}
	return from.right - 14, to.left + 14
}

// wrapped breaks words into lines of at most so many characters.
func wrapped(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
