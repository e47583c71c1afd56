package main

import (
	"encoding/json"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/report"
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

// TestWorkflowsHaveTheMainBranch: a workflow that compares with the main branch fetches it, which a checkout does only
// if it is told to.
func TestWorkflowsHaveTheMainBranch(t *testing.T) {
	compared := 0
	for _, page := range markdown(t) {
		for _, block := range codeBlock.FindAllString(fileText(t, page), -1) {
			if !strings.Contains(block, "git worktree add ../main origin/main") {
				continue
			}
			if compared++; !strings.Contains(block, "fetch-depth: 0") {
				t.Errorf("%s: a workflow without fetch-depth: 0 has no origin/main:\n%s", page, block)
			}
		}
	}
	if compared == 0 {
		t.Error("no workflow compares with the main branch")
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

// A galleryEntry is what the index of docs/gallery says about one page.
type galleryEntry struct{ name, quote, command string }

var (
	galleryText = regexp.MustCompile(`(?m)^## \[(.+)\]\((.+)\.html\)\n(?:.+\n)+\n((?:> .+\n)+)\n    (tare run .+)\n`)
	galleryFile = regexp.MustCompile(`^tare run areas/[a-z]+/examples/([^ ]+)\.yaml( |$)`)
	pageData    = regexp.MustCompile(`(?s)<script type="application/json" id="report">(.*?)</script>`)
	pageLead    = regexp.MustCompile(`(?s)<p class="lead[^"]*">(.*?)</p>`)
	pageTag     = regexp.MustCompile(`<[^>]*>`)
	// Where a user or a workplace keeps files.
	localPath = regexp.MustCompile(`/(?:home|root|Users|work|workspace|builds?|mnt|srv|opt|tmp|var/tmp)/[^\s"'<&]*`)
)

// galleryWeight bounds the pages together, in bytes: half of it are drawings, which a page holds for wide and for
// narrow screens.
const galleryWeight = 4 << 20

// TestGallery checks that each page of docs/gallery is in the index, is that of the experiment that the index names,
// has the verdict that the index quotes, and says nothing about where it was made. -update quotes the pages anew.
func TestGallery(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "docs", "gallery")
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, weight := []string{}, 0
	for _, e := range galleryEntries(t, string(index)) {
		page, err := os.ReadFile(filepath.Join(dir, e.name+".html"))
		if err != nil {
			t.Errorf("the index names a page that is missing: %v; run make gallery", err)
			continue
		}
		files, weight = append(files, filepath.Join(dir, e.name+".html")), weight+len(page)
		checkOrigin(t, e, string(page))
		lead := pageLead.FindStringSubmatch(string(page))
		if lead == nil {
			t.Fatalf("%s.html has no verdict", e.name)
		}
		verdict := strings.Join(strings.Fields(html.UnescapeString(pageTag.ReplaceAllString(lead[1], ""))), " ")
		want := "> " + strings.ReplaceAll(strings.TrimSpace(wrap(verdict, 118)), "\n", "\n> ") + "\n"
		if *update {
			index = []byte(strings.Replace(string(index), e.quote, want, 1))
		} else if e.quote != want {
			t.Errorf("the index quotes of %s.html:\n%sbut its verdict is:\n%srun go test ./cmd/tare -run %s -update",
				e.name, e.quote, want, t.Name())
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join(dir, "README.md"), index, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if weight > galleryWeight {
		t.Errorf("the pages weigh %d bytes, more than %d", weight, galleryWeight)
	}
	all, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if slices.Sort(files); err != nil || !slices.Equal(all, files) {
		t.Errorf("the index names %q, and there are %q (%v)", files, all, err)
	}
}

func galleryEntries(t *testing.T, index string) []galleryEntry {
	t.Helper()
	var out []galleryEntry
	for _, m := range galleryText.FindAllStringSubmatch(index, -1) {
		e := galleryEntry{name: m[2], quote: m[3], command: m[4]}
		if file := galleryFile.FindStringSubmatch(e.command); m[1] != e.name || file == nil || file[1] != e.name {
			t.Errorf("%s leads to %s.html, which %q makes", m[1], e.name, e.command)
		}
		out = append(out, e)
	}
	if n := strings.Count(index, "\n## "); n == 0 || n != len(out) {
		t.Fatalf("%d of %d headings of the index have a link to a page, a question, a quote and a command", len(out), n)
	}
	return out
}

// checkOrigin checks what a page says about the run that it is of.
func checkOrigin(t *testing.T, e galleryEntry, page string) {
	t.Helper()
	var r report.Report
	data := pageData.FindStringSubmatch(page)
	if data == nil {
		t.Fatalf("%s.html holds no report", e.name)
	}
	if err := json.Unmarshal([]byte(data[1]), &r); err != nil {
		t.Fatalf("the report in %s.html: %v", e.name, err)
	}
	if r.Experiment.Name != e.name || !strings.Contains(page, "<h1>"+e.name+"</h1>") {
		t.Errorf("%s.html is the page of %s", e.name, r.Experiment.Name)
	}
	if asWritten := !strings.Contains(e.command, " --"); asWritten != (r.Experiment.File != "") {
		t.Errorf("%s.html is not of the command in the index: %s", e.name, e.command)
	}
	// The name of a machine is nobody's business; as root, "unshare --uts sh -c 'hostname vm; make gallery'" gives it
	// this one.
	if h := r.Environment.Host; h != "vm" {
		t.Errorf("%s.html was measured on %q; the gallery is measured on a host named vm", e.name, h)
	}
	if p := localPath.FindString(pageTag.ReplaceAllString(page, " ") + data[1]); p != "" {
		t.Errorf("%s.html contains the local path %s", e.name, p)
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" && strings.Contains(page, home) {
		t.Errorf("%s.html contains the path of this user's home", e.name)
	}
}

// wrap breaks a text into lines of at most so many columns.
func wrap(text string, width int) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		w := utf8.RuneCountInString(word)
		if n > 0 && n+1+w > width {
			b.WriteByte('\n')
			n = 0
		} else if n > 0 {
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += w
	}
	return b.String()
}
