package main

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/report"
)

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
