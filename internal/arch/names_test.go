package arch

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// core are the folders and files that name no area, from the module's root.
var core = []string{"area", "internal", "rigs", "schema", "tools", "tare.go"}

// recorded are files that real runs wrote with earlier versions, and reports computed from them. They name the areas
// that were measured, as long as tare can read them.
var recorded = regexp.MustCompile(`/testdata/records/|^internal/analyze/testdata/v1-[a-z-]+\.report\.json$`)

// unmoved are the folders that still hold something of an area, or test the whole product. Each entry goes with the
// last name below its folder.
var unmoved = []string{"schema/"}

// isUnmoved reports whether a file is in one of these folders.
func isUnmoved(file string) bool {
	return slices.ContainsFunc(unmoved, func(dir string) bool { return strings.HasPrefix(file, dir) })
}

// homonyms counts the string literals of a file that equal an area's name and mean something else: "WORD FILE".
var homonyms = map[string]int{
	// a content coding of HTTP
	"identity internal/probe/exposition.go":      2,
	"identity internal/probe/exposition_test.go": 1,
	// Kubernetes: a part of the work on a request, and a subresource of pods
	"admission internal/analyze/admission_test.go":   4,
	"admission internal/analyze/attribution.go":      2,
	"admission internal/record/journal_test.go":      1,
	"admission internal/report/levels.go":            2,
	"admission internal/report/openmetrics_plane.go": 1,
	"admission internal/report/section_levels.go":    1,
	"exec internal/analyze/slo.go":                   1,
	// an operation: the system call
	"exec internal/analyze/comparebudget_test.go": 2,
	"exec internal/analyze/decide_test.go":        1,
	"exec internal/analyze/pair_test.go":          1,
	"exec internal/config/config_test.go":         1,
	"exec internal/report/effects_test.go":        4,
	"exec internal/report/sample_compare_test.go": 7,
	// an operation of a kept record, and a key of a JSON document
	"identity internal/record/record_test.go":     1,
	"decision internal/jsonscan/jsonscan_test.go": 1,
}

// TestCoreNamesNoArea: the core treats all areas alike, so it has no reason to know one by its name. This holds for its
// code, its tests, their data and its documents.
func TestCoreNamesNoArea(t *testing.T) {
	m := matcherOf(areasIn(t, "../../areas"))
	want, got := map[string]int{}, map[string]int{}
	for at, n := range homonyms {
		if word, _, _ := strings.Cut(at, " "); slices.Contains(m.names, word) { // of others there may be no area here
			want[at] = n
		}
	}
	left := slices.Clone(unmoved)
	eachCoreFile(t, func(file string, src []byte) {
		found, words := m.find(file, src)
		if isUnmoved(file) {
			if len(found)+len(words) > 0 {
				left = slices.DeleteFunc(left, func(dir string) bool { return strings.HasPrefix(file, dir) })
			}
			return
		}
		for _, at := range found {
			t.Errorf("%s names an area: ask the area for a property, or use a name of no area", at)
		}
		for _, word := range words {
			got[word+" "+file]++
		}
	})
	wantCounts(t, "strings that equal names of areas", "use a name of no area, or add it to homonyms", want, got)
	for _, dir := range left {
		t.Errorf("%s names no area any more: delete its entry of unmoved", dir)
	}
}

// A matcher finds names of areas.
type matcher struct {
	names []string
	named *regexp.Regexp
}

// contexts are where a word can only be an area's name, with NAME in its place.
var contexts = []string{
	`(?:\b|\\n)(?i:areas?)(?:/|\s+(?:is\s+|are\s+)?|["'\\]*\s*[:=]+\s*[\[("'\\]*|"\s+value="|</th><td class="left ">)["'\x60]?NAME`,
	`NAME["'\x60]?\s+areas?`,
	`\bNAME\.(?:Area|Spec|Target)`,
	`\btare (?:(?:serve|init|list|schema) )?NAME`,
	`\btare-NAME-`,
	`\b(?:reference|howto|examples)/NAME`,
	`(?:\btarget\.|\$defs/)NAME`,
	`\bclassname="NAME\.`,
	` · NAME(?: ·|$)`,
}

