package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// walks are the sections of CONTRIBUTING.md that name the files of an existing member, by title, with a pattern that
// finds this member. except is the folder of the member's own files, which the section does not list one by one. NAME
// stands for the member's name in the section.
var walks = map[string]walk{
	"Add an area":     {`"tare/areas/NAME"|^area: NAME$`, "areas/NAME/"},
	"Add an adapter":  {`azure-imds|azureIMDS|type Azure\b|\*Azure\b`, ""},
	"Add a signature": {`fd-exhaustion|\b(FD|fd)Exhaustion\b`, ""},
	"Add a section":   {`\btailSection\b`, ""},
	"Add a statistic": {`\breport\.Little\b|\*Little[ )]|^type Little\b|^## little$|"little"|^\| \x60Little\x60`, ""},
}

type walk struct{ pattern, except string }

// walkOf returns the walk of the section, with its member's name.
func walkOf(title, text string) (w walk, ok bool) {
	w, ok = walks[title]
	if m := memberName.FindStringSubmatch(text); m != nil {
		w = walk{strings.ReplaceAll(w.pattern, "NAME", m[1]), strings.ReplaceAll(w.except, "NAME", m[1])}
	}
	return w, ok
}

var memberName = regexp.MustCompile("`([^`]+)` is in [0-9]+\\s+file")

// withoutExample are the sections that point to a test with a whole member instead.
var withoutExample = []string{"Add a question"}

// TestWalksNameAllFiles: each section of CONTRIBUTING.md on how to add something names every file of the product and
// its documentation that knows the section's example, and counts them.
func TestWalksNameAllFiles(t *testing.T) {
	sections := sectionsOf(t, "../../CONTRIBUTING.md", "Add ")
	for title, text := range sections {
		if slices.Contains(withoutExample, title) {
			continue
		}
		walk, ok := walkOf(title, text)
		if !ok {
			t.Errorf("section %q has no example whose files are compared: add it to walks", title)
			continue
		}
		count, files := exampleOf(t, title, text)
		if count != len(files) {
			t.Errorf("section %q counts %d files and names %d", title, count, len(files))
		}
		if area := absentArea(append(files, walk.except)); area != "" {
			t.Logf("section %q has an example of the area %s, which is not in this tree", title, area)
			continue
		}
		if diff := cmp.Diff(filesWith(t, walk.pattern, walk.except), files); diff != "" {
			t.Errorf("section %q does not name the files of its example (-are +named):\n%s", title, diff)
		}
	}
	for title := range walks {
		if sections[title] == "" {
			t.Errorf("CONTRIBUTING.md has no section %q", title)
		}
	}
}

// TestEveryAreaHasItsFirstFiles: every area has the files that CONTRIBUTING.md says every area has.
func TestEveryAreaHasItsFirstFiles(t *testing.T) {
	areas, err := os.ReadDir("../../areas")
	if err != nil {
		t.Fatal(err)
	}
	said := everyAreaHas.FindStringSubmatch(sectionsOf(t, "../../CONTRIBUTING.md", "Add ")["Add an area"])
	if said == nil {
		t.Fatal("CONTRIBUTING.md does not say which files every area has")
	}
	for _, a := range areas {
		if isShared("areas/" + a.Name()) {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(said[1], -1) {
			if _, err := os.Stat(filepath.Join("../../areas", a.Name(), name[1])); err != nil {
				t.Errorf("area %s: %v", a.Name(), err)
			}
		}
	}
}

// absentArea returns the area of the first file of which the area's folder is not there: areas can be taken out of tare
// one by one.
func absentArea(files []string) string {
	for _, file := range files {
		rest, inArea := strings.CutPrefix(file, "areas/")
		name, _, _ := strings.Cut(rest, "/")
		if _, err := os.Stat("../../areas/" + name); inArea && err != nil {
			return name
		}
	}
	return ""
}

// sectionsOf returns the texts of the sections whose title begins with prefix, by title.
func sectionsOf(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for part := range strings.SplitSeq("\n"+read(t, file), "\n## ") {
		if title, text, _ := strings.Cut(part, "\n"); strings.HasPrefix(title, prefix) {
			out[title] = text
		}
	}
	return out
}

var (
	example  = regexp.MustCompile("(?s)Example: .*?is in ([0-9]+)\\s+files?:(.*?)\\.\n")
	fileName = regexp.MustCompile("`([^`]+/[^`]+)`")
	// The sentence on the files of every area, and each of them.
	everyAreaHas = regexp.MustCompile("(?s)Every area has (.*?`)\\.\\s")
	quoted       = regexp.MustCompile("`([^`]+)`")
)

// exampleOf returns the number of files and the files that a section's example names, in order.
func exampleOf(t *testing.T, title, text string) (count int, files []string) {
	t.Helper()
	m := example.FindStringSubmatch(text)
	if m == nil {
		t.Errorf("section %q has no sentence \"Example: … is in N files: …\"", title)
		return 0, nil
	}
	count, _ = strconv.Atoi(m[1])
	for _, f := range fileName.FindAllStringSubmatch(m[2], -1) {
		files = append(files, f[1])
	}
	slices.Sort(files)
	return count, files
}

// filesWith returns the files of the product and its documentation in which a line matches, in order.
func filesWith(t *testing.T, pattern, except string) (files []string) {
	t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for _, root := range []string{"areas", "internal", "cmd", "schema", "docs/reference", "docs/howto"} {
		err := filepath.WalkDir(filepath.Join("../..", root), func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "arch":
				return fs.SkipDir
			case d.IsDir():
				return skipData(d.Name())
			case strings.HasSuffix(file, "_test.go") || !isSource(file):
				return nil
			}
			src, err := os.ReadFile(file)
			name := strings.TrimPrefix(filepath.ToSlash(file), "../../")
			if re.Match(src) && (except == "" || !strings.HasPrefix(name, except)) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(files)
	return files
}

func isSource(file string) bool {
	return slices.Contains([]string{".go", ".md", ".yaml", ".json"}, filepath.Ext(file))
}

// TestThreatsAreTried: each test that SECURITY.md names beside a threat is in one of the packages named there.
func TestThreatsAreTried(t *testing.T) {
	_, table, ok := strings.Cut(read(t, "../../SECURITY.md"), "## Threats and the tests that try them\n")
	if !ok {
		t.Fatal("SECURITY.md has no table of threats")
	}
	word := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "--") || cells[1] == " threat " {
			continue
		}
		rows++
		source := ""
		for _, dir := range word.FindAllStringSubmatch(cells[2], -1) {
			files, _ := filepath.Glob(filepath.Join("../..", dir[1], "*_test.go"))
			for _, file := range files {
				source += read(t, file)
			}
		}
		tests := word.FindAllStringSubmatch(cells[3], -1)
		if len(tests) == 0 {
			t.Errorf("no test tries: %s", cells[1])
		}
		for _, test := range tests {
			if !strings.Contains(source, "\nfunc "+test[1]+"(t *testing.T) {") {
				t.Errorf("%s is in none of %s", test[1], cells[2])
			}
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rows", rows)
	}
}
