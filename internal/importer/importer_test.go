package importer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
	"tare/internal/importer"
	"tare/internal/record"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

// readSample reads a file of testdata.
func readSample(t *testing.T, name string) *importer.Data {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := importer.Read(f, name, "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// parsed reads a text.
func parsed(t *testing.T, src string, format importer.Format) *importer.Data {
	t.Helper()
	d, err := importer.Read(strings.NewReader(src), "x", format)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// valuesOf are all values of a metric, by operation.
func valuesOf(d *importer.Data, metric string) map[string][]float64 {
	out := map[string][]float64{}
	for _, s := range d.Series {
		for _, r := range s.Repetitions {
			if s.Metric == metric {
				out[s.Operation] = append(out[s.Operation], r.Values...)
			}
		}
	}
	return out
}

// seriesOf lists the series of a file: treatment, operation, metric, repetitions × values.
func seriesOf(d *importer.Data) []string {
	out := []string{string(d.Format)}
	for _, s := range d.Series {
		out = append(out, fmt.Sprintf("%s | %s | %s | %d of %d", s.Treatment.ID, s.Operation, s.Metric,
			len(s.Repetitions), s.Values()))
	}
	return out
}

var update = flag.Bool("update", false, "rewrite the golden file")

// TestSamples compares the series of each sample with what is expected.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, file := range files {
		name := filepath.Base(file)
		if name == "series.golden" || name == "go-after.txt" || name == "hyperfine-scan.json" {
			continue // of the same shape as others
		}
		d := readSample(t, name)
		fmt.Fprintf(&got, "%s\n  %s\n", name, strings.Join(seriesOf(d), "\n  "))
		if d.Malformed != 0 {
			t.Errorf("%s: malformed: %+v", name, d.Findings)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/series.golden", []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/series.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestUnits: nanoseconds, milliseconds and operations per millisecond are converted to base units.
func TestUnits(t *testing.T) {
	const jmh = `[{"benchmark":"b","mode":"%s","primaryMetric":{"scoreUnit":"%s","rawData":[[%v,%v]]}}]`
	for _, c := range []struct {
		name, src, metric string
		want              []float64
	}{
		{"go", "BenchmarkX-8   \t 100\t 250 ns/op\nBenchmarkX-8   \t 100\t 300 ns/op\n", "wall", []float64{250e-9, 300e-9}},
		{"tare's own", "BenchmarkX 1 2e-07 sec/op 1e-07 cpu-sec/op\n", "cpu", []float64{1e-7}},
		{"hyperfine", `{"results":[{"command":"c","times":[0.5,0.25]}]}`, "wall", []float64{.5, .25}},
		{"k6", `{"type":"Point","metric":"http_req_duration","data":{"time":"2026-01-02T03:04:05Z","value":12.5,"tags":{"name":"u","status":"200"}}}`, "service", []float64{.0125}},
		{"k6 summary", `{"metrics":{"http_req_duration":{"med":12.5}}}`, "service", []float64{.0125}},
		{"vegeta", `{"code":200,"timestamp":"2026-01-02T03:04:05Z","latency":2500000}`, "service", []float64{.0025}},
		{"vegeta summary", `{"latencies":{"50th":2500000},"success":0.75}`, "error", []float64{.25}},
		{"jmh time", fmt.Sprintf(jmh, "avgt", "us/op", 4, 5), "wall", []float64{4e-6, 5e-6}},
		{"jmh rate", fmt.Sprintf(jmh, "thrpt", "ops/ms", 4, 5), "goodput", []float64{4000, 5000}},
		{"jmh rate a minute", fmt.Sprintf(jmh, "thrpt", "ops/min", 120, 60), "goodput", []float64{2, 1}},
		{"jmh histogram", `[{"benchmark":"b","mode":"sample","primaryMetric":{"scoreUnit":"ms/op","rawDataHistogram":[[[[9,1],[2,5],[3,1]]]]}}]`, "wall", []float64{.002}},
		{"jmeter", "timeStamp,elapsed,label,success\n1763632800000,354,login,true\n", "service", []float64{.354}},
		{"jmeter with dates", "timeStamp|elapsed|label\n2026/01/02 03:04:05.678|354|login\n", "service", []float64{.354}},
		{
			"jmeter before 2.1", `<testResults><sampleResult timeStamp="1" time="7" label="/" success="true"/></testResults>`,
			"service",
			[]float64{.007},
		},
	} {
		d, err := importer.Read(strings.NewReader(c.src), c.name, "")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := slices.Concat(slices.Collect(maps.Values(valuesOf(d, c.metric)))...)
		if !slices.EqualFunc(c.want, got, func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(a) }) {
			t.Errorf("%s: %s is %v, want %v", c.name, c.metric, got, c.want)
		}
	}
}

// TestFailures: a call failed if its tool's own word or code says so; where that is not said, no share of failures is
// made up, and no good calls a second.
func TestFailures(t *testing.T) {
	const point = `{"type":"Point","metric":"%s_req_duration","data":{"time":"2026-01-02T03:04:05Z","value":5,"tags":{"name":"u"%s}}}`
	k6 := func(of string, tags ...string) (out string) {
		for _, also := range tags {
			out += fmt.Sprintf(point, of, also) + "\n"
		}
		return out
	}
	jtl := func(columns, row string) string {
		return "timeStamp,elapsed,label," + columns + "\n1763632800000,5,a," + row + "\n"
	}
	xml := func(says string) string {
		return `<testResults><sample t="5" ts="7" lb="a" ` + says + `/></testResults>`
	}
	const unknown = -1
	for name, c := range map[string]struct {
		src    string
		failed float64 // the share, or unknown
		warned string  // in a warning; empty: none is about failures
	}{
		"k6, HTTP":                  {k6("http", `,"status":"200"`, `,"status":"503"`), .5, "1 of 2 calls failed"},
		"k6, HTTP, its own word":    {k6("http", `,"status":"404","expected_response":"true"`), 0, ""},
		"k6, HTTP, no answer":       {k6("http", `,"status":"0"`), 1, "1 of 1 calls failed"},
		"k6, HTTP, nothing":         {k6("http", ""), unknown, "does not say which calls failed"},
		"jmeter":                    {jtl("responseCode,success", "500,true"), 0, ""},
		"jmeter, 500":               {jtl("responseCode", "500"), 1, "1 of 1 calls failed"},
		"jmeter, 302":               {jtl("responseCode", "302"), 0, ""},
		"jmeter, no answer":         {jtl("responseCode", "Non HTTP response code: java.net.X"), 1, "1 of 1 calls failed"},
		"jmeter, a word":            {jtl("responseCode", "OK"), unknown, "does not say which calls failed"},
		"jmeter, nothing":           {jtl("threadName", "b"), unknown, "does not say which calls failed"},
		"jmeter, XML, 500":          {xml(`rc="500"`), 1, "1 of 1 calls failed"},
		"jmeter, XML, its own word": {xml(`rc="500" s="true"`), 0, ""},
		"jmeter, XML, nothing":      {xml(""), unknown, "does not say which calls failed"},
		"hyperfine":                 {`{"results":[{"command":"a","times":[1,2],"exit_codes":[0,0]}]}`, 0, ""},
		"hyperfine, no codes":       {`{"results":[{"command":"a","times":[1,2]}]}`, unknown, ""},
		"hyperfine, failed":         {`{"results":[{"command":"a","times":[1,2],"exit_codes":[127,0]}]}`, 1, "1 run ended with another exit code"},
		"hyperfine, codes are cut":  {`{"results":[{"command":"a","times":[1,2,3],"exit_codes":[0]}]}`, 2. / 3, "2 runs without an exit code count as failed"},
		"hyperfine, a median":       {`{"results":[{"command":"a","median":1,"exit_codes":[0,null]}]}`, .5, "1 run ended with another exit code"},
		"Go":                        {"BenchmarkA 10 5 ns/op\nPASS\nok \tx\t1s\n", unknown, ""},
		"Go, a benchmark failed":    {"BenchmarkA 10 5 ns/op\n--- FAIL: BenchmarkB\nFAIL\n", unknown, `says "--- FAIL: BenchmarkB": what failed`},
		"Go, a part of one failed":  {"BenchmarkA 10 5 ns/op\n    --- FAIL: BenchmarkB/c\n", unknown, `says "--- FAIL: BenchmarkB/c": what failed`},
		"Go, a package failed":      {"BenchmarkA 10 5 ns/op\nFAIL\tx [build failed]\n", unknown, `says "FAIL·x [build failed]": what failed`},
		"k6, gRPC, OK":              {k6("grpc", `,"status":"0"`), 0, ""},
		"k6, gRPC, unavailable":     {k6("grpc", `,"status":"14"`), 1, "1 of 1 calls failed"},
		"k6, gRPC, without a code":  {k6("grpc", ""), unknown, "does not say which calls failed"},
		"k6, gRPC, some without it": {k6("grpc", "", `,"status":"0"`), .5, "of 1 of 2 calls the file does not say"},
	} {
		d, err := importer.Read(strings.NewReader(c.src), "f", "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := float64(unknown)
		for _, s := range d.Series {
			if s.Metric == "error" {
				got = s.Repetitions[0].Values[0]
			}
			if s.Metric == "goodput" && c.failed == unknown {
				t.Errorf("%s: a goodput of %+v was made up", name, s.Repetitions)
			}
		}
		said := strings.Join(d.Warnings, "; ")
		if got != c.failed || !strings.Contains(said, c.warned) || strings.Contains(said, " failed") != (c.warned != "") {
			t.Errorf("%s: a share of %v, want %v; warnings %q, want %q", name, got, c.failed, said, c.warned)
		}
	}
}

// TestGoConfiguration: settings that vary within a file make treatments; constant ones are no levels.
func TestGoConfiguration(t *testing.T) {
	const src = `goos: linux
enforcer: none
pkg: a
BenchmarkOpen-4 10 100 ns/op
BenchmarkOpen 10 100 ns/op
enforcer: seccomp
BenchmarkOpen-4 20 200 ns/op 5 B/op 7 MB/s
pkg: b
BenchmarkOpen-4 30 300 ns/op
`
	d := parsed(t, src, importer.GoBench)
	want := []string{
		"gobench", "enforcer=none gomaxprocs=4 | a.Open | wall | 1 of 1", "enforcer=none | a.Open | wall | 1 of 1",
		"enforcer=seccomp gomaxprocs=4 | a.Open | wall | 1 of 1",
		"enforcer=seccomp gomaxprocs=4 | a.Open | allocated | 1 of 1",
		"enforcer=seccomp gomaxprocs=4 | b.Open | wall | 1 of 1",
	}
	if diff := cmp.Diff(want, seriesOf(d)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := d.Series[2].Repetitions[0].N; n != 20 {
		t.Errorf("N is %d, want the 20 of the line", n)
	}
	if !slices.ContainsFunc(d.Notes, func(s string) bool { return strings.Contains(s, "unit MB/s") }) {
		t.Errorf("nothing is said about MB/s: %q", d.Notes)
	}
	if want := map[string]string{"goos": "linux"}; !maps.Equal(d.Made, want) {
		t.Errorf("all was made with %v, want %v: the rest varies", d.Made, want)
	}
}

// TestSlices: calls are cut into slices in the order in which they were sent, whatever their order in the file, and
// none is lost.
func TestSlices(t *testing.T) {
	var lines []string
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const n = 1000
	for i := range n {
		k := (i * 617) % n // a permutation
		code := 200
		if k >= n-50 {
			code = 503
		}
		at := start.Add(time.Duration(k) * 10 * time.Millisecond)
		lines = append(lines, fmt.Sprintf(
			`{"attack":"x","code":%d,"timestamp":%q,"latency":%d,"method":"GET","url":"http://h/?%d"}`, code,
			at.Format(time.RFC3339Nano), (k+1)*1000, k))
	}
	d := parsed(t, strings.Join(lines, "\n"), "")
	if !d.Started.Equal(start) {
		t.Errorf("started %v, want %v", d.Started, start)
	}
	byMetric := map[string][]importer.Repetition{}
	for _, s := range d.Series {
		byMetric[s.Metric] = s.Repetitions
	}
	next := 1.0
	for i, r := range byMetric["service"] {
		for _, v := range r.Values {
			if math.Abs(v-next*1e-6) > 1e-12 {
				t.Fatalf("slice %d holds %v where %v comes next", i, v, next*1e-6)
			}
			next++
		}
		if g := byMetric["goodput"][i].Values[0]; i < 19 && math.Abs(g-100) > 1e-6 {
			t.Errorf("goodput of slice %d is %v, want 100", i, g)
		}
	}
	if next != n+1 || len(byMetric["service"]) != 20 {
		t.Errorf("%v calls in %d slices", next-1, len(byMetric["service"]))
	}
	if last := byMetric["error"][19].Values[0]; last != 1 || byMetric["goodput"][19].Values[0] != 0 ||
		byMetric["error"][18].Values[0] != 0 {
		t.Errorf("the share of failures in the last slice is %v, want 1", last)
	}
}

// TestManyNames: requests whose names contain numbers do not become as many operations.
func TestManyNames(t *testing.T) {
	var b strings.Builder
	b.WriteString("timeStamp,elapsed,label,success\n")
	for i := range 100 {
		fmt.Fprintf(&b, "%d,30,/user/%d,true\n", 1763632800000+i, i)
	}
	d := parsed(t, b.String(), "")
	if len(d.Series) == 0 || d.Series[0].Operation != "requests" || d.Series[0].Values() != 100 {
		t.Errorf("got series %q, want one operation with 100 values", seriesOf(d))
	}
}

// TestVaryingLevel: two attacks in one file are two treatments.
func TestVaryingLevel(t *testing.T) {
	var lines []string
	for i, attack := range []string{"none", "seccomp", "none", "seccomp"} {
		lines = append(lines, fmt.Sprintf(`{"attack":%q,"code":200,"timestamp":"2026-01-02T03:04:0%dZ","latency":5}`, attack,
			i))
	}
	d := parsed(t, strings.Join(lines, "\n"), "")
	if got := seriesOf(d); !strings.HasPrefix(got[1], "attack=none | requests") ||
		!strings.Contains(strings.Join(got, "\n"), "attack=seccomp | requests") {
		t.Errorf("got series %q, want two treatments", got)
	}
}

// TestMalformedLines: a malformed line is skipped and named.
func TestMalformedLines(t *testing.T) {
	const k6 = `{"type":"Point","metric":"http_req_duration","data":{"time":"2026-01-02T03:04:05Z","value":12.5,"tags":{"name":"u"}}}`
	const vegeta = `{"code":200,"timestamp":"2026-01-02T03:04:05Z","latency":25}`
	const jtl = "timeStamp,elapsed,label,success\n1763632800000,354,login,true\n"
	for _, c := range []struct {
		name, src, cause string
		line             int
	}{
		{"count", "BenchmarkA 10 5 ns/op\nBenchmarkA ten 5 ns/op\n", "iteration count", 2},
		{"unit", "BenchmarkA 10 5 ns/op\n\nBenchmarkA 10 5\n", "missing units", 3},
		{"no time", "BenchmarkA 10 5 ns/op\nBenchmarkA 10 -5 ns/op\n", "-5 ns/op is no cost of a call", 2},
		{"infinite", "BenchmarkA 10 5 ns/op\nBenchmarkA 10 +Inf ns/op\n", "no time", 2},
		{"k6 cut off", k6 + "\n" + k6[:60], "no JSON", 2},
		{"k6 type", k6 + "\n" + `{"type":"Pint"}` + "\n", "neither Metric nor Point", 2},
		{"k6 value", k6 + "\n" + strings.Replace(k6, "12.5", "-1", 1) + "\n", "is no call", 2},
		{"k6 time", k6 + "\n" + strings.Replace(k6, "2026-01-02T", "yesterday ", 1) + "\n", "cannot be read", 2},
		{"vegeta", vegeta + "\n{}\n" + vegeta + "\n", "no latency", 2},
		{"vegeta latency", vegeta + "\n" + strings.Replace(vegeta, "25}", "-25}", 1), "is no latency", 2},
		{"jmeter field", jtl + "1763632800000,fast,login,true\n", "no number of milliseconds", 3},
		{"jmeter time", jtl + "noon,5,login,true\n", "timeStamp", 3},
		{"jmeter short", jtl + "1763632800000,5\n", "2 fields where the header has 4", 3},
		{"jmeter quote", jtl + "1763632800000,5,\"lo\"gin,true\n", "quote", 3},
		{"xml cut off", "<testResults>\n<sample t=\"5\" ts=\"7\" lb=\"a\"/>\n<sample t=\"5\" ts=", "EOF", 3},
		{
			"xml attribute", "<testResults>\n<sample t=\"5\" ts=\"7\" lb=\"a\"/>\n<sample t=\"x\" ts=\"7\"/></testResults>",
			"no number", 3,
		},
	} {
		d, err := importer.Read(strings.NewReader(c.src), "f", "")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(d.Findings) != 1 || d.Malformed != 1 || d.Findings[0].Line != c.line ||
			!strings.Contains(d.Findings[0].Cause, c.cause) || d.Findings[0].Next == "" {
			t.Errorf("%s: findings %+v, want one in line %d about %q", c.name, d.Findings, c.line, c.cause)
		}
		if len(d.Warnings) == 0 || !slices.ContainsFunc(d.Warnings,
			func(s string) bool { return strings.Contains(s, "malformed") }) {
			t.Errorf("%s: no warning in %q", c.name, d.Warnings)
		}
	}
}

// TestRejectedFiles: the error says where and why, and what to do.
func TestRejectedFiles(t *testing.T) {
	for _, c := range []struct {
		name, src string
		format    importer.Format
		want      []string
	}{
		{"empty", " \n", "", []string{"no result was found", "empty"}},
		{"prose", "Dear reader,\n", "", []string{"of no tool", "--format"}},
		{"other JSON", `{"a":1,"b":2}`, "", []string{"a, b", "--format"}},
		{"go test -json", `{"Action":"output","Output":"x"}`, "", []string{"without -json"}},
		{"unknown format", "x", "csv", []string{"no format \"csv\"", "gobench"}},
		{
			"cut off", "{\"results\": [\n{\"command\": \"x\",\n", importer.Hyperfine,
			[]string{"f:3:", "cut off", "--export-json"},
		},
		{"wrong type", "{\"results\":\n[{\"command\": 5}]}", "", []string{"f:2:", "number"}},
		{"no benchmark", `[{"mode":"avgt"}]`, "", []string{"no benchmark", "-rf json"}},
		{"negative", `{"results":[{"command":"c","times":[-1]}]}`, "", []string{"run 1", "no time"}},
		{"no median", `{"latencies":{"99th":5}}`, "", []string{"50th"}},
		{"no header", "1763632800000,354,login,200\n", importer.JMeter, []string{"header line", "print_field_names"}},
		{
			"sums of calls", "timeStamp,elapsed,label,SampleCount\n1763632800000,354,login,1\n1763632800400,3540,login,10\n",
			importer.JMeter,
			[]string{"f:3:", "sum of several calls", "mode=StrippedBatch"},
		},
		{
			"sums of calls, XML", "<testResults>\n<sample t=\"50\" ts=\"7\" lb=\"a\" sc=\"10\" ec=\"3\"/></testResults>", "",
			[]string{"f:2:", "sum of several calls"},
		},
		{"no XML", "<html><p></html>", "", []string{"f:1:", "XML"}},
		{"only bad lines", "BenchmarkA x\n", "", []string{"no result", "f:1:"}},
		{"no calls", `{"type":"Point","metric":"vus","data":{}}`, "", []string{"no result", "metric vus"}},
		{
			"long line", `{"type":"Point","metric":"` + strings.Repeat("x", 2<<20), importer.K6,
			[]string{"f:1:", "longer than"},
		},
	} {
		_, err := importer.Read(strings.NewReader(c.src), "f", c.format)
		if err == nil {
			t.Errorf("%s: imported", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
	}
	var f *importer.Finding
	if _, err := importer.Read(strings.NewReader("{\"results\":\n5}"), "f", ""); !errors.As(err, &f) || f.Line != 2 {
		t.Errorf("%v is no finding in line 2", err)
	}
}

// TestHostileNames: names of operations are shown to people, so they cannot contain line breaks or terminal commands.
func TestHostileNames(t *testing.T) {
	const src = "{\"results\":[{\"command\":\"a\\u001b[31mb\\nc\",\"times\":[1]," +
		"\"parameters\":{\"x\\r\":\"\\u0007\"}},{\"command\":\"%s\",\"times\":[1]}]}"
	d := parsed(t, fmt.Sprintf(src, strings.Repeat("y", 5000)), "")
	x := d.Series[0].Treatment
	if x.ID != "a·[31mb·c" || !cmp.Equal(x.Levels, map[string]string{"x·": "·"}) {
		t.Errorf("%q, levels %q", x.ID, x.Levels)
	}
	if n := len(d.Series[1].Treatment.ID); n > 400 {
		t.Errorf("a name of %d bytes", n)
	}
}

// TestPasswordsOfURLs: no name has the user and the password of a URL.
func TestPasswordsOfURLs(t *testing.T) {
	for from, want := range map[string]string{
		"http://u:s3cret@h/x": "http://h/x", "GET https://u:s3@cret@h:8/x@y?a=@b": "GET https://h:8/x@y?a=@b",
		"curl 'http://u@h' http://v:s3cret@i": "curl 'http://h' http://i", "http://h/a@b": "http://h/a@b", "a@b": "a@b",
		"://u:s3cret@": "://", "http://u:s3cret@h://v:w@i": "http://h://i",
	} {
		d := parsed(t, "timeStamp,elapsed,label,success\n1700000000000,5,"+from+",true\n", importer.JMeter)
		if got := d.Series[0].Operation; got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}

// TestSameNameTwice: two results of one name are two measurements, and are not mixed.
func TestSameNameTwice(t *testing.T) {
	d := parsed(t, `{"results":[{"command":"c","times":[1]},{"command":"c","times":[2]},{"command":"c","times":[3]}]}`, "")
	if want := []string{
		"hyperfine", "c | command | wall | 1 of 1", "c (2) | command | wall | 1 of 1",
		"c (3) | command | wall | 1 of 1",
	}; !cmp.Equal(want, seriesOf(d)) {
		t.Errorf("got series %q, want %q", seriesOf(d), want)
	}
	const jmh = `{"benchmark":"b","mode":"avgt","threads":%d,"primaryMetric":{"scoreUnit":"us/op","rawData":[[1]]}}`
	d = parsed(t, "["+fmt.Sprintf(jmh, 1)+","+fmt.Sprintf(jmh, 4)+"]", "")
	if want := []string{
		"jmh", "imported | b | wall | 1 of 1",
		"imported | b (2) | wall | 1 of 1",
	}; !cmp.Equal(want, seriesOf(d)) {
		t.Errorf("got series %q, want %q", seriesOf(d), want)
	}
}

// TestGzip: k6 compresses a file whose name ends in .gz.
func TestGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte("BenchmarkX 10 250 ns/op\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := importer.Read(bytes.NewReader(b.Bytes()), "f", "")
	if err != nil || d.Format != importer.GoBench || d.Series[0].Repetitions[0].N != 10 {
		t.Errorf("got %+v, %v; want results of 10 iterations", d, err)
	}
	if _, err := importer.Read(bytes.NewReader(b.Bytes()[:b.Len()/2]), "f", ""); err == nil {
		t.Error("half of a compressed file was imported")
	}
}

// TestSummariesHaveNoInterval: figures without single values have no interval, and the report says so.
func TestSummariesHaveNoInterval(t *testing.T) {
	for _, name := range []string{"k6-export.json", "k6-summary.json", "vegeta-report.json", "hyperfine-summary.json"} {
		d := readSample(t, name)
		if !slices.ContainsFunc(d.Warnings, func(s string) bool { return strings.Contains(s, "summary only") }) {
			t.Errorf("%s: warnings %q, want one about the summary", name, d.Warnings)
		}
		for _, s := range d.Series {
			if s.Values() != 1 {
				t.Errorf("%s: %d values of %s were made up from a summary", name, s.Values(), s.Metric)
			}
		}
	}
}

// TestGoAllocations: bytes and objects are read from each line, also from lines without a time.
func TestGoAllocations(t *testing.T) {
	const src = `BenchmarkOpen-4 20 200 ns/op 12345678 B/op 3 allocs/op
BenchmarkOpen-4 20 210.7 ns/op 0 B/op 0 allocs/op
BenchmarkClose-4 20 5 B/op 1 allocs/op
BenchmarkClose-4 20 -5 B/op 1 allocs/op
`
	d := parsed(t, src, "")
	got := map[string]map[string][]float64{}
	for _, metric := range []string{"wall", "allocated", "allocations"} {
		got[metric] = valuesOf(d, metric)
	}
	want := map[string]map[string][]float64{
		"wall": {"Open": {200e-9, 210.7e-9}}, "allocated": {"Open": {12345678, 0}, "Close": {5}},
		"allocations": {"Open": {3, 0}, "Close": {1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d.Malformed != 1 || !strings.Contains(d.Findings[0].Cause, "-5 B/op is no cost of a call") {
		t.Errorf("of a negative number of bytes: %d, %+v", d.Malformed, d.Findings)
	}
}

// TestEndlessConfigurationIsBounded: what benchfmt keeps of a hostile file is bounded, and the results in it are read.
func TestEndlessConfigurationIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("goos: linux\nBenchmarkX 1 1 ns/op\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "k%d: v\nUnit k%d a=b\n", i, i)
	}
	if d, err := importer.Read(strings.NewReader(b.String()), "f", importer.GoBench); err != nil || len(d.Series) != 1 {
		t.Errorf("got %+v, %v; want one series", d, err)
	}
	b.WriteString("BenchmarkX 1 1 ns/op\n")
	if _, err := importer.Read(strings.NewReader(b.String()), "f", importer.GoBench); err == nil ||
		!strings.Contains(err.Error(), "lines of configuration") {
		t.Errorf("a thousand keys: %v", err)
	}
}

// TestHostileBenchmarksTakeLittleMemory: what is kept of names, configuration and units does not grow with the file.
func TestHostileBenchmarksTakeLittleMemory(t *testing.T) {
	const most = 48 << 20
	long := strings.Repeat("x", 60_000)
	for name, c := range map[string]struct {
		lines func(b *strings.Builder)
		want  string // in the error
	}{
		"long configuration that changes": {func(b *strings.Builder) {
			for i := range 99 {
				fmt.Fprintf(b, "k%d: %s\n", i, long)
			}
			for range 20 {
				b.WriteString("k: a\nBenchmarkX 1 1 ns/op\nk: b\nBenchmarkX 1 1 ns/op\n")
			}
		}, ""},
		"much configuration that changes": {func(b *strings.Builder) {
			for i := range 99 {
				fmt.Fprintf(b, "k%d: %s\n", i, long[:200])
			}
			for i := range 20_000 {
				fmt.Fprintf(b, "k: %d\nBenchmarkX 1 1 ns/op\n", i)
			}
		}, "500 treatments"},
		"two of much configuration": {func(b *strings.Builder) {
			for i := range 99 {
				fmt.Fprintf(b, "k%d: %s\n", i, long[:200])
			}
			for range 4_000 {
				b.WriteString("k: a\nBenchmarkX 1 1 ns/op\nk: b\nBenchmarkX 1 1 ns/op\n")
			}
		}, ""},
		"long names": {func(b *strings.Builder) {
			for i := range 1000 {
				fmt.Fprintf(b, "BenchmarkX%d%s 1 1 ns/op\n", i, long)
			}
		}, ""},
		"many names": {func(b *strings.Builder) {
			for i := range 200_000 {
				fmt.Fprintf(b, "BenchmarkX%d%s 1 1 ns/op\n", i, long[:200])
			}
		}, "larger than can be imported"},
		"long units": {func(b *strings.Builder) {
			for i := range 1000 {
				fmt.Fprintf(b, "BenchmarkX 1 1 ns/op 1 ns%d%s\n", i, long)
			}
		}, "different units"},
		"units of malformed lines": {func(b *strings.Builder) {
			for i := range 1000 {
				fmt.Fprintf(b, "BenchmarkX 1 1 ns%d%s x\n", i, long)
			}
		}, "different units"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			c.lines(&b)
			d, err := importer.Read(memtest.Held(t, strings.NewReader(b.String()), most), "f", importer.GoBench)
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.want == "" && (err != nil || len(d.Series) == 0) {
				t.Errorf("%+v, %v; want a series", d, err)
			}
		})
	}
}

// TestWrite: the record contains the values that were read, and says that they were not interleaved.
func TestWrite(t *testing.T) {
	for _, name := range []string{"hyperfine.json", "jmh.json", "k6.json", "go-before.txt", "vegeta-report.json"} {
		d := readSample(t, name)
		dir, err := d.Write(t.TempDir(), record.Header{Experiment: record.Experiment{Name: "n", SHA256: "5a"}},
			clock.System{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Warnings) > 0 || !r.Plan.Unblocked || r.Header.Area != importer.Area || r.Header.Question != "compare" ||
			r.Finish == nil || r.Header.Experiment.SHA256 != "5a" {
			t.Errorf("%s: got header %+v, plan %+v, warnings %q", name, r.Header, r.Plan, r.Warnings)
		}
		if !d.Started.IsZero() && !r.Header.Started.Equal(d.Started) {
			t.Errorf("%s: started %v, want %v", name, r.Header.Started, d.Started)
		}
		type key struct{ treatment, operation, metric string }
		want, got := map[key][]importer.Repetition{}, map[key][]importer.Repetition{}
		for _, s := range d.Series {
			want[key{s.Treatment.ID, s.Operation, s.Metric}] = s.Repetitions
		}
		for i, x := range r.Trials {
			if !x.Complete() || x.Index != i {
				t.Errorf("%s: trial %d has index %d, complete %v", name, i, x.Index, x.Complete())
			}
			for _, b := range x.Batches {
				k := key{b.Treatment, b.Operation, b.Metric}
				if b.Block != len(got[k]) {
					t.Errorf("%s: %v has block %d where %d comes next", name, k, b.Block, len(got[k]))
				}
				got[k] = append(got[k], importer.Repetition{N: b.N, Values: b.Values})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
