package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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

// TestPageGoldens: each page is what it was, twice alike, of bounded size, and sound.
func TestPageGoldens(t *testing.T) {
	again := pageSamples()
	for name, r := range pageSamples() {
		t.Run(name, func(t *testing.T) {
			page := render(t, r)
			golden(t, filepath.Join("..", "page", "testdata", name+".html"), []byte(bare(page)))
			if page != render(t, again[name]) {
				t.Error("the same report gives two pages")
			}
			if len(page) > 3<<19 {
				t.Errorf("the page has %d bytes", len(page))
			}
			all := elements(t, page)
			checkStructure(t, all)
			checkPolicy(t, page, all)
			checkData(t, page, r)
			numbers := each(regexp.MustCompile(`<h2 id="q(\d+)">`).FindAllStringSubmatch(page, -1),
				func(m []string) string { return m[1] })
			if want := strings.Split("012345678", "")[:len(numbers)]; !slices.Equal(numbers, want) {
				t.Errorf("the questions are numbered %q", numbers)
			}
		})
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

// checkStructure holds that headings, names and references are in order.
func checkStructure(t *testing.T, all []pageElement) {
	t.Helper()
	ids := map[string]bool{}
	var refs []string
	level, seen := 0, map[string]int{}
	for _, e := range all {
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
}

// checkPolicy looks for what the policy "sandbox; default-src 'none'; img-src 'self'; style-src 'self'" would switch
// off or complain of, other than the page's own style and script elements.
func checkPolicy(t *testing.T, page string, all []pageElement) {
	t.Helper()
	for _, e := range all {
		for _, a := range e.Attr {
			switch n := strings.ToLower(a.Name.Local); {
			case n == "style", n == "src", n == "srcset", n == "action", strings.HasPrefix(n, "on"):
				t.Errorf("<%s %s=%q>", e.Name.Local, n, a.Value)
			}
		}
		if tag := e.Name.Local; slices.Contains([]string{"link", "img", "iframe", "object", "embed", "base", "form"}, tag) {
			t.Errorf("<%s>", tag)
		}
	}
	allowed := []string{"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}
	for _, found := range regexp.MustCompile(`(?i)https?://[^\s"'<)]+`).FindAllString(page, -1) {
		if !slices.Contains(allowed, found) {
			t.Errorf("the page names %s", found)
		}
	}
	if strings.Contains(page, "@import") || strings.Contains(page, "url(") {
		t.Error("a stylesheet loads something")
	}
}

// checkData holds that the page's data is the report, and cannot end its element.
func checkData(t *testing.T, page string, r *Report) {
	t.Helper()
	m := regexp.MustCompile(`(?s)<script type="application/json" id="report">(.*?)</script>`).FindStringSubmatch(page)
	if m == nil || strings.ContainsAny(m[1], "<>&\u2028\u2029") {
		t.Fatalf("there is no JSON, or it could end its element: %d", len(m))
	}
	var got, want any
	if err := errors.Join(json.Unmarshal([]byte(m[1]), &got), json.Unmarshal(encode(t, JSON, r), &want)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-json +page):\n%s", d)
	}
}

func TestHostileTextsStayTexts(t *testing.T) {
	for _, c := range []struct {
		page           string
		scripts, shown int // "shown" is how often the attack is a text, at least
	}{{render(t, pageHostile()), 2, 1}, {render(t, hostileCompare()), 1, 20}} {
		for _, e := range elements(t, c.page) {
			if tag := e.Name.Local; tag == "img" || tag == "script" && len(e.within) > 2 {
				t.Errorf("a text became <%s> within %v", tag, e.within)
			}
		}
		if n := strings.Count(c.page, "<script"); n != c.scripts {
			t.Errorf("the page has %d scripts, want its data and its own: %d", n, c.scripts)
		}
		if i := strings.IndexFunc(c.page, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
		}); i >= 0 {
			t.Fatalf("a control character is in the page: %q", c.page[i:i+4])
		}
		if n := strings.Count(bare(c.page), "&lt;/script&gt;"); n < c.shown {
			t.Errorf("the attacks are shown as texts %d times only", n)
		}
	}
}

func TestUnknownIsNotZero(t *testing.T) {
	r := base("little")
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
		"none": {none, `<p class="lead ">Capacity 150.0/s · the CPU quota of 100m sets the rate · it fails as accept queue</p>`},
		"pass": {stored("at-least"), `<p class="lead good"><strong class="word">✓ pass</strong> It did not break: it holds at least 2000/s.</p>`},
		"fail": {treatmentRun(), `<p class="lead bad"><strong class="word">✗ FAIL</strong> cache=on breaks at 163.2/s; ` +
			`the CPU quota likely sets the rate; it likely fails as queue. cache=off breaks at 99.97/s; a rate limit of ` +
			`99.97/s likely sets the rate; it likely fails as token bucket; it did not recover by itself. ` +
			`<span class="why">1 budget of 1 broken.</span></p>`},
		"invalid":     {stored("invalid"), `<strong class="word">✗ INVALID</strong> default: the generator is the limit, not the target`},
		"interrupted": {stored("interrupted"), `<strong class="word">? inconclusive</strong> The run did not come to its end.</p>`},
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
	r := base("x")
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

// harness.html loads each page in frames of several widths, with and without scripts, looks at each, and writes what it
// found as JSON.
//
//go:embed page/testdata/harness.html
var harness string

// collector goes before all scripts of a page and keeps what they complain of.
const collector = `<script>window.complaints=[];window.addEventListener("error",function(e){complaints.push("error: "+e.message)});` +
	`window.addEventListener("unhandledrejection",function(e){complaints.push("rejection: "+e.reason)});` +
	`["error","warn"].forEach(function(k){var f=console[k];console[k]=function(){complaints.push(k+": "+[].join.call(arguments," "));f.apply(console,arguments)}});</script>`

// A look is what the harness saw in one frame.
type look struct {
	Page      string   `json:"page"`
	Name      string   `json:"name"`
	Width     int      `json:"width"`
	Overflow  int      `json:"overflow"` // by how many pixels the page is wider than its window
	Dark      bool     `json:"dark"`
	Scripts   bool     `json:"scripts"` // they ran
	Canvases  int      `json:"canvases"`
	Painted   int      `json:"painted"` // canvases that hold more than one colour
	Unnamed   int      `json:"unnamed"` // canvases that a screen reader cannot name
	Stills    int      `json:"stills"`
	Hidden    int      `json:"hidden"` // stills that are not to be seen
	Drawings  int      `json:"drawings"`
	Blank     int      `json:"blank"` // of the drawings: without a size
	Zoomed    bool     `json:"zoomed"`
	Reset     bool     `json:"reset"`
	Pwned     bool     `json:"pwned"`
	Images    int      `json:"images"`
	Resources int      `json:"resources"`
	Faint     []string `json:"faint"` // texts with too little contrast
	Unreached []string `json:"unreached"`
	Clipped   []string `json:"clipped"` // on a phone: boxes that have more than they show
	Complains []string `json:"complains"`
}

// browser finds Chromium: the variable CHROME names it, or the PATH holds it.
func browser(t *testing.T) string {
	t.Helper()
	hosttest.SkipIfShort(t)
	if name := os.Getenv("CHROME"); name != "" {
		return name
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	hosttest.Missing(t, "there is no Chromium", "apt-get install chromium, or set CHROME")
	return ""
}

// dump loads an address and returns the document when its scripts have come to rest.
func dump(t *testing.T, address string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--no-proxy-server", "--user-data-dir=" +
			t.TempDir(), "--window-size=1400,1000",
		"--virtual-time-budget=60000", "--dump-dom",
	}, flags...)
	cmd := exec.CommandContext(ctx, browser(t), append(args, address)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it may have left behind; mostly there is nothing
	}
	if err != nil {
		if x, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v\n%s", err, x.Stderr)
		}
		t.Fatal(err)
	}
	return string(out)
}

// looks shows pages to one browser and returns what was seen of each, by the frame's name.
func looks(t *testing.T, pages map[string]string, flags ...string) map[string]map[string]look {
	t.Helper()
	var mu sync.Mutex
	var unexpected []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		name, kind := path.Split(strings.TrimPrefix(r.URL.Path, "/"))
		page, ok := pages[strings.TrimSuffix(name, "/")]
		switch {
		case r.URL.Path == "/":
			_, _ = w.Write([]byte(harness))
		case ok && kind == "page":
			_, _ = w.Write([]byte(strings.Replace(page, "<head>", "<head>"+collector, 1)))
		case ok && kind == "broken": // the chart library fails
			_, _ = w.Write([]byte(strings.Replace(strings.Replace(page, "<head>", "<head>"+collector, 1), "var uPlot=",
				"var uPlot=undefined,_=", 1)))
		case ok && kind == "strict":
			w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; style-src 'self'")
			_, _ = w.Write([]byte(page))
		default:
			w.WriteHeader(http.StatusNotFound)
			if r.URL.Path != "/favicon.ico" {
				mu.Lock()
				unexpected = append(unexpected, r.URL.Path)
				mu.Unlock()
			}
		}
	}))
	defer server.Close()
	dom := dump(t, server.URL+"/?"+strings.Join(slices.Sorted(maps.Keys(pages)), ","), flags...)
	m := regexp.MustCompile(`(?s)<pre id="seen">(.*?)</pre>`).FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("the harness wrote nothing:\n%.2000s", dom)
	}
	var all []look
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &all); err != nil {
		t.Fatalf("%v in %.2000s", err, m[1])
	}
	seen := map[string]map[string]look{}
	for name := range pages {
		seen[name] = map[string]look{}
	}
	for _, l := range all {
		seen[l.Page][fmt.Sprintf("%s at %d", l.Name, l.Width)] = l
	}
	mu.Lock()
	defer mu.Unlock()
	if len(unexpected) > 0 {
		t.Errorf("the pages loaded %q", unexpected)
	}
	return seen
}