// matcherOf returns a matcher of the names.
func matcherOf(names []string) *matcher {
	name := `\b(?:` + strings.Join(names, "|") + `)\b`
	return &matcher{names, regexp.MustCompile(strings.ReplaceAll(strings.Join(contexts, "|"), "NAME", name))}
}

// find returns the places in a file that name an area, as "FILE:LINE: TEXT". words are the string literals of Go on
// other lines that equal a name.
func (m *matcher) find(file string, src []byte) (found, words []string) {
	named := map[int]bool{}
	line := 0
	for text := range strings.SplitSeq(string(src), "\n") {
		has := func(name string) bool { return strings.Contains(text, name) } // most lines: the expression is slow
		if line++; slices.ContainsFunc(m.names, has) && m.named.MatchString(text) {
			named[line] = true
			found = append(found, fmt.Sprintf("%s:%d: %s", file, line, strings.TrimSpace(text)))
		}
	}
	if strings.HasSuffix(file, ".go") {
		eachToken(src, func(line int, tok token.Token, text string) {
			word, err := strconv.Unquote(text)
			if tok == token.STRING && err == nil && !named[line] && slices.Contains(m.names, word) {
				words = append(words, word)
			}
		})
	}
	return found, words
}

// eachToken calls do with every token of a Go file but comments.
func eachToken(src []byte, do func(line int, tok token.Token, text string)) {
	var s scanner.Scanner
	f := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(f, src, nil, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return
		}
		do(f.Line(pos), tok, text)
	}
}

// platforms are the product files and folders of the core that know Kubernetes, BPF, kernel security modules or virtual
// machines. All of it belongs in areas; the list may only become shorter.
var platforms = []string{
	// service levels of a control plane, and what its own metrics say of where time goes
	"internal/analyze/action.go", "internal/analyze/attribution.go", "internal/analyze/slo.go",
	"internal/analyze/sloformula.go", "internal/analyze/slorate.go", "internal/report/levels.go",
	"internal/report/openmetrics_plane.go", "internal/report/published.go", "internal/report/report.go",
	"internal/report/section_levels.go",
	// checks of this host
	"internal/doctor/kernel.go", "internal/doctor/timer.go",
	// words of files and of the operating system: the shape of load pod-start, kubectl as a proxy, a state of sockets
	"internal/config/experiment.go", "internal/config/workload.go", "internal/probe/listener.go",
	"internal/probe/owner.go",
	"internal/load/host_linux.go",
}

var platform = regexp.MustCompile(`(?i)kube|k8s|apiserver|webhook|etcd|\bpods?\b|bpf|qemu|landlock|seccomp|apparmor|selinux`)

// TestCoreKnowsNoFurtherPlatform looks at identifiers and strings, not at comments.
func TestCoreKnowsNoFurtherPlatform(t *testing.T) {
	known := map[string]bool{}
	eachCoreFile(t, func(file string, src []byte) {
		product := strings.HasPrefix(file, "area/") || strings.HasPrefix(file, "internal/")
		if !product || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return
		}
		entry := slices.IndexFunc(platforms, func(p string) bool { return strings.HasPrefix(file, p) })
		eachToken(src, func(line int, tok token.Token, text string) {
			switch {
			case tok != token.IDENT && tok != token.STRING || !platform.MatchString(text):
			case entry < 0:
				t.Errorf("%s:%d: %s belongs in an area", file, line, text)
			default:
				known[platforms[entry]] = true
			}
		})
	})
	for _, p := range platforms {
		if !known[p] {
			t.Errorf("%s knows no platform any more: delete its entry", p)
		}
	}
}

// areasIn returns the names of the folders below root that hold an area.
func areasIn(t *testing.T, root string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*", "area.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no area: %v", root, err)
	}
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names
}

