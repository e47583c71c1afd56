package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
)

func render(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	styles  = regexp.MustCompile(`(?s)<style>.*?</style>`)
	scripts = regexp.MustCompile(`(?s)(<script[^>]*>).*?</script>`)
	svgs    = regexp.MustCompile(`(?s)<svg.*?</svg>\n?`)
)

// bare is a page without what has tests of its own: styles, scripts and drawings.
func bare(page string) string {
	page = styles.ReplaceAllString(page, "<style>…</style>")
	page = scripts.ReplaceAllString(page, "$1…</script>")
	return svgs.ReplaceAllString(page, "[drawing]")
}

func TestPageGoldens(t *testing.T) {
	for name, r := range pageSamples() {
		t.Run(name, func(t *testing.T) {
			got, path := bare(render(t, r)), filepath.Join("page", "testdata", name+".html")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s (-want +got):\n%s", path, d)
			}
		})
	}
}

func TestSamePageTwice(t *testing.T) {
	hosttest.SkipIfShort(t)
	for name := range pageSamples() {
		if a, b := render(t, pageSamples()[name]), render(t, pageSamples()[name]); a != b {
			t.Errorf("%s: the same report gives two pages", name)
		}
	}
}

// element is a start tag with the names of those that it stands in.
type pageElement struct {
	xml.StartElement
	within []string
}

