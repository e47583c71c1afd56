package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"tare/internal/design"
	"tare/internal/question"
)

// TestDocsLinks checks every relative link in the project's Markdown: its file exists, and so does the heading that it
// names.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range markdown(t) {
		for _, link := range linksOf(t, page) {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			checked++
			path, heading, named := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				if name := absentArea(t, target); name != "" {
					t.Logf("%s: the link %s is of the area %s, which is not in this tree", page, link, name)
					continue
				}
				t.Errorf("%s: the link %s leads nowhere: %v", page, link, err)
				continue
			}
			if named && !anchorsOf(t, target)[heading] {
				t.Errorf("%s: the link %s names a heading that %s does not have", page, link, target)
			}
		}
	}
	if checked == 0 {
		t.Error("no relative link was found in any page")
	}
}

// absentArea returns the area that path is of if README.md lists it and the tree has no folder of it: areas can be
// taken out of tare one by one.
func absentArea(t *testing.T, path string) string {
	t.Helper()
	rest, inArea := strings.CutPrefix(filepath.ToSlash(path), "../../areas/")
	name, _, _ := strings.Cut(rest, "/")
	_, err := os.Stat(filepath.Join("..", "..", "areas", name))
	if !inArea || err == nil || !strings.Contains(fileText(t, "..", "..", "README.md"), "\n| [`"+name+"`](areas/"+name+"/README.md) |") {
		return ""
	}
	return name
}

// markdown returns the paths of the project's pages.
func markdown(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "results" || e.Name() == "bin" || e.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	linkTarget = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headLine   = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	linkInHead = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

func linksOf(t *testing.T, page string) []string {
	t.Helper()
	src, links := fileText(t, page), []string{}
	prose := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(src, ""), "")
	for _, m := range linkTarget.FindAllStringSubmatch(prose, -1) {
		links = append(links, m[1])
	}
	return links
}

// anchorsOf returns the anchors that GitHub makes of a page's headings.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	anchors := map[string]bool{}
	for _, m := range headLine.FindAllStringSubmatch(codeBlock.ReplaceAllString(fileText(t, page), ""), -1) {
		anchors[anchor(linkInHead.ReplaceAllString(m[1], "$1"))] = true
	}
	return anchors
}

// TestDocsLinksOnAPage checks what counts as a link and as a heading.
func TestDocsLinksOnAPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	src := "# What it costs: `open`, and [more](a.md)\n[x](b.md#c) `[no](code)`\n```\n# no heading\n[no](code)\n```\n"
	if err := os.WriteFile(page, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := linksOf(t, page); !slices.Equal(got, []string{"a.md", "b.md#c"}) {
		t.Errorf("links: %q", got)
	}
	if got := anchorsOf(t, page); len(got) != 1 || !got["what-it-costs-open-and-more"] {
		t.Errorf("anchors: %v", got)
	}
}

// anchor is the heading in lower case with hyphens for spaces, without punctuation.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// TestDocsFigureIsOfTheReport checks that the picture in README is the capacity chart of the report page that the
// committed record of `make demo` gives. -update draws it anew.
func TestDocsFigureIsOfTheReport(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "docs")
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "demo"), os.DirFS(filepath.Join(docs, "demo"))); err != nil {
		t.Fatal(err)
	}
	if out, code := execTare(t, tareBinary(t), dir, "report", "demo", "-o", "html=page.html"); code != 0 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	got, path := standalone(t, fileText(t, dir, "page.html"), "chart-4"), filepath.Join(docs, "capacity.svg")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != fileText(t, path) {
		t.Errorf("%s is not the chart of docs/demo: run go test ./cmd/tare -run %s -update", path, t.Name())
	}
}

// standalone returns the page's first drawing with this id, on a white ground: in an image nothing says which colour is
// behind it.
func standalone(t *testing.T, page, id string) string {
	t.Helper()
	for {
		_, rest, found := strings.Cut(page, "<svg ")
		head, _, closed := strings.Cut(rest, ">")
		body, after, whole := strings.Cut(rest, "</svg>")
		if !found || !closed || !whole {
			t.Fatalf("the page has no drawing %s", id)
		}
		if strings.Contains(head, id+"-title ") {
			ground := `><rect width="100%" height="100%" fill="#fff"/>`
			return "<svg " + strings.Replace(body, ">", ground, 1) + "</svg>\n"
		}
		page = after
	}
}

// TestReadmeTable checks the table of README: it has a row for each area and a column for each question, a cell is "–"
// where the area does not answer the question, and tare then has a reason.
func TestReadmeTable(t *testing.T) {
	_, table, _ := strings.Cut(fileText(t, "..", "..", "README.md"), "\n| area | control under test | ")
	head, table, _ := strings.Cut(table, " |\n")
	var asked []design.Question
	for h := range strings.SplitSeq(head, " | ") {
		word, _, _ := strings.Cut(h, ":")
		asked = append(asked, design.Question(word))
	}
	rows := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| \\[`([a-z]+)`\\]\\(.*$").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = strings.Split(strings.TrimSuffix(m[0], " |"), " | ")
	}
	if n := len(question.All()); len(rows) < len(areas()) || len(asked) != n {
		t.Fatalf("%d rows for %d areas, %d columns for %d questions", len(rows), len(areas()), len(asked), n)
	}
	for _, ar := range areas() {
		row := rows[ar.Name()]
		if len(row) != len(asked)+2 {
			t.Errorf("%s has %d cells", ar.Name(), len(row))
			continue
		}
		for i, q := range asked {
			offer := question.Of(q).Needs(ar.Offers())
			if cell := row[i+2]; (cell == "–") == offer.Given || !offer.Given && offer.Reason == "" {
				t.Errorf("%s, %s: the cell is %q, and the area answers %v (%q)", ar.Name(), q, cell, offer.Given, offer.Reason)
			}
		}
	}
}

// TestSecurityNamesOldDependencies: the versions in SECURITY's table of old dependencies are those that are built.
func TestSecurityNamesOldDependencies(t *testing.T) {
	_, table, _ := strings.Cut(fileText(t, "..", "..", "SECURITY.md"), "\n| in | dependency | advisories | state |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := 0
	for _, row := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(row, " | ")
		in := strings.Trim(cells[0], "| `")
		file := "decision/engine/xacml/" + in + ".sha256"
		if in == "1.24" {
			file = "plane/_kubernetes/1.24/go.mod.txt"
		}
		built := fileText(t, "..", "..", "areas", file)
		for _, m := range regexp.MustCompile(`([\w./-]+) (\d+\.\d+\.\d+)`).FindAllStringSubmatch(cells[1], -1) {
			named++
			name, version := strings.ToLower(m[1]), regexp.MustCompile(`[v-]`+regexp.QuoteMeta(m[2])+`(\+|\.jar| |$)`)
			found := false
			for line := range strings.SplitSeq(built, "\n") {
				found = found || strings.Contains(strings.ToLower(line), name) && version.MatchString(line)
			}
			if !found {
				t.Errorf("%s has no %s %s", in, m[1], m[2])
			}
		}
	}
	if named < 15 {
		t.Errorf("only %d dependencies were looked up", named)
	}
}

// fileText returns the text of a file.
func fileText(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
