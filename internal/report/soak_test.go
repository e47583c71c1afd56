package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tare/internal/design"
	"tare/internal/glossary"
	"tare/internal/metric"
)

// row is the row of a table whose first cell is name, by the heads of its columns.
func row(t *testing.T, x table, name string) map[string]string {
	t.Helper()
	for _, cells := range rowsOf(x) {
		if cells[0] != name {
			continue
		}
		out := map[string]string{}
		for i, c := range x {
			out[c.head] = cells[i]
		}
		return out
	}
	t.Fatalf("no row %q among %v", name, rowsOf(x))
	return nil
}

func rowsOf(x table) [][]string {
	out := make([][]string, x.rows())
	for i := range out {
		for _, c := range x {
			out[i] = append(out[i], c.cells[i])
		}
	}
	return out
}

// alarmTexts are what the notices of a report's alarms say.
func alarmTexts(r *Report) []string {
	return each(alarms(r), func(b block) string { return b.Notice.Text })
}

func TestSummaryIsJMeters(t *testing.T) {
	r := base("s")
	r.Question = "soak"
	op := Operation{
		Treatment: "default", Operation: "guard", Outcomes: Outcomes{
			OK: 60, Denied: 30, Wrong: 4, Refused: 1, Timeout: 2,
			ConnFailed: 2, Failed: 1,
		},
		Response: &Distribution{N: 100, Min: 0.001, Mean: 0.0205, Stddev: new(0.004), Max: 1.5}, BytesIn: new(uint64(204800)),
		BytesOut: new(uint64(51200)),
	}
	r.Operations = []Operation{op}
	r.Soak = []Soak{{Treatment: "default", Seconds: 50, Total: &Total{Operation: op}}}
	want := map[string]string{
		"label": "guard", "samples": "100", "average": "20.5 ms", "min": "1 ms", "max": "1.5 s", "std. dev.": "4 ms",
		"error %": "10%", "throughput": "2.000/s",
		"received": "4 KB/s", "sent": "1 KB/s", "avg. bytes": "2048.0",
	}
	if d := cmp.Diff(want, row(t, r.summary(), "guard")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	want["label"] = "TOTAL"
	if d := cmp.Diff(want, row(t, r.summary(), "TOTAL")); d != "" {
		t.Errorf("the total of one operation is not that operation (-want +got):\n%s", d)
	}
}

// TestTotalIsTheSum: what the total says of counts and rates is what its labels add up to.
func TestTotalIsTheSum(t *testing.T) {
	r := xacmlSoak()
	s := r.summary()
	var samples, rate float64
	for _, cells := range rowsOf(s)[:len(rowsOf(s))-1] {
		n, err := strconv.ParseFloat(cells[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		v, err := strconv.ParseFloat(strings.TrimSuffix(cells[7], "/s"), 64)
		if err != nil {
			t.Fatal(err)
		}
		samples, rate = samples+n, rate+v
	}
	all := row(t, s, "TOTAL")
	if got, _ := strconv.ParseFloat(all["samples"], 64); got != samples {
		t.Errorf("total of %v samples, its labels have %v", got, samples)
	}
	if got, _ := strconv.ParseFloat(strings.TrimSuffix(all["throughput"], "/s"), 64); math.Abs(got-rate) > 0.1 {
		t.Errorf("total of %v/s, its labels have %v/s", got, rate)
	}
}

func TestTrendsInWords(t *testing.T) {
	for _, c := range []struct {
		name string
		d    Drift
		want string
	}{
		{
			"rss",
			Drift{PerHour: 60 << 20, Lo: new(58.0 * mebi), Hi: new(62.0 * mebi), Unit: metric.Bytes, Verdict: Regressed},
			"rss grows by 60 MiB/h [58, 62]: a leak?",
		},
		{
			"rss",
			Drift{PerHour: -3 << 20, Lo: new(-4.0 * mebi), Hi: new(-2.0 * mebi), Unit: metric.Bytes, Verdict: Improved},
			"rss shrinks by 3 MiB/h [2, 4]",
		},
		{"rss", Drift{
			PerHour: 1 << 20, Lo: new(512.0 * 1024), Hi: new(1.5 * mebi), Unit: metric.Bytes, Verdict: Slower,
			Margin: 0.05,
		}, "rss grows by 1 MiB/h [0.5, 1.5], size undecided"},
		{
			"response.p99",
			Drift{PerHour: 0.0012, Lo: new(0.0002), Hi: new(0.0022), Unit: metric.Seconds, Verdict: Regressed},
			"response.p99 rises by 1.2 ms/h [0.2, 2.2]",
		},
		{
			"cpu",
			Drift{PerHour: -12e-6, Lo: new(-20e-6), Hi: new(-4e-6), Unit: metric.CPUSeconds, Verdict: Faster},
			"cpu falls by 12 µs/h [4, 20], size undecided",
		},
		{"rss", Drift{PerHour: 1 << 20, Unit: metric.Bytes, Verdict: EffectInconclusive}, "rss grows by 1 MiB/h"},
		{"rss", Drift{
			PerHour: 96 << 10, Lo: new(-9.92 * mebi), Hi: new(9965 * 1024.0), Unit: metric.Bytes,
			Verdict: Equivalent,
		}, "rss grows by 0.0938 MiB/h [-9.92, 9.73]"},
		{"cpu", Drift{
			PerHour: 229e-6, Lo: new(-782e-6), Hi: new(0.00124), Unit: metric.CPUSeconds,
			Verdict: EffectInconclusive,
		}, "cpu rises by 0.229 ms/h [-0.782, 1.24]"},
		{"response.mean", Drift{
			Total: 0.02, JumpedAt: new(270.0), ChangedFrom: new(269.0), ChangedTo: new(271.5), Unit: metric.Seconds,
			Verdict: Regressed,
		}, "response.mean jumps by +20 ms, at once after 4m30s (within 2.5s)"},
		{"response.mean", Drift{
			Total: -0.02, ChangedFrom: new(260.0), ChangedTo: new(315.0), Unit: metric.Seconds, Verdict: Improved,
		}, "response.mean falls by 20 ms between 4m20s and 5m15s"},
	} {
		if got := c.d.Trend(c.name); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestSentenceSaysWhatHappened: each way in which a soak can go has its own words, and none is called held that never
// answered.
func TestSentenceSaysWhatHappened(t *testing.T) {
	good, none := &Total{Operation: Operation{Outcomes: Outcomes{OK: 99, Timeout: 1}}},
		&Total{Operation: Operation{Outcomes: Outcomes{Timeout: 10}}}
	for _, c := range []struct {
		s    Soak
		want string
	}{
		{
			Soak{Seconds: 100, Planned: 100, Workers: 10, Total: good},
			"held 100 s with 10 workers: 100 calls, 1.000/s in all, errors 1%",
		},
		{
			Soak{Seconds: 100, Planned: 100, Rate: 20, Total: good},
			"held 100 s with 20/s offered: 100 calls, 1.000/s in all, errors 1%",
		},
		{
			Soak{Seconds: 100, Planned: 3600, Workers: 1, Total: good},
			"held 100 s of 1h that were planned with 1 worker: 100 calls, 1.000/s in all, errors 1%",
		},
		{
			Soak{Seconds: 100, Planned: 100, Total: none},
			"did not answer well once in 100 s: 10 calls, 0.1000/s in all, errors 100%",
		},
		{
			Soak{
				Seconds: 100, Planned: 100, Rate: 20, Total: &Total{Operation: Operation{Outcomes: Outcomes{OK: 60, Refused: 40}}},
				Outages: []Outage{{Start: 8, End: 12, Calls: 20}},
			},
			"answered 60% of the calls well in 100 s with 20/s offered, and none for 4 s in 1 outage: 100 calls, 1.000/s in " +
				"all, errors 40%",
		},
		{Soak{Planned: 100}, "nothing was measured: the run ended in its warm-up"},
		{
			Soak{
				Seconds: 100, Planned: 100, WarmUpSeconds: 10, Total: good,
				Outages: []Outage{{Start: 8, End: 12}, {Start: 50, End: 60}}, Restarts: []float64{60, 70},
			},
			"held 100 s, but for 12 s in 2 outages: 100 calls, 1.000/s in all, errors 1%; its process was replaced twice",
		},
		{
			Soak{
				Seconds: 100, Planned: 100, WarmUpSeconds: 10, WindowSeconds: 2, Rate: 50,
				Total: &Total{Operation: Operation{Outcomes: Outcomes{OK: 20, ConnFailed: 80}, Causes: []Cause{
					{"conn_failed", "connection refused", 78}, {"conn_failed", "connection reset", 2},
				}}},
				Outages: []Outage{{Start: 12, End: 14}, {Start: 30, End: 110}},
			},
			"answered until 30 s after the load began, and no call was answered well in the last 80 s of 100 s with 50/s " +
				"offered; before that it did not answer for 2 s in 1 outage: 100 calls, 1.000/s in all, errors 80% (most: " +
				"connection refused)",
		},
		{
			Soak{
				Seconds: 100, Planned: 100, WindowSeconds: 1, Total: good, Outages: []Outage{{Start: 99, End: 100}},
			},
			"held 100 s, but for 1 s in 1 outage: 100 calls, 1.000/s in all, errors 1%",
		},
		{
			Soak{
				Seconds: 60, Planned: 60, Rate: 50, Behind: 2,
				BehindWhy: "the hypervisor took 9 % of this host's CPU time meanwhile",
				Total: &Total{Operation: Operation{
					Outcomes: Outcomes{OK: 3000},
					Response: &Distribution{N: 3000, P99: new(0.0201), OwnAtMost: map[string]float64{"p99": 0.0017}},
				}},
			},
			"held 60 s with 50/s offered: 3000 calls, 50.00/s in all, errors 0%, p99 20.1 ms, of which at most 1.7 ms is " +
				"the generator's own delay; for 2 s of it the generator sent most calls late (the hypervisor took 9 % of " +
				"this host's CPU time meanwhile)",
		},
		{
			Soak{Seconds: 100, Total: good, Drift: map[string]Drift{
				"cpu":          {Verdict: Equivalent, Margin: 0.05},
				"response.p99": {Verdict: Equivalent, Margin: 0.05}, "rss": {Verdict: EffectInconclusive},
			}},
			"held 100 s: 100 calls, 1.000/s in all, errors 1%; no drift of cpu and response.p99 over 5 %; whether rss " +
				"drifts is not decided",
		},
		{
			Soak{Seconds: 100, Total: good, Moments: []Moment{{WarmUp: true, Good: 1}, {Good: 1}}},
			"held 100 s: 100 calls, 1.000/s in all, errors 1%; the target's memory and CPU time were not watched",
		},
		{
			Soak{Seconds: 100, Total: good, Moments: []Moment{{Good: 1}, {Good: 1, CPU: new(0.1)}}},
			"held 100 s: 100 calls, 1.000/s in all, errors 1%; the target's memory was not watched",
		},
		{
			Soak{Seconds: 100, Total: good, Moments: []Moment{{Good: 1, CPU: new(0.1), RSS: new(1e6)}}},
			"held 100 s: 100 calls, 1.000/s in all, errors 1%",
		},
	} {
		if got := c.s.Sentence(); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

// TestLittleHasNoNegativeZero: a difference that rounds to nothing has no sign of its own.
func TestLittleHasNoNegativeZero(t *testing.T) {
	for observed, want := range map[float64]string{
		9.9999: "10 calls in progress, expected 10 (+0 %)",
		9.97:   "9.97 calls in progress, expected 10 (-0.3 %)",
		8:      "8 calls in progress, expected 10 (-20 %): they do not agree",
	} {
		if got := (&Little{Expected: 10, Observed: observed}).law(); got != "rate × mean response = "+want {
			t.Errorf("%v: %q", observed, got)
		}
	}
}

// TestNoIntervalIsNotShown: from 0 to infinity is no interval, and is not printed as one.
func TestNoIntervalIsNotShown(t *testing.T) {
	for _, b := range []Budget{
		{Text: "response.p99 <= 20ms", Unit: metric.Seconds, Estimate: new(0.0073), Lo: new(0.0)},
		{Text: "response.p99 <= 20ms", Unit: metric.Seconds, Estimate: new(0.0073)},
	} {
		if got := b.Found(); got != "7.3 ms" {
			t.Errorf("got %q", got)
		}
	}
}

// TestDisagreementsAreLoud: a count that differs stands at the top with both numbers, one that cannot be compared does
// not, and one that agrees is only in the table.
func TestDisagreementsAreLoud(t *testing.T) {
	r := xacmlSoak()
	r.Warnings = nil
	r.Answers = []AnswerCheck{
		{Treatment: "default", Answer: "permit", Client: 100, Target: 112, Unanswered: 3},
		{Treatment: "default", Answer: "deny", Client: 70, Target: 1, Reason: "the target was started anew"},
		{Treatment: "default", Answer: "indeterminate", Client: 5, Target: 5, Agrees: true},
	}
	want := []string{
		"guard-frequency: 7 of 283134 answers were not what was expected",
		"permit: the target counted 112, its callers 100 (+12, with 3 calls unanswered)",
	}
	if d := cmp.Diff(want, alarmTexts(r)); d != "" {
		t.Errorf("alarms (-want +got):\n%s", d)
	}
	for name, out := range map[string]string{
		"text":     string(encode(t, Style{Width: 400}.Text, r)),
		"markdown": string(encode(t, Markdown, r)),
	} {
		at, table := strings.Index(out, "the target counted 112, its callers 100"), strings.Index(out, "healthcheck")
		if at < 0 || at > table {
			t.Errorf("%s does not say at its top that the counts disagree:\n%s", name, out)
		}
		if !strings.Contains(out, "✗ DISAGREES") || !strings.Contains(out, "– not comparable") ||
			!strings.Contains(out, "✓ agrees") {
			t.Errorf("%s lacks a verdict on counts:\n%s", name, out)
		}
	}
	if checks := r.checks(!r.soaked()); len(rowsOf(checks)) != 3 {
		t.Errorf("a soak shows %d counts, want all three", len(rowsOf(checks)))
	}
	r.Answers[1].Target = -51
	if got := row(t, r.checks(!r.soaked()), "deny"); got["target"] != "" || got["difference"] != "" {
		t.Errorf("a count below 0 is shown: %v", got)
	}
	r.Question = "compare"
	if checks := r.checks(!r.soaked()); len(rowsOf(checks)) != 2 {
		t.Errorf("a comparison shows %d counts, want the two that do not agree", len(rowsOf(checks)))
	}
}

// TestManyTreatmentsAreFolded: a comparison of many treatments has one row for what was as expected everywhere, and
// rows of their own for those with mismatches; nothing is counted twice.
func TestManyTreatmentsAreFolded(t *testing.T) {
	r := base("many")
	r.Question, r.Treatments = "scale", nil
	for i := range 20 {
		id := "policies=" + strconv.Itoa(i)
		r.Treatments = append(r.Treatments, Treatment{ID: id})
		wrong := uint64(0)
		if i == 7 {
			wrong = 3
		}
		r.Operations = append(
			r.Operations,
			Operation{Treatment: id, Operation: "permit", Outcomes: Outcomes{OK: 10}, Answers: map[string]uint64{"permit": 10}},
			Operation{
				Treatment: id, Operation: "deny", Outcomes: Outcomes{Denied: 10 - wrong, Wrong: wrong},
				Answers: map[string]uint64{"deny": 10 - wrong, "permit": wrong},
			},
		)
	}
	want := [][]string{{"20 treatments: permit", "200", "0", "200", "200", "0"}, {
		"19 treatments: deny", "190", "0", "190",
		"0", "190",
	}, {"policies=7 deny", "10", "3", "7", "3", "7"}}
	if d := cmp.Diff(want, rowsOf(r.decisions())); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for i := range r.Operations {
		r.Operations[i].Outcomes.Wrong = 1
	}
	if alarms := alarmTexts(r); len(alarms) != maxAlarms || alarms[maxAlarms-1] != "and 35 more: see the tables" {
		t.Errorf("alarms of 40 operations: %q", alarms)
	}
	r.Operations = r.Operations[:6]
	if n := len(rowsOf(r.decisions())); n != 6 {
		t.Errorf("%d rows of few treatments, want each of the six", n)
	}
}

// TestNothingIsLostAt80Columns: a narrow terminal gets the columns in several tables, not fewer.
func TestNothingIsLostAt80Columns(t *testing.T) {
	out := string(encode(t, Style{Width: 80}.Text, xacmlSoak()))
	for _, head := range []string{
		"samples", "average", "min", "max", "std. dev.", "error %", "throughput", "received", "sent", "avg. bytes", "p50",
		"p90", "p99", "p99.9",
		"indeterminate", "mismatches", "RSS before", "RSS peak", "heap after", "CPU/call", "started in", "of it policies",
		"restarts", "collections", "mean", "of the time",
	} {
		if !strings.Contains(out, head) {
			t.Errorf("no column %q:\n%s", head, out)
		}
	}
}

// TestCollectionsAreShares: the mean of a collection is time ÷ count, and its share is of what was measured.
func TestCollectionsAreShares(t *testing.T) {
	r := xacmlSoak()
	r.Target = []Target{{Treatment: "default", Name: "pdp", GC: []GC{
		{Name: "young", Count: 518, Seconds: 5.988},
		{Name: "idle"},
	}}}
	want := [][]string{{"pdp", "young", "518", "5.99 s", "11.6 ms", "0.2%"}, {"pdp", "idle", "0", "0 s", "", "0%"}}
	if d := cmp.Diff(want, rowsOf(r.collections())); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	r.Soak = nil
	for _, h := range r.collections() {
		if h.head == "of the time" {
			t.Error("a share of an unknown time is shown")
		}
	}
}

func TestWindowsReadBack(t *testing.T) {
	moments := xacmlSoak().Soak[0].Moments
	moments[0].Other = map[string]float64{"pdp goroutines": 12, "a;b=c": 0.5, "bad": math.NaN()}
	moments[1].Operations[0].Operation = "with \"quotes\",\nlines"
	moments[2].Operations = nil
	var b bytes.Buffer
	if err := WriteWindows(&b, moments); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(windowColumns, rows[0]); d != "" {
		t.Errorf("head (-want +got):\n%s", d)
	}
	if want := 1 + len(moments)*6 - 5; len(rows) != want {
		t.Errorf("%d rows, want %d: each window's whole and its operations", len(rows), want)
	}
	at := map[string]int{}
	for i, c := range windowColumns {
		at[c] = i
	}
	number := func(row []string, column string) float64 {
		v, err := strconv.ParseFloat(row[at[column]], 64)
		if err != nil {
			t.Fatalf("%s: %v", column, err)
		}
		return v
	}
	whole, first := rows[1], rows[2]
	if whole[at["operation"]] != "" || whole[at["warm_up"]] != "true" || number(whole, "rss_bytes") != *moments[0].RSS ||
		whole[at["other"]] != "a_b_c=0.5;pdp goroutines=12" {
		t.Errorf("the whole of a window is %q", whole)
	}
	if first[at["operation"]] != "healthcheck" || number(first, "response_p99_seconds") != *moments[0].Operations[0].P99 ||
		first[at["rss_bytes"]] != "" {
		t.Errorf("an operation of a window is %q", first)
	}
	var calls, weighted float64
	for i := range 5 {
		calls += number(rows[2+i], "calls")
		weighted += number(rows[2+i], "calls") * number(rows[2+i], "response_mean_seconds")
	}
	if number(whole, "calls") != calls || math.Abs(number(whole, "response_mean_seconds")/(weighted/calls)-1) > 1e-12 {
		t.Errorf("the whole has %q, its operations %v calls with a mean of %v s", whole, calls, weighted/calls)
	}
	if whole[at["response_p99_seconds"]] != "" {
		t.Error("quantiles were added up")
	}
}

// TestOpenMetricsOfASoak compares values: base units, and slopes per second.
func TestOpenMetricsOfASoak(t *testing.T) {
	m, err := readOpenMetrics(string(encode(t, OpenMetrics, xacmlSoak())))
	if err != nil {
		t.Fatal(err)
	}
	const of = `area="tribunal",experiment="xacml-soak",`
	for id, want := range map[string]float64{
		`tare_soak_measured_seconds{` + of + `question="soak",treatment="default"}`:                                                                            3000,
		`tare_soak_restarts_total{` + of + `question="soak",treatment="default"}`:                                                                              1,
		`tare_soak_outage_seconds_total{` + of + `question="soak",treatment="default"}`:                                                                        12,
		`tare_answers_counted_total{answer="permit",` + of + `question="soak",treatment="default"}`:                                                            81197,
		`tare_answers_seen_total{answer="permit",` + of + `question="soak",treatment="default"}`:                                                               493201,
		`tare_answers_agree{answer="deny",` + of + `question="soak",treatment="default"}`:                                                                      1,
		`tare_target_gc_collections_total{area="tribunal",collector="G1 full",experiment="xacml-soak",question="soak",target="xacml-pdp",treatment="default"}`: 32,
		`tare_target_load_seconds{` + of + `question="soak",target="xacml-pdp",treatment="default"}`:                                                           1.27,
		`tare_target_heap_after_bytes{` + of + `question="soak",target="xacml-pdp",treatment="default"}`:                                                       141 << 20,
	} {
		if got, ok := m.points[id]; !ok {
			t.Errorf("there is no %s", id)
		} else if !equal(got, want) {
			t.Errorf("%s is %v, want %v", id, got, want)
		}
	}
	found := false
	for id, v := range m.points {
		if strings.HasPrefix(id, "tare_drift_slope{") && strings.Contains(id, `metric="rss"`) {
			found = equal(v*3600, 60<<20)
		}
	}
	if !found {
		t.Error("the slope of rss is not 60 MiB an hour")
	}
}

// TestSoakLeads: the first thing on the page is how long it held and what drifts, then what makes that worth little.
func TestSoakLeads(t *testing.T) {
	page := bare(render(t, xacmlSoak()))
	at := -1
	for _, want := range []string{
		"It held 50m with 10 workers, but for 12 s in 1 outage:", "rss grows by 60 MiB/h [57.9, 62.2]: a leak?",
		"guard-frequency: 7 of 283134 answers were not what was expected.",
		"permit: the target counted 81197, its callers 493201", "<caption>Budgets</caption>", `id="q1"`, "<caption>The summary report, as JMeter has it</caption>", `id="q2"`,
	} {
		i := strings.Index(page, want)
		if i <= at {
			t.Errorf("%q is at %d, want it after what comes before (%d)", want, i, at)
		}
		at = max(at, i)
	}
}

func TestInvalidSoakSaysSo(t *testing.T) {
	r := xacmlSoak()
	r.Verdict, r.Reason = Invalid, "a known deny is permitted"
	if page := render(t, r); !strings.Contains(page,
		"✗ INVALID</strong> Nothing of this counts: a known deny is permitted. What was seen: It held 50m") {
		t.Errorf("not said: %s", regexp.MustCompile(`<p class="lead.*`).FindString(page))
	}
	const said = "✗ INVALID, so nothing of this counts: a known deny is permitted. What was seen: held"
	if out := string(encode(t, Style{Width: 4000}.Text, r)); !strings.Contains(out, said) {
		t.Errorf("the text does not say so:\n%s", out)
	}
}

// TestTrendLines: one piece for each stretch between restarts, all with the slope of the estimate and through the mean
// of the stretch; the warm-up and the window of the restart are left out.
func TestTrendLines(t *testing.T) {
	const perHour = 3600.0
	s := Soak{
		Drift:    map[string]Drift{"rss": {PerHour: perHour, Lo: new(perHour / 2), Hi: new(perHour * 2)}},
		Restarts: []float64{55},
	}
	for k := range 10 {
		at := float64(k) * 10
		v := 100 + at
		if at > 50 {
			v = 20 + at
		}
		if k < 2 {
			v = 1e6 // a warm-up that would spoil any mean
		}
		s.Moments = append(s.Moments, Moment{Start: at, End: at + 10, WarmUp: k < 2, Restarted: k == 5, RSS: &v})
	}
	c := soakChart{s: &s}
	for i := range s.Moments {
		c.middle = append(c.middle, s.Moments[i].Start+5)
	}
	y := c.each(func(m *Moment) *float64 { return m.RSS })
	all := c.trend("rss", y)
	if len(all) != 1 {
		t.Fatalf("%d series", len(all))
	}
	l := all[0]
	// Windows 2 to 4 and 6 to 9 are measured; of each stretch its first middle, its mean and its last.
	for i, want := range [][2]float64{{25, 120}, {35, 130}, {45, 140}, {0, math.NaN()}, {65, 80}, {80, 95}, {95, 110}} {
		if math.IsNaN(want[1]) {
			if !math.IsNaN(l.Y[i]) {
				t.Errorf("no gap between the stretches: %v", l.Y)
			}
			continue
		}
		if math.Abs(l.X[i]-want[0]) > 1e-9 || math.Abs(l.Y[i]-want[1]) > 1e-9 {
			t.Errorf("point %d is (%v, %v), want %v", i, l.X[i], l.Y[i], want)
		}
	}
	// The band has no width at the mean, and half and twice the slope at the ends.
	if l.Lo[1] != l.Hi[1] || math.Abs(l.Lo[2]-135) > 1e-9 || math.Abs(l.Hi[2]-150) > 1e-9 || math.Abs(l.Lo[0]-110) > 1e-9 {
		t.Errorf("the band is %v to %v", l.Lo, l.Hi)
	}
	s.Drift["rss"] = Drift{PerHour: perHour}
	if got := c.trend("rss", y); got != nil {
		t.Error("a trend without an interval is drawn")
	}
}

// TestLongSoaksStaySmall: 24 hours in 360 moments of six operations make a page that can be mailed, and its data is a
// whole report but for the moments.
func TestLongSoaksStaySmall(t *testing.T) {
	r := xacmlSoak()
	s := &r.Soak[0]
	one := s.Moments[len(s.Moments)-1]
	for _, o := range one.Operations {
		o.Operation += "-again"
		one.Operations = append(one.Operations, o)
	}
	s.Moments = nil
	for k := range 360 {
		m := one
		m.Start, m.End, m.WarmUp = float64(k)*240, float64(k+1)*240, k < 2
		m.Good = 549.123456789012 + float64(k)/7
		s.Moments = append(s.Moments, m)
	}
	page := render(t, r)
	if len(page) > 1<<20 {
		t.Errorf("the page has %d KiB", len(page)>>10)
	}
	inside := regexp.MustCompile(`(?s)<script type="application/json" id="report">(.*?)</script>`).FindStringSubmatch(page)
	var back Report
	if err := json.Unmarshal([]byte(inside[1]), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Soak) != len(r.Soak) || back.Soak[0].Total == nil || len(back.Soak[0].Moments) != 0 {
		t.Errorf("%d soaks with %d moments are embedded, want all soaks and no moments",
			len(back.Soak), len(back.Soak[0].Moments))
	}
	if !strings.Contains(page, "but for its moments, which would make the page too large") {
		t.Error("the page does not say what its data lacks")
	}
	if len(r.Soak[0].Moments) != 360 {
		t.Error("the report itself lost its moments")
	}
}

// TestMarksOfASoak: warm-up, outage and restart are marked in the chart, with words.
func TestMarksOfASoak(t *testing.T) {
	drawing := svgs.FindString(render(t, xacmlSoak()))
	for _, want := range []string{
		"warm-up", "outage", "restart", "rss trend, 60 MiB/h", "time in garbage collection",
		"heap in use", "response, p99", "guard-frequency",
	} {
		if !strings.Contains(drawing, want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
	r := xacmlSoak()
	for i := range r.Soak[0].Moments {
		m := &r.Soak[0].Moments[i]
		for k := range m.Operations {
			m.Operations[k].P50, m.Operations[k].P99 = nil, nil
		}
	}
	if page := render(t, r); strings.Contains(svgs.FindString(page), "response, p99") ||
		!strings.Contains(page, "Response times are not drawn") {
		t.Error("response times that are not known have a panel, or nothing says that they are not known")
	}
	r.Soak[0].Moments = nil
	if page := render(t, r); strings.Contains(page, "chart-5-soak") {
		t.Error("a chart of nothing is drawn")
	}
}

// randomSoak is a report of a soak that nobody tuned: its parts fit each other, and nothing else does.
func randomSoak(t *rapid.T) *Report {
	n := func(name string) uint64 {
		return rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 5), rapid.Uint64Range(0, 1e7)).Draw(t, name)
	}
	s := Soak{
		Treatment: "default", Seconds: rapid.Float64Range(1, 1e5).Draw(t, "seconds"), WarmUpSeconds: 5,
		Workers: rapid.IntRange(0, 9).Draw(t, "workers"),
		Total: &Total{Operation: Operation{Treatment: "default", Outcomes: Outcomes{
			OK: n("ok"), Wrong: n("wrong"),
			Timeout: n("timeout"),
		}}},
	}
	for range rapid.IntRange(0, 2).Draw(t, "outages") {
		at := rapid.Float64Range(0, s.Seconds).Draw(t, "outage")
		s.Outages = append(s.Outages, Outage{
			Start: at, End: at + rapid.Float64Range(0.1, s.Seconds).Draw(t, "length"),
			Calls: 7,
		})
	}
	if rapid.Bool().Draw(t, "little") {
		s.Total.Little = &Little{Expected: 10, Observed: rapid.OneOf(rapid.Float64Range(0, 30), rapid.Float64Range(8.9, 9.1),
			rapid.Float64Range(10.99, 11.01)).Draw(t, "observed")}
	}
	s.Drift = map[string]Drift{}
	for _, name := range driftOrder {
		v := rapid.SampledFrom(EffectVerdicts()[:6]).Draw(t, name)
		x := rapid.Float64Range(1e-6, 1e3).Draw(t, name+" slope")
		s.Drift[name] = Drift{
			PerHour: x, Lo: new(x / 2), Hi: new(2 * x), Verdict: v, Unit: metric.Seconds, Margin: 0.05,
			N: 300, Start: 1, Total: x,
		}
	}
	r := &Report{
		Schema: Schema, Question: design.Soak, Status: Complete,
		Verdict: rapid.SampledFrom([]Verdict{Pass, None, Inconclusive}).Draw(t, "verdict"),
	}
	for _, word := range []string{"permit", "deny"} {
		c := AnswerCheck{Treatment: "default", Answer: word, Client: n(word), Unanswered: n("unanswered")}
		c.Target = float64(c.Client) + float64(rapid.IntRange(-3, 3).Draw(t, "off"))
		off := math.Abs(c.Target - float64(c.Client))
		if c.Agrees = off <= float64(c.Unanswered); !c.Agrees { // as the analysis has it
			s.Disputed = max(s.Disputed, off)
		}
		r.Answers = append(r.Answers, c)
	}
	r.Treatments, r.Soak = []Treatment{{ID: "default"}}, []Soak{s}
	return r
}

// TestSoaksDoNotContradictThemselves holds the sentences of a soak against each other and against what they are about.
func TestSoaksDoNotContradictThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := randomSoak(t)
		s := &r.Soak[0]
		var b strings.Builder
		if err := (Style{Width: 4000}).Text(&b, r); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		sentence, total := s.Sentence(), s.Total.Outcomes
		says := func(part string) bool { return strings.Contains(sentence, part) }
		if !strings.Contains(text, sentence) {
			t.Fatalf("the report does not have its sentence %q:\n%s", sentence, text)
		}
		if strings.Contains(text, "DISAGREES") != says("from which the target's differs") && total.Ended() > 0 {
			t.Errorf("the counts disagree in one place only: %q", sentence)
		}
		if says("errors 0%") && total.Wrong+total.Timeout > 0 {
			t.Errorf("%+v are no errors: %q", total, sentence)
		}
		if says("did not answer well once") != (total.Ended() > 0 && total.Good() == 0) {
			t.Errorf("%+v: %q", total, sentence)
		}
		out := 0.0
		for _, o := range s.Outages {
			out += s.measured(o)
		}
		if says("held ") && says("but for") != (out > 0) {
			t.Errorf("%v s of outages: %q", out, sentence)
		}
		if l := s.Total.Little; l != nil && strings.Contains(text,
			"they do not agree") != (math.Abs(l.Observed/l.Expected-1) > 0.1) {
			t.Errorf("%+v: %q", l, l.law())
		}
		for name, d := range s.Drift {
			quiet := says("no drift of ") && listedIn(sentence, "no drift of ", " over", name)
			open := says("whether ") && listedIn(sentence, "whether ", " drift", name)
			loud := says(name+" rises") || says(name+" falls")
			want := map[EffectVerdict][3]bool{Equivalent: {true, false, false}, EffectInconclusive: {false, true, false}}
			w, ok := want[d.Verdict]
			if !ok {
				w = [3]bool{false, false, true}
			}
			if [3]bool{quiet, open, loud} != w {
				t.Errorf("%s is %s: %q", name, d.Verdict, sentence)
			}
		}
	})
}

// listedIn reports whether a name is in the list that a sentence has between two phrases.
func listedIn(sentence, from, to, name string) bool {
	_, rest, _ := strings.Cut(sentence, from)
	list, _, _ := strings.Cut(rest, to)
	names := strings.FieldsFunc(strings.ReplaceAll(list, " and ", ","), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(names, name)
}

// TestWordsOfSoaksAreExplained: "tare explain" knows every field of a soak, of what a target used and of counted
// answers, and every column of the tables and the file of windows.
func TestWordsOfSoaksAreExplained(t *testing.T) {
	words := []string{"leak", "mismatch", "windows.csv", "KB/s", "summary report", "not comparable", "disagrees"}
	for _, v := range []any{
		Soak{},
		Total{},
		Outage{},
		Moment{},
		MomentOperation{},
		Drift{},
		AnswerCheck{},
		Heap{},
		Target{},
		RSS{},
		GC{},
		Throttled{},
		Lateness{},
		Little{},
	} {
		for f := range reflect.TypeOf(v).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				words = append(words, name)
			}
		}
	}
	words = append(words, windowColumns...)
	for _, x := range []table{xacmlSoak().summary(), xacmlSoak().checks(false), xacmlSoak().collections()} {
		for _, h := range x {
			words = append(words, h.head)
		}
	}
	for _, w := range words {
		if _, near, ok := glossary.Core().Lookup(w); !ok {
			t.Errorf("no entry for %q (near: %q)", w, near)
		}
	}
	if len(words) < 100 {
		t.Errorf("only %d words were looked up", len(words))
	}
}

// TestStallsAreTold: stalls within windows are told beside outages, and without any, and each by its length.
func TestStallsAreTold(t *testing.T) {
	s := Soak{Seconds: 60, Planned: 60, Stalls: []Stall{{Ended: 20.1, Seconds: 1.5}, {Ended: 30.6, Seconds: 1.2}}}
	if got, want := s.held(""), "held 60 s, and with 2 stalls of up to 1.5 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Outages = []Outage{{Start: 40, End: 41.1}}
	if got, want := s.held(""), "held 60 s, but for 1.1 s in 1 outage, and with 2 stalls of up to 1.5 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want := "calls that were answered from 20.1 s on had waited up to 1.5 s, nearly all that came due meanwhile"
	if !slices.ContainsFunc(s.remarks(), func(r remark) bool { return r.Word == "stall" && r.Text == want }) {
		t.Errorf("%+v, want %q", s.remarks(), want)
	}
}
