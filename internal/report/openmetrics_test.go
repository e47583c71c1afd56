package report

import (
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
)

func TestOpenMetricsKeepsTheSpecification(t *testing.T) {
	for name, r := range samples() {
		if _, err := readOpenMetrics(string(encode(t, OpenMetrics, r))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenMetricsSurvivesHostileNames(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, s := range hostileTexts {
		for name, r := range samples() {
			spoil(r, s)
			if _, err := readOpenMetrics(string(encode(t, OpenMetrics, r))); err != nil {
				t.Errorf("%s with %q: %v", name, s, err)
			}
		}
	}
}

func TestOpenMetricsEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", `a"b`: `a\"b`, `a\b`: `a\\b`, "a\nb": `a\nb`, "a\tb": "a b", "a\x00b": "a�b", "\xff": "�", "\u202e": "�", "漢": "漢",
	} {
		if got := escapeLabel(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestOpenMetricsSaysWhatTheReportSays compares values: right families, base units, right labels.
func TestOpenMetricsSaysWhatTheReportSays(t *testing.T) {
	m, err := readOpenMetrics(string(encode(t, OpenMetrics, acceptQueue())))
	if err != nil {
		t.Fatal(err)
	}
	const run = `experiment="gke-2020",`
	for id, want := range map[string]float64{
		`tare_capacity_per_second{area="turnpike",` + run + `question="capacity",treatment="default"}`:                                                  150,
		`tare_goodput_per_second{area="turnpike",` + run + `operation="token",question="capacity",treatment="default"}`:                                 151.8,
		`tare_response_seconds{area="turnpike",` + run + `operation="token",quantile="0.99",question="capacity",treatment="default"}`:                   30.001,
		`tare_calls_total{area="turnpike",` + run + `operation="token",outcome="timeout",question="capacity",treatment="default"}`:                      2050,
		`tare_budget_verdict{area="turnpike",budget="capacity >= 100/s",` + run + `question="capacity",tare_budget_verdict="pass",treatment="default"}`: 1,
		`tare_budget_verdict{area="turnpike",budget="capacity >= 100/s",` + run + `question="capacity",tare_budget_verdict="fail",treatment="default"}`: 0,
		`tare_budget_limit{area="turnpike",budget="response.p99 <= 500ms at 50/s",` + run + `question="capacity",treatment="default",unit="seconds"}`:   0.5,
		`tare_target_cpu_seconds_total{area="turnpike",` + run + `question="capacity",target="endpoint",treatment="default"}`:                           1.24,
		`tare_target_resident_peak_bytes{area="turnpike",` + run + `question="capacity",target="endpoint",treatment="default"}`:                         44e6,
		`tare_generator_lateness_seconds{area="turnpike",` + run + `quantile="0.99",question="capacity"}`:                                               40e-6,
		`tare_run_verdict{area="turnpike",` + run + `question="capacity",tare_run_verdict="inconclusive"}`:                                              1,
		`tare_run_start_timestamp_seconds{area="turnpike",` + run + `question="capacity"}`:                                                              1772366400,
		`tare_capacity_limit_info{area="turnpike",certainty="shown",` + run +
			`limit="cpu-quota",question="capacity",treatment="default"}`: 1,
		`tare_capacity_failure_info{area="turnpike",certainty="shown",` + run +
			`failure="accept-queue",question="capacity",treatment="default"}`: 1,
		`tare_run_info{area="turnpike",commit="947ae69",` + run + `file="gke-2020.yaml",host="host",kernel="Linux 6.1.0",question="capacity",seed="4211",` +
			`sha256="0f3a",version="0.1.0"}`: 1,
	} {
		got, ok := m.points[id]
		if !ok {
			t.Errorf("there is no %s", id)
		} else if !equal(got, want) {
			t.Errorf("%s is %v, want %v", id, got, want)
		}
	}
}

func TestOpenMetricsLeavesOutWhatIsUnknown(t *testing.T) {
	out := string(encode(t, OpenMetrics, atLeast()))
	if !strings.Contains(out, "tare_capacity_at_least_per_second{") {
		t.Errorf("no lower bound:\n%s", out)
	}
	for _, absent := range []string{
		"tare_capacity_per_second", "tare_capacity_limit", "tare_capacity_failure", "tare_response", "tare_target",
		"tare_effect", "tare_budget_upper",
	} {
		if strings.Contains(out, absent) {
			t.Errorf("%s is there although it is not known:\n%s", absent, out)
		}
	}
}

func TestOpenMetricsKeepsWhatIsSaidTwice(t *testing.T) {
	r := acceptQueue()
	r.Operations = append(r.Operations, r.Operations[0])
	r.Budgets = append(r.Budgets, r.Budgets[0])
	r.Target[0].CPUSeconds, r.Target[0].CPUPerOp = new(-1.0), new(math.Inf(1))
	out := string(encode(t, OpenMetrics, r))
	if _, err := readOpenMetrics(out); err != nil {
		t.Error(err)
	}
	if n := strings.Count(out, `outcome="ok"`); n != 2 {
		t.Errorf("%d samples of calls that were ok, want both", n)
	}
	if strings.Contains(out, "tare_target_cpu_seconds") {
		t.Error("CPU time that went backwards was written as a counter")
	}
}

func TestOpenMetricsReaderSeesErrors(t *testing.T) {
	const head = "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds Help.\n"
	const count = "# TYPE c counter\n# HELP c Help.\n"
	const set = "# TYPE s stateset\n# HELP s Help.\n"
	if _, err := readOpenMetrics(head + "a_seconds{x=\"1\"} 1\na_seconds{x=\"2\"} NaN\n" + count + "c_total 1e+06\n" +
		set + "s{s=\"x\"} 1\ns{s=\"y\"} 0\n# EOF\n"); err != nil {
		t.Fatalf("what is right is refused: %v", err)
	}
	for name, text := range map[string]string{
		"no end":                      head + "a_seconds 1\n",
		"something after the end":     "# EOF\n" + head + "a_seconds 1\n",
		"end in the middle of a line": head + "a_seconds 1 # EOF\n",
		"unit that is no suffix":      "# TYPE a gauge\n# UNIT a seconds\n# HELP a H.\na 1\n# EOF\n",
		"unit in the name only":       "# TYPE a_seconds gauge\n# HELP a_seconds H.\na_seconds 1\n# EOF\n",
		"counter without total":       count + "c 1\n# EOF\n",
		"negative counter":            count + "c_total -1\n# EOF\n",
		"counter that is no number":   count + "c_total NaN\n# EOF\n",
		"same sample twice":           head + "a_seconds{x=\"1\",y=\"2\"} 1\na_seconds{y=\"2\",x=\"1\"} 2\n# EOF\n",
		"same label twice":            head + "a_seconds{x=\"1\",x=\"2\"} 1\n# EOF\n",
		"type twice":                  "# TYPE a gauge\n# TYPE a gauge\n# HELP a H.\na 1\n# EOF\n",
		"interleaved families":        head + "a_seconds 1\n" + count + "c_total 1\n# HELP a_seconds More.\n# EOF\n",
		"sample of another family":    head + "b_seconds 1\n# EOF\n",
		"family without samples":      head + "# EOF\n",
		"bad escape":                  head + "a_seconds{x=\"\\t\"} 1\n# EOF\n",
		"open quote":                  head + "a_seconds{x=\"1} 1\n# EOF\n",
		"bad label name":              head + "a_seconds{x-y=\"1\"} 1\n# EOF\n",
		"bad number":                  head + "a_seconds 0x1p3\n# EOF\n",
		"timestamp":                   head + "a_seconds 1 1700000000\n# EOF\n",
		"control character":           head + "a_seconds{x=\"\x1b\"} 1\n# EOF\n",
		"not UTF-8":                   head + "a_seconds{x=\"\xff\"} 1\n# EOF\n",
		"empty line":                  head + "a_seconds 1\n\n# EOF\n",
		"info that is not one":        "# TYPE i info\n# HELP i H.\ni_info 2\n# EOF\n",
		"stateset without its label":  set + "s{x=\"y\"} 1\n# EOF\n",
		"stateset of two":             set + "s{s=\"x\"} 2\n# EOF\n",
		"scattered stateset":          set + "s{a=\"1\",s=\"x\"} 1\ns{a=\"2\",s=\"x\"} 1\ns{a=\"1\",s=\"y\"} 0\n# EOF\n",
		"names that meet": count +
			"c_total 1\n# TYPE c_created gauge\n# HELP c_created H.\nc_created 1\n# EOF\n",
		"unknown type":               "# TYPE a number\n# HELP a H.\na 1\n# EOF\n",
		"carriage return":            head + "a_seconds 1\r\n# EOF\n",
		"a sample before any family": "a_seconds 1\n# EOF\n",
		"unit of a stateset": "# TYPE s_ratio stateset\n# UNIT s_ratio ratio\n# HELP s_ratio H.\n" +
			"s_ratio{s_ratio=\"x\"} 1\n# EOF\n",
		"a comment of one's own":       "# hello\n# EOF\n",
		"no comma between labels":      head + "a_seconds{x=\"1\"y=\"2\"} 1\n# EOF\n",
		"descriptor after the samples": "# TYPE a gauge\n# HELP a H.\na 1\n# HELP a H.\n# EOF\n",
	} {
		if _, err := readOpenMetrics(text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func FuzzOpenMetrics(f *testing.F) {
	addFuzzSeeds(f)
	f.Fuzz(func(t *testing.T, which uint8, s, run, budget, status string, v float64, n uint64) {
		if _, err := readOpenMetrics(string(encode(t, OpenMetrics, fuzzed(which, s, run, budget, status, v,
			n)))); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOpenMetricsPageIsComplete compares the families that the samples have with those that the reference page lists.
func TestOpenMetricsPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/outputs.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, name := range regexp.MustCompile("`(tare_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		listed[name[1]] = true
	}
	written := map[string]bool{}
	all := samples()
	full := acceptQueue()
	full.Operations[0].Causes = []Cause{{Outcome: "timeout", Cause: "no answer", Calls: 1}}
	full.Target[0].StartSeconds = new(1.0)
	all["full"] = full
	for _, r := range all {
		m, err := readOpenMetrics(string(encode(t, OpenMetrics, r)))
		if err != nil {
			t.Fatal(err)
		}
		for name := range m.families {
			written[name] = true
		}
	}
	if d := cmp.Diff(written, listed); d != "" {
		t.Errorf("families (-written +on the page):\n%s", d)
	}
}
