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
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join("..", "..", "areas", name))
	if !inArea || err == nil || !strings.Contains(string(readme), "\n| [`"+name+"`](areas/"+name+"/README.md) |") {
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
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	prose := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(string(src), ""), "")
	for _, m := range linkTarget.FindAllStringSubmatch(prose, -1) {
		links = append(links, m[1])
	}
	return links
}

// anchorsOf returns the anchors that GitHub makes of a page's headings.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, m := range headLine.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(src), ""), -1) {
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