func TestInBrowser(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, scheme := range []struct {
		name, flag string
		dark       bool
	}{{"light", "--blink-settings=preferredColorScheme=1", false}, {
		"dark", "--blink-settings=preferredColorScheme=0",
		true,
	}} {
		t.Run(scheme.name, func(t *testing.T) {
			t.Parallel() // part of it is waiting for pages to come to rest
			samples, pages := pageSamples(), map[string]string{}
			for _, name := range []string{
				"search", "ladder", "treatments", "hostile", "enforcers", "caches", "rules",
				"unreliable", "stopped", "hostile-compare", "soak", "soak-hostile", "psp",
			} {
				if scheme.dark && slices.Contains([]string{
					"unreliable", "stopped", "soak-hostile", "hostile", "hostile-compare", "treatments",
				}, name) {
					continue // they differ from others by words, or by their number
				}
				pages[name] = render(t, samples[name])
			}
			for name, frames := range looks(t, pages, scheme.flag) {
				t.Run(name, func(t *testing.T) {
					if len(frames) != 9 {
						t.Fatalf("%d frames were looked at, want 9", len(frames))
					}
					for frame, l := range frames {
						l.check(t, frame, len(samples[name].Timeline), scheme.dark)
					}
				})
			}
		})
	}
}

// check judges one frame of a page with so many live charts.
func (l look) check(t *testing.T, frame string, charts int, dark bool) {
	t.Helper()
	// Without its stylesheet nothing keeps a wide table in a box of its own.
	if l.Overflow > 0 && l.Name != "strict" {
		t.Errorf("%s: the page is %d px wider than its window", frame, l.Overflow)
	}
	if l.Drawings == 0 || l.Blank > 0 || l.Unnamed > 0 {
		t.Errorf("%s: %d drawings, %d of them without a size, %d without a name", frame, l.Drawings, l.Blank, l.Unnamed)
	}
	if l.Pwned || l.Images > 0 || l.Resources > 0 {
		t.Errorf("%s: pwned %v, %d images, %d resources", frame, l.Pwned, l.Images, l.Resources)
	}
	if len(l.Complains) > 0 || len(l.Unreached) > 0 {
		t.Errorf("%s: complaints %q, out of reach of the keyboard %q", frame, l.Complains, l.Unreached)
	}
	if l.Name != "strict" {
		if l.Dark != dark {
			t.Errorf("%s: dark %v, want %v", frame, l.Dark, dark)
		}
		if len(l.Clipped) > 0 {
			t.Errorf("%s: clipped: %q", frame, l.Clipped)
		}
		if len(l.Faint) > 0 {
			t.Errorf("%s: too faint: %q", frame, l.Faint)
		}
	}
	live := 0
	if l.Name == "page" {
		live = charts
	}
	if scripts := l.Name == "page" || l.Name == "broken"; l.Scripts != scripts {
		t.Errorf("%s: scripts %v, want %v", frame, l.Scripts, scripts)
	}
	if l.Hidden != live || l.Canvases != 3*live || l.Painted != 3*live {
		t.Errorf("%s: %d of %d drawings were replaced by %d canvases, %d of them painted; want %d", frame, l.Hidden, l.Stills,
			l.Canvases, l.Painted, live)
	}
	if live > 0 && (!l.Zoomed || !l.Reset) {
		t.Errorf("%s: zoomed %v, reset %v", frame, l.Zoomed, l.Reset)
	}
}