func (e pageElement) attr(name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

var void = regexp.MustCompile(`<(meta[^>]*|!doctype html)>`)

// elements reads a page as strictly as XML is read: every element is closed, in order, and every attribute quoted.
func elements(t *testing.T, page string) []pageElement {
	t.Helper()
	page = scripts.ReplaceAllString(styles.ReplaceAllString(page, "<style></style>"), "$1</script>")
	d := xml.NewDecoder(strings.NewReader(void.ReplaceAllString(page, "")))
	var all []pageElement
	var open []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			all = append(all, pageElement{StartElement: x.Copy(), within: slices.Clone(open)})
			open = append(open, x.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

func TestStructure(t *testing.T) {
	for name, r := range pageSamples() {
		t.Run(name, func(t *testing.T) {
			ids := map[string]bool{}
			var refs []string
			level, seen := 0, map[string]int{}
			for _, e := range elements(t, render(t, r)) {
				tag := e.Name.Local
				if id := e.attr("id"); id != "" {
					if ids[id] {
						t.Errorf("the id %q is there twice", id)
					}
					ids[id] = true
				}
				refs = append(refs, strings.Fields(e.attr("aria-labelledby"))...)
				if href := e.attr("href"); href != "" {
					if !strings.HasPrefix(href, "#") {
						t.Errorf("a link leads out of the page: %q", href)
					}
					refs = append(refs, strings.TrimPrefix(href, "#"))
				}
				if len(tag) == 2 && tag[0] == 'h' && tag[1] >= '1' && tag[1] <= '6' {
					if n := int(tag[1] - '0'); n > level+1 {
						t.Errorf("%s follows h%d", tag, level)
					} else {
						level = n
					}
				}
				if tag == "table" && !slices.Contains(e.within, "div") {
					t.Error("a table has no box to scroll in")
				}
				if e.attr("role") == "region" && e.attr("aria-label") == "" || tag == "svg" && e.attr("role") != "img" ||
					tag == "th" && e.attr("scope") == "" {
					t.Errorf("a screen reader cannot name <%s> in %q", tag, e.within)
				}
				seen[tag]++
				if tag == "html" && e.attr("lang") != "en" {
					t.Error("the page has no language")
				}
			}
			if seen["h1"] != 1 || seen["main"] != 1 || seen["nav"] != 1 || seen["h2"] != seen["section"] ||
				seen["svg"] > 0 && (seen["title"] < seen["svg"]+1 || seen["desc"] != seen["svg"]) {
				t.Errorf("landmarks, headings or the texts of drawings are missing: %v", seen)
			}
			for _, ref := range refs {
				if !ids[ref] {
					t.Errorf("nothing has the id %q", ref)
				}
			}
		})
	}
}

// TestStrictPolicy looks for what the policy "sandbox; default-src 'none'; img-src 'self'; style-src 'self'" would
// switch off or complain of, other than the page's own style and script elements.
func TestStrictPolicy(t *testing.T) {
	address := regexp.MustCompile(`(?i)https?://[^\s"'<)]+`)
	allowed := []string{"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}
	for name, r := range pageSamples() {
		page := render(t, r)
		for _, e := range elements(t, page) {
			for _, a := range e.Attr {
				switch n := strings.ToLower(a.Name.Local); {
				case n == "style", n == "src", n == "srcset", n == "action", strings.HasPrefix(n, "on"):
					t.Errorf("%s: <%s %s=%q>", name, e.Name.Local, n, a.Value)
				}
			}
			if tag := e.Name.Local; slices.Contains([]string{"link", "img", "iframe", "object", "embed", "base", "form"}, tag) {
				t.Errorf("%s: <%s>", name, tag)
			}
		}
		for _, found := range address.FindAllString(page, -1) {
			if !slices.Contains(allowed, found) {
				t.Errorf("%s: the page names %s", name, found)
			}
		}
		if strings.Contains(page, "@import") || strings.Contains(page, "url(") {
			t.Errorf("%s: a stylesheet loads something", name)
		}
	}
}

func TestJSONIsTheReport(t *testing.T) {
	inside := regexp.MustCompile(`(?s)<script type="application/json" id="report">(.*?)</script>`)
	for name, r := range pageSamples() {
		m := inside.FindStringSubmatch(render(t, r))
		if m == nil {
			t.Fatalf("%s: there is no JSON", name)
		}
		if strings.ContainsAny(m[1], "<>&\u2028\u2029") {
			t.Errorf("%s: the JSON could end its element", name)
		}
		var got, want any
		if err := json.Unmarshal([]byte(m[1]), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var b bytes.Buffer
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-json +page):\n%s", name, d)
		}
	}
}

func TestHostileTextsStayTexts(t *testing.T) {
	page := render(t, pageHostile())
	for _, e := range elements(t, page) {
		if tag := e.Name.Local; tag == "img" || tag == "script" && slices.Contains(e.within, "main") {
			t.Errorf("a text became <%s>", tag)
		}
	}
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("the page has %d scripts, want its data and its own", n)
	}
	for _, c := range page {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			t.Fatalf("%U is in the page", c)
		}
	}
	if !strings.Contains(bare(page), "&lt;/script&gt;") {
		t.Error("the attack is not shown as the text that it is")
	}
}

func TestUnknownIsNotZero(t *testing.T) {
	r := pageBase("little")
	r.Capacity = []Capacity{{Treatment: "default", Valid: true}}
	r.Target = []Target{{Treatment: "default", Name: "endpoint", RSS: &RSS{}}}
	r.Operations = []Operation{{Treatment: "default", Operation: "token", Response: &Distribution{}}}
	r.Generator = &Generator{Valid: true}
	r.Budgets = []Budget{{Text: "capacity >= 100/s", Verdict: NotMeasured}}
	r.Seconds = 3
	page := bare(render(t, r))
	if m := regexp.MustCompile(`>(≥ )?0(\.0+)?( ?(/s|s|B|%|calls))?<`).FindAllString(page, -1); len(m) > 0 {
		// The counts of calls are known.
		for _, zero := range m {
			if zero != ">0<" {
				t.Errorf("something unknown is shown as %s", zero)
			}
		}
	}
	if strings.Contains(page, "NaN") {
		t.Error("NaN is shown")
	}
}

func TestVerdictComesFirst(t *testing.T) {
	none := search()
	none.Verdict, none.Reason, none.Budgets = None, "no budget was given", nil
	for name, c := range map[string]struct {
		r    *Report
		want string
	}{
		"none": {none, `<p class="lead ">Capacity 163.7/s · the CPU quota of 100m sets the rate · it fails as accept queue</p>`},
		"pass": {healthy(), `<p class="lead good"><strong class="word">✓ pass</strong> It did not break: it holds at least 2000/s.</p>`},
		"fail": {treatmentRun(), `<p class="lead bad"><strong class="word">✗ FAIL</strong> cache=on breaks at 163.2/s; ` +
			`the CPU quota likely sets the rate; it likely fails as queue. cache=off breaks at 99.97/s; a rate limit of ` +
			`99.97/s likely sets the rate; it likely fails as token bucket; it did not recover by itself. ` +
			`<span class="why">1 budget of 1 broken.</span></p>`},
		"invalid":     {invalidRun(), `<strong class="word">✗ INVALID</strong> default: the generator is the limit, not the target`},
		"interrupted": {pageInterrupted(), `<strong class="word">? inconclusive</strong> The run did not come to its end.</p>`},
		"ladder":      {ladderRun(), `<p class="lead ">It holds 150/s and breaks at 500/s; it fails as accept queue.</p>`},
	} {
		page := render(t, c.r)
		if !strings.Contains(page, c.want) {
			t.Errorf("%s: the verdict is not %s but %s", name, c.want, regexp.MustCompile(`<p class="lead.*`).FindString(page))
		}
		if lead, second := strings.Index(page, `class="lead`), strings.Index(page, `id="q4"`); second >= 0 && lead > second {
			t.Errorf("%s: the verdict does not come first", name)
		}
	}
}

// TestLaddersAreNotJudged: a ladder only says how far its calls were answered well, and leaves out the points that are
// the generator's.
func TestLaddersAreNotJudged(t *testing.T) {
	point := func(rate, success float64, valid bool) Point {
		return Point{Rate: rate, Success: &success, Generator: &Generator{Valid: valid}}
	}
	workload := func(name string, success float64) Point {
		return Point{Name: name, Rate: 1, Success: &success}
	}
	for _, c := range []struct {
		points []Point
		want   string
	}{
		{
			[]Point{point(10, 1, true), point(1000, .7, false), point(500, .59, true), point(150, 1, true)},
			"Every call was answered well up to 150/s; at 500/s, 59.0 % of them were.",
		},
		{[]Point{point(10, 1, true), point(20, .5, false)}, "Every call was answered well up to 10/s."},
		{
			[]Point{point(10, 1, false), point(20, .5, true)},
			"At 20/s, the lowest rate that counts, 50.0 % of the calls were answered well.",
		},
		{[]Point{point(10, 1, false)}, "Nothing is known of the target: the generator was the limit at the " +
			"only point."},
		{
			[]Point{workload("warm", 1), workload("cold", .25)},
			"Not every call was answered well: fewest with the workload cold, 25.0 %.",
		},
		{[]Point{workload("warm", 1)}, "Every call of every workload was answered well."},
	} {
		if got := capacitySentence(&Capacity{Valid: true, Points: c.points}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestStepsAreMeans(t *testing.T) {
	l := Timeline{
		Bin: 2, Good: []float64{10, 20, 40}, P99: []*float64{new(0.1), nil, new(0.3)},
		Steps: []Stretch{
			{From: 1, To: 4, Name: "ramp", Rate: 30},
			{From: 4, To: 4, Rate: 5},
			{From: 4, To: 6, Name: "drain"},
			{From: 4, To: 5, Name: "single", Rate: 20},
			{From: 90, To: 92, Rate: 1},
		},
	}
	got := steps(&l)
	if len(got) != 2 {
		t.Fatalf("%d steps, want the two with a rate that last for a bin", len(got))
	}
	if want := (10*1 + 20*2) / 3.0; math.Abs(got[0].goodput-want) > 1e-12 {
		t.Errorf("goodput %v, want %v", got[0].goodput, want)
	}
	if got[0].p99 != 0.1 || got[0].hi != 0.1 {
		t.Errorf("p99 %v to %v, want that of the one bin whose middle is in the step", got[0].p99, got[0].hi)
	}
	if !math.IsNaN(got[1].goodput) || !math.IsNaN(got[1].p99) {
		t.Errorf("a step beyond the timeline has goodput %v and p99 %v", got[1].goodput, got[1].p99)
	}
}

func TestPageFailsOnWhatJSONCannotHold(t *testing.T) {
	r := pageBase("x")
	r.Seconds = math.Inf(1)
	if err := HTML(io.Discard, r); err == nil {
		t.Error("an infinite time was written")
	}
}

// TestVendored checks the vendored files against the sums that were taken when they were fetched.
func TestVendored(t *testing.T) {
	sums, err := os.ReadFile("page/uplot/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(sums)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("a line of SHA256SUMS is %q", line)
		}
		b, err := os.ReadFile(filepath.Join("page", "uplot", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s is not as it was released", name)
		}
		checked++
	}
	if checked != 3 {
		t.Errorf("%d files are checked, want 3", checked)
	}
}

func TestSize(t *testing.T) {
	for name, r := range pageSamples() {
		if n := len(render(t, r)); n > 3<<19 {
			t.Errorf("%s: the page has %d bytes", name, n)
		}
	}
}

// TestFileIsOneWordOfACommand, and no option.
func TestFileIsOneWordOfACommand(t *testing.T) {
	for in, want := range map[string]string{"a/b.yaml": "a/b.yaml", "a b": "'a b'", "-x": "./-x", "-$(id)": "'./-$(id)'"} {
		r := &Report{Experiment: Experiment{File: in}}
		if got := reproduce(r, nil)[1].Code; got != "tare run "+want {
			t.Errorf("file %q is run by %q, want the word %s", in, got, want)
		}
	}
}

// FuzzTexts puts any text where a record holds one: it must not become an element.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{attack, "", "a\x00b", "\xff\xfe", "</style>", "`${1}`", "]]>", "\u2028\u202e", "'\"&amp;"} {
		f.Add(s)
	}
	spoken := func(s string) *Report {
		r := search()
		r.Capacity[0].Failure.Evidence = []string{s}
		r.Experiment.Name, r.Timeline[0].Marks[0].Text, r.Target[0].Name = s, s, s
		r.Operations[0].Causes[0].Cause, r.Warnings, r.Experiment.File = s, []string{s}, s
		l := &r.Timeline[0] // short, for speed
		l.Offered, l.Sent, l.Good, l.Bad, l.Outstanding, l.P50, l.P99 = l.Offered[:3], l.Sent[:3], l.Good[:3], l.Bad[:3],
			l.Outstanding[:3], l.P50[:3], l.P99[:3]
		return r
	}
	plain := elementsOf(f, spoken("x"))
	f.Fuzz(func(t *testing.T, s string) {
		r := spoken("x" + s)
		if got := elementsOf(t, r); got != plain {
			t.Errorf("%q gives the page %d elements, want %d", s, got, plain)
		}
	})
}

// elementsOf counts what begins an element, a closing tag or a comment, outside the drawings: those give a label that
// they cut a title. The scripts come last and hold no text of the report but the data, in which there is no "<".
func elementsOf(t testing.TB, r *Report) int {
	t.Helper()
	page := render(t, r)
	return strings.Count(svgs.ReplaceAllString(page[:strings.LastIndex(page, "<script>")], ""), "<")
}