// eachCoreFile calls do with every file of the core that is not recorded, by its path from the module's root.
func eachCoreFile(t *testing.T, do func(file string, src []byte)) {
	t.Helper()
	files := 0
	for _, root := range core {
		err := filepath.WalkDir(filepath.Join("../..", root), func(path string, d fs.DirEntry, err error) error {
			file := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			if err != nil || !d.Type().IsRegular() || recorded.MatchString(file) {
				return err
			}
			src, err := os.ReadFile(path)
			files++
			do(file, src)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 1000 {
		t.Errorf("%d files were read: this is not the whole core", files)
	}
}

// TestMatcherFindsNames plants the name of an area that there is not.
func TestMatcherFindsNames(t *testing.T) {
	m := matcherOf([]string{"turnpike", "tool"})
	for _, c := range []struct {
		file, text   string
		found, words int
	}{
		{"x.yaml", "name: x\narea: turnpike\n", 1, 0},
		{"x.yaml", "area: [tool]", 1, 0},
		{"x.json", `{"area": "turnpike"}`, 1, 0},
		{"x.json", `{"$ref": "#/$defs/turnpike.tls"}`, 1, 0},
		{"x.json", `{"target.turnpike": {}}`, 1, 0},
		{"x.prom", `tare_blocks{experiment="x",area="turnpike"} 3`, 1, 0},
		{"x.xml", `<property name="area" value="turnpike"></property>`, 1, 0},
		{"x.xml", `<testcase classname="turnpike.x">`, 1, 0},
		{"x.html", `<tr><th scope="row">area</th><td class="left ">tool</td></tr>`, 1, 0},
		{"x.txt", "enforcers · compare · tool · seed 4211", 1, 0},
		{"x.txtar", "exec tare serve turnpike reference", 1, 0},
		{"x.txtar", "! exec tare turnpike run", 1, 0},
		{"x.md", "The turnpike area has three adapters.", 1, 0},
		{"x.md", "the areas are tool, turnpike", 1, 0},
		{"x.md", "area `turnpike` and others", 1, 0},
		{"x.md", "See docs/reference/turnpike.md and examples/turnpike-cache.yaml.", 1, 0},
		{"x.go", "// Of areas/turnpike, and internal/area/tool.\nvar x = 1", 1, 0},
		{"x.go", `var h = Header{Area: "turnpike"}`, 1, 0},
		{"x.go", `var x = r.Area == "tool"`, 1, 0},
		{"x.go", `import "tare/areas/tool/gobench"`, 1, 0},
		{"x.go", "var a = tool.Area{}", 1, 0},
		{"x.go", `var dir = "/tmp/tare-tool-0123"`, 1, 0},
		{"x.go", `var names = []string{"turnpike", "open"}`, 0, 1},
		{"x.go", "var names = []string{`tool`}", 0, 1},
		{"x.go", "var file = \"name: x\\narea: turnpike\\n\"", 1, 0},

		{"x.yaml", "area: turnpikes", 0, 0},
		{"x.md", "An exchange of turnpike tokens; a tool; the area of a tool.", 0, 0},
		{"x.json", `{"operation": "tool"}`, 0, 0},
		{"x.go", "// a turnpike is named here\nvar turnpike = tool.Command()", 0, 0},
		{"x.go", `var x = "a turnpike" + "tool.cpu"`, 0, 0},
	} {
		if found, words := m.find(c.file, []byte(c.text)); len(found) != c.found || len(words) != c.words {
			t.Errorf("%s: %d names and %d words in %q, want %d and %d", c.file, len(found), len(words), c.text, c.found, c.words)
		}
	}
	found, _ := m.find("x.md", []byte("one\n the turnpike area \n"))
	if want := []string{"x.md:2: the turnpike area"}; !slices.Equal(found, want) {
		t.Errorf("the places are %q, want %q", found, want)
	}
}
