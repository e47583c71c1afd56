package report

import (
	"bytes"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/metric"
	"tare/internal/signature"
)

// TestTreatmentsAreCalledProved only if there was a proof: where nothing that must be refused was asked, the table says
// what was seen.
func TestTreatmentsAreCalledProved(t *testing.T) {
	const said = "the endpoint answers as expected; nothing that must be refused was asked"
	all := treatments(&Report{Treatments: []Treatment{
		{ID: "a", Verified: true}, {ID: "b", Unproved: said}, {ID: "c", NotInForce: "it permits everything"},
	}})
	last := all.table[len(all.table)-1]
	if want := []string{"✓ verified", "? " + said, "✗ not verified"}; !slices.Equal(last.cells, want) {
		t.Errorf("%q, want %q", last.cells, want)
	}
}

// TestFiguresWithoutComparison: a report that compares nothing, as of what was imported, shows what was measured.
func TestFiguresWithoutComparison(t *testing.T) {
	r := &Report{Question: "compare", Status: Complete, Treatments: []Treatment{
		{ID: "a", Metrics: []Metric{
			{Name: "wall", Operation: "open", Unit: "s", Value: .012, Lo: new(.0119), Hi: new(.0123), N: 10},
		}},
		{ID: "b", Metrics: []Metric{{Name: "wall", Operation: "open", Unit: "s", Value: .022, N: 1}}},
	}}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(w *bytes.Buffer) error { return Text(w, r) },
		"markdown": func(w *bytes.Buffer) error { return Markdown(w, r) },
		"page":     func(w *bytes.Buffer) error { w.WriteString(render(t, r)); return nil },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"12 ms [11.9 ms, 12.3 ms]", "22 ms"} {
			if !strings.Contains(strings.ReplaceAll(out.String(), `\`, ""), want) { // Markdown escapes brackets
				t.Errorf("%s lacks %q:\n%.2000s", name, want, out.String())
			}
		}
	}
}

// TestHarnessOnThePage: what doing nothing costs has a table of its own, and stands at the figures of which it is a
// good part.
func TestHarnessOnThePage(t *testing.T) {
	r := pageEnforcers(12)
	base := &r.Treatments[0]
	var figures []*Metric
	for i := range base.Metrics {
		if m := &base.Metrics[i]; m.Quantile == "" && m.Unit == string(metric.CPUSeconds) {
			figures = append(figures, m)
		}
	}
	if len(figures) < 2 {
		t.Fatalf("the sample has %d figures of CPU time, want two", len(figures))
	}
	figures[0].Harness, figures[1].Harness = new(.125), new(.004)
	r.Harness = []Harness{
		{
			Treatment: base.ID, Operation: "empty", Metric: "cpu", Unit: metric.CPUSeconds, Value: 5e-9, Lo: new(4.9e-9),
			Hi: new(5.2e-9), Level: new(.95), N: 12,
		},
		{Treatment: base.ID, Operation: "empty", Metric: "allocations", Unit: metric.Count, N: 12},
	}
	page := render(t, r)
	for _, want := range []string{
		"Cost of the harness itself", "does nothing, takes 5 ns CPU, 0 objects", "at most 12.5% of any figure",
		"no figure has it subtracted", "[4.9 ns, 5.2 ns]", "(12.5% harness)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "0.4% harness") {
		t.Error("a share of 0.4 % stands at its figure, where it says nothing")
	}
	if plain := render(t, pageEnforcers(12)); strings.Contains(plain, "harness itself") {
		t.Error("a report without such operations speaks of the harness")
	}
}

// TestServersAreComparedInTheFirstLine: who is slower and by how much; and where nothing was seen, how small a
// difference would have been.
func TestServersAreComparedInTheFirstLine(t *testing.T) {
	effect := func(estimate, lo, hi float64, v EffectVerdict) Effect {
		return Effect{
			Treatment: "url=b", Baseline: "url=a", Metric: "response", Quantile: "p50", Kind: "ratio", Gating: true, Blocks: 10,
			Estimate: estimate, Lo: lo, Hi: hi, Verdict: v, Margin: new(0.02), MDE: new(0.04), Level: 0.95,
		}
	}
	const again = " Two processes of one program can differ by as much for as long as they live: if these are two, " +
		"start them again to see whether it stays."
	for want, c := range map[string]struct {
		effect  Effect
		renewed int
	}{
		"b is 2.5 % slower than a [2.1, 2.9] (p50 345 µs → 354 µs). That is beyond the margin of 2 %." + again: {
			effect(.025, .021, .029, Regressed), 0,
		},
		"b is 2.5 % slower than a [2.1, 2.9] (p50 345 µs → 354 µs). That is beyond the margin of 2 %.": {
			effect(.025, .021, .029, Regressed), 9,
		},
		"b is 25.0 % slower than a [21.0, 29.0] (p50 345 µs → 431 µs). That is beyond the margin of 2 %.": {
			effect(.25, .21, .29, Regressed), 0,
		},
		"b is 3.0 % faster than a [2.0, 4.0] (p50 345 µs → 335 µs). That may be within the margin of 2 %." + again: {
			effect(-.03, -.04, -.02, Faster), 0,
		},
		"b is neither slower nor faster than a by more than the margin of 2 %: +0.1 % [-0.5, 0.7] (p50 345 µs → 345 µs).": {
			effect(.001, -.005, .007, Equivalent), 0,
		},
		"No difference between b and a is shown: +1.0 % [-3.0, 5.0] (p50 345 µs → 348 µs). One of 4 % would have been " +
			"seen, and one of about 2 % in 2m more.": {
			effect(.01, -.03, .05, EffectInconclusive), 0,
		},
	} {
		r := &Report{
			Design: &Design{Blocks: 10, Turn: .05, Renewed: c.renewed}, Effects: []Effect{c.effect}, Seconds: 40,
			Treatments: []Treatment{
				{ID: "url=a", Baseline: true, Levels: map[string]string{"url": "a"}, Metrics: []Metric{
					{Name: "response", Quantile: "p50", Unit: string(metric.Seconds), Value: 345e-6},
				}},
				{ID: "url=b", Levels: map[string]string{"url": "b"}},
			},
		}
		if got := strings.ReplaceAll(r.serversConclusion(), "\u00a0", " "); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	open := effect(-.2, -.3, .6, EffectInconclusive)
	open.MDE, open.Reason = nil, "30% of the calls failed under b"
	fails := Effect{
		Treatment: "url=b", Baseline: "url=a", Metric: "error", Kind: "difference", Estimate: .3, Lo: .28, Hi: .32,
		Measurable: true, Verdict: Regressed,
	}
	other := effect(.01, 0, .02, EffectInconclusive)
	other.Metric, other.Quantile, other.Gating = "goodput", "", false
	r := &Report{Design: &Design{Blocks: 10, Turn: .05}, Effects: []Effect{other, open, fails}}
	if got, want := strings.ReplaceAll(conclusion(r), "\u00a0", " "), "More calls fail under url=b than under url=a: "+
		"error +30.00 points [28.00, 32.00]. No difference between url=b and url=a is shown: -20 % [-30, 60]. "+
		"30% of the calls failed under b."; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	r.Effects[2].Verdict, r.Effects[2].Reason = EffectInconclusive, "b does not keep up in turns" // though it excludes 0
	r.Design.SlowerRate, r.Status = 80, Complete
	if got := strings.ReplaceAll(conclusion(r), "\u00a0", " "); !strings.Contains(got, "32.00], which is not judged. ") {
		t.Errorf("an effect that is left open is claimed: %s", got)
	}
	if shown, other := r.Effects[2].Shown(), r.Effects[1].Shown(); shown != "not-judged" || other != "inconclusive" {
		t.Errorf("left open is %s, and what includes 0 %s", shown, other)
	}
	if next := r.next(); len(next) != 1 || !strings.Contains(next[0], "--set load.rate=80/s") {
		t.Errorf("next: %q", next)
	}
	if rows := r.single("url=b")[0].cells; len(rows) != 3 || rows[1] != "error" {
		t.Errorf("the share that fails does not follow what decides: %q", rows)
	}
	trials := &Report{Design: &Design{Blocks: 10}, Effects: []Effect{effect(.1, .05, .2, Regressed)}}
	if got := trials.serversConclusion(); got != "" {
		t.Errorf("servers that had trials are compared in the first line: %s", got)
	}
}

// TestSharesInWords: only the whole is 100 %, and a bound is never rounded to the wrong side.
func TestSharesInWords(t *testing.T) {
	for share, want := range map[float64][2]string{
		1: {"100 %", "100 %"}, 0.99996: {"99.99 %", "99.99 %"}, 0.98: {"98 %", "98 %"}, 0.2267: {"23 %", "23 %"},
		0.1: {"10 %", "10 %"}, 0.0501: {"5 %", "5.1 %"}, 0.00501: {"0.5 %", "0.51 %"}, 0.00024: {"0.024 %", "0.024 %"},
		3.21e-7: {"0.000032 %", "0.000033 %"}, 0: {"0 %", "0 %"},
	} {
		if got := [2]string{fine(share), ShareBelow(share)}; got != want {
			t.Errorf("%v is %q, want %q", share, got, want)
		}
	}
}

// TestConditionsAreNotBlamed: a condition is not said to be the reason of breaches before it, or of those that were
// there without it, too.
func TestConditionsAreNotBlamed(t *testing.T) {
	point := func(name string, last *float64) GuardPoint {
		return GuardPoint{
			Rate: 100, Trespasses: triedTrespasses(200, 3, 0, 0.003, 0.04), LastBreach: last,
			Condition: &GuardCondition{Name: name, Ended: new(7.0)},
		}
	}
	g := Guard{Points: []GuardPoint{point("restart", new(0.4)), point("slow", new(-0.1))}}
	if got, want := g.byCondition(), "trespasses were permitted under restart (3 of 203)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	g.Onset = &Onset{Above: new(40.0), Below: 90, Clear: true}
	if got, want := g.byCondition(), "under restart (3 of 203, and some without it)"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want the end %q", got, want)
	}
	want := "from 90/s on, rarely at first: that none was at 40/s may be chance"
	if got := g.Onset.sentence(); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want the end %q", got, want)
	}
}

// TestBreachSentence: a breach is told by the rate or the point at which it was, and one of a soak by when it was.
func TestBreachSentence(t *testing.T) {
	for want, b := range map[string]Breach{
		"at 502/s: a → b":                   {Rate: 502, Point: "502/s", Request: "a", Answer: "b"},
		"at 60/s (restart): a":              {Rate: 60, Point: "restart", At: 3, Request: "a"},
		"after 20.1 s: a → b":               {At: 20.1, Request: "a", Answer: "b"},
		"after 20.1 s: status 200, 3 bytes": {At: 20.1, Status: 200, AnswerBytes: 3},
	} {
		if got := b.sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBurstsAreTold: where breaches of a soak came in few stretches of time, the report says so, and that their
// interval allows for it.
func TestBurstsAreTold(t *testing.T) {
	share := &Share{Value: 0.5}
	r := &Report{Guard: []Guard{{Stretches: 5, Trespasses: Trespasses{Refused: 9, Permitted: 5, Share: share}}}}
	found := ""
	for _, x := range r.guardRemarks(&r.Guard[0]) {
		if x.Word == "bursts" {
			found += x.Text
		}
	}
	const want = "breaches came in 5 stretches of time: the interval of their share is that of so many events"
	if found != want {
		t.Errorf("%q, want %q", found, want)
	}
}

// TestTimesWithoutAnEndAreBounds: a quantile that rests on permissions that were still granted when asked for last is
// said to be a lower bound, and no other is.
func TestTimesWithoutAnEndAreBounds(t *testing.T) {
	t.Parallel()
	of := func(unended uint64) string {
		f := GuardFigure{Metric: "revoke", Unended: unended, Values: &Distribution{
			N: 100, P50: new(1.0), P99: new(60.5), Max: 61,
		}}
		return f.sentence()
	}
	for unended, want := range map[uint64]string{
		0:  "p50 1 s, p99 60.5 s, longest 61 s, of 100 times",
		1:  "p50 1 s, p99 60.5 s, longest more than 61 s, of 100 times; still granted when asked for last: 1",
		50: "p50 1 s, p99 more than 60.5 s, longest more than 61 s, of 100 times; still granted when asked for last: 50",
		100: "p50 more than 1 s, p99 more than 60.5 s, longest more than 61 s, of 100 times; still granted when asked for " +
			"last: 100",
	} {
		if got := of(unended); got != want {
			t.Errorf("%d: %q, want %q", unended, got, want)
		}
	}
}

// TestSilenceUnderConditions: only trespasses that were decided while a condition was in force show how the control
// decides under it; that it answered nothing then is said by itself.
func TestSilenceUnderConditions(t *testing.T) {
	n := func(refused, permitted, undecided uint64) *Trespasses {
		return new(triedTrespasses(refused, permitted, undecided, 0, 0.1))
	}
	point := func(name string, all, during, afterwards *Trespasses) GuardPoint {
		return GuardPoint{Rate: 100, Trespasses: *all, Condition: &GuardCondition{
			Name: name, Ended: new(7.0), During: during, Afterwards: afterwards,
		}}
	}
	partition := point("partition", n(150, 0, 130), n(0, 0, 130), n(100, 0, 0))
	restart := point("restart", n(150, 0, 14), n(2, 0, 12), n(140, 0, 0))
	cold := point("cold", n(280, 0, 0), nil, n(280, 0, 0))
	slow := point("slow", n(280, 0, 5), n(120, 0, 5), n(100, 0, 0))
	open := point("open", n(270, 9, 5), n(110, 9, 5), n(100, 0, 0))
	gone := point("gone", n(50, 0, 230), n(0, 0, 130), n(0, 0, 100))
	old := point("old", n(280, 0, 0), nil, nil)
	closed := point("closed", n(50, 9, 130), n(0, 0, 130), n(50, 9, 0))
	failed := point("failed", n(280, 0, 0), nil, nil)
	failed.Condition.Ended, failed.Condition.Error = nil, "no permission"
	for name, c := range map[string]struct {
		points                     []GuardPoint
		said, silent, little, fact string
		class                      string
	}{
		"decided": {
			points: []GuardPoint{slow}, said: "no trespass was permitted under slow", fact: "none under slow", class: good,
		},
		"over at once": {
			points: []GuardPoint{cold}, said: "no trespass was permitted after cold", fact: "none after cold", class: good,
		},
		"silent": {
			points: []GuardPoint{partition}, said: "no trespass was permitted after partition",
			silent: "while partition (0 of 130 trespasses decided) lasted, none was permitted and none refused: how the " +
				"control decides then is not known",
			fact: "none after partition; not known while partition (0 of 130 trespasses decided) lasted",
		},
		"silent afterwards, too": {
			points: []GuardPoint{gone},
			silent: "while gone (0 of 130 trespasses decided) lasted, none was permitted and none refused: how the " +
				"control decides then is not known",
			little: "how it decides is hardly known after gone (0 of 100 trespasses decided)",
			fact:   "not known; while gone (0 of 130 trespasses decided) lasted",
		},
		"all kinds": {
			points: []GuardPoint{slow, partition, cold, restart, open},
			said: "trespasses were permitted under open (9 of 279); none under slow, and none after partition, cold and " +
				"restart",
			silent: "while partition (0 of 130 trespasses decided) and restart (2 of 14) lasted, none was permitted and few " +
				"or none refused: how the control decides then is not known",
			fact: "open (9 of 279); not under slow, and none after partition, cold and restart; not known while partition " +
				"(0 of 130 trespasses decided) and restart (2 of 14) lasted",
			class: bad,
		},
		"permitted only afterwards": {
			points: []GuardPoint{closed}, said: "trespasses were permitted after closed (9 of 59)",
			little: "how it decides is hardly known under closed (0 of 130 trespasses decided)",
			fact:   "after closed (9 of 59)", class: bad,
		},
		"permitted under one, and after another": {
			points: []GuardPoint{closed, open},
			said:   "trespasses were permitted under open (9 of 279), and after closed (9 of 59)",
			little: "how it decides is hardly known under closed (0 of 130 trespasses decided)",
			fact:   "after closed (9 of 59), open (9 of 279)", class: bad,
		},
		"it failed":                   {points: []GuardPoint{failed}},
		"a report that does not tell": {points: []GuardPoint{old}},
	} {
		g := Guard{Points: c.points, Trespasses: *n(1000, 0, 0)}
		f, _ := g.conditionFact()
		got := []string{g.byCondition(), g.Silent(), g.littleKnown(), f.cell()}
		if d := cmp.Diff([]string{c.said, c.silent, c.little, c.fact}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if c.fact != "" && f.Class != c.class {
			t.Errorf("%s: class %q, want %q", name, f.Class, c.class)
		}
	}
}

// TestFactsOfSeveralTreatments: a row for each treatment, with the columns that at least one of them has.
func TestFactsOfSeveralTreatments(t *testing.T) {
	share := func(permitted, refused uint64, hi float64) Trespasses {
		return Trespasses{Permitted: permitted, Refused: refused, Share: &Share{Hi: hi}}
	}
	point := func(n Trespasses, condition *GuardCondition) GuardPoint {
		return GuardPoint{Rate: 500, Trespasses: n, Condition: condition}
	}
	sound, gap := share(0, 400, 0.0075), share(3, 200, 0.04)
	restart := &GuardCondition{Name: "restart", Ended: new(1.0), During: &sound}
	r := &Report{Guard: []Guard{
		{Treatment: "a", Trespasses: sound, Points: []GuardPoint{point(sound, nil), point(sound, restart)}},
		{Treatment: "b", Trespasses: gap, Points: []GuardPoint{point(sound, nil), point(gap, restart)}, Foreign: 2},
	}}
	got := map[string][]string{}
	for _, c := range factTable(r) {
		got[c.head] = c.cells
	}
	want := map[string][]string{
		"treatment":            {"a", "b"},
		"trespasses permitted": {"0 of 400; below 0.75 %", "3 of 203; 0 % [0, 4]"},
		"from a rate of":       {"none up to 500/s", "none up to 500/s"},
		"under conditions":     {"none under restart", "restart (3 of 203)"},
		"mixed up":             {"", "2 other calls got what is somebody else's"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestLateRatesAreNotClaimed: the fact from which rate on trespasses were permitted names only rates that the generator
// kept up with.
func TestLateRatesAreNotClaimed(t *testing.T) {
	at := func(rate float64, valid bool) GuardPoint {
		return GuardPoint{Rate: rate, Trespasses: triedTrespasses(800, 0, 0, 0, 0.004), Generator: &Generator{Valid: valid}}
	}
	for name, c := range map[string]struct {
		points []GuardPoint
		want   string
	}{
		"all offered":     {[]GuardPoint{at(100, true), at(2000, true)}, "none up to 2000/s"},
		"the highest not": {[]GuardPoint{at(100, true), at(2000, false)}, "none up to 100/s"},
		"none":            {[]GuardPoint{at(2000, false)}, "not known; the generator kept up with no rate"},
		"none decided":    {[]GuardPoint{{Rate: 100}}, "not known; no trespass was decided"},
	} {
		g := Guard{Points: c.points}
		if got := g.rateFact().cell(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhatABucketDoesNotSay: a quantile in the first bucket is no more than below its bound, however it is
// interpolated.
func TestWhatABucketDoesNotSay(t *testing.T) {
	s := Served{N: 100, P50: new(0.025), P90: new(0.045), P99: new(0.075), First: new(0.05), Last: new(60.)}
	if got, want := s.percentiles(), []string{"<50ms", "<50ms", "75ms", "100"}; !slices.Equal(got, want) {
		t.Errorf("percentiles %q, want %q", got, want)
	}
	coarse := SLO{Formula: Official, Verdict: Pass, Value: new(0.0495), Lo: new(0.), Hi: new(0.05), Limit: 1}
	if got := coarse.Word(); !strings.HasSuffix(got, "<50 ms") {
		t.Errorf("a value within the first bucket reads %q", got)
	}
	clock := SLO{Formula: ClientClock, Verdict: Pass, Value: new(0.0495), Lo: new(0.), Hi: new(0.05), Limit: 1}
	if got := clock.Word(); !strings.HasSuffix(got, "49.5 ms") {
		t.Errorf("a value of our own clock reads %q", got)
	}
}

// TestPublishedFormNeedsPods: without pods that start there is no table of their start.
func TestPublishedFormNeedsPods(t *testing.T) {
	r := &Report{
		Treatments: []Treatment{{ID: "a"}},
		SLO: []SLO{{
			Treatment: "a", Name: "mutating", Subject: "POST pods", Formula: ClusterLoader2, Verdict: Pass,
			Limit: 1,
		}},
	}
	if n := r.published().rows(); n != 0 {
		t.Errorf("%d rows without a pod", n)
	}
	r.Phases = []Phase{{Treatment: "a", Operation: "pod-startup", Phase: startup, N: 1, P50: 1, P90: 1, P99: 1, Max: 1}}
	if n := r.published().rows(); n != 1 {
		t.Errorf("%d rows with pods", n)
	}
}

// TestAfterStop: every way in which a search ends without a number has a next step.
func TestAfterStop(t *testing.T) {
	silent := map[capacity.Stop]map[bool]bool{
		capacity.StopLadder: {true: true, false: true},
	}
	for _, s := range searchStops(t) {
		for _, bounded := range []bool{true, false} {
			got := afterStop(s, bounded)
			if (got == "") != silent[s][bounded] {
				t.Errorf("%s, bounded %t: %q", s, bounded, got)
			}
			if strings.HasSuffix(got, ".") || strings.Contains(got, "\n") {
				t.Errorf("%s: %q is no clause", s, got)
			}
		}
	}
	if got := afterStop("other", true); got != "" {
		t.Errorf("an unknown word: %q", got)
	}
}

// searchStops reads the constants of the type Stop from the source.
func searchStops(t *testing.T) (all []capacity.Stop) {
	t.Helper()
	source, err := os.ReadFile("../capacity/trace.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\tStop\w+ +Stop += "([a-z-]+)"`).FindAllSubmatch(source, -1) {
		all = append(all, capacity.Stop(m[1]))
	}
	if len(all) < 10 {
		t.Fatalf("found %q, want ten ways to end at least", all)
	}
	return all
}

var ruledOut = regexp.MustCompile(`tare_generator_ruled_out\{[^}]*\} 1`)

// TestOnlyEvidenceClears: "not the generator", and its like, stand only in reports of which the audit ruled it out.
func TestOnlyEvidenceClears(t *testing.T) {
	doubt := "its busiest thread ran 100 % of the time"
	for _, c := range []struct {
		name string
		of   Generator
		want string
	}{
		{"ruled out", Generator{
			Valid: true, Verdict: signature.RuledOut,
			Evidence: []string{"its busiest thread ran 3 % of the time"},
		}, "not the generator: its busiest thread ran 3 %"},
		{
			"possible",
			Generator{Valid: true, Verdict: signature.Possible, Doubts: []string{doubt}},
			"the generator may be the limit: " + doubt,
		},
		{
			"limit",
			Generator{Verdict: signature.Limiting, Reason: "it sent late", Doubts: []string{"it sent late", doubt}},
			"THE GENERATOR is the limit: it sent late",
		},
		{
			"in part",
			Generator{Valid: true, Verdict: signature.Possible, Reason: "late in 1 block"},
			"the generator, in part: late in 1 block",
		},
		{"not judged", Generator{Valid: true}, "the generator is not ruled out"},
		{"ruled out and invalid", Generator{Verdict: signature.RuledOut}, "THE GENERATOR is the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := base("x")
			r.Generator = &c.of
			for name, write := range map[string]Encoder{"text": Text, "markdown": Markdown, "openmetrics": OpenMetrics} {
				var b bytes.Buffer
				if err := write(&b, r); err != nil {
					t.Fatal(err)
				}
				out := strings.Join(strings.Fields(b.String()), " ")
				cleared := strings.Contains(out, "not the generator") || ruledOut.MatchString(out)
				if cleared != (c.name == "ruled out") {
					t.Errorf("%s clears the generator: %v\n%s", name, cleared, out)
				}
				if name == "text" && !strings.Contains(out, c.want) {
					t.Errorf("%s: want %q in\n%s", name, c.want, out)
				}
			}
		})
	}
}

// permitting is a report of a change that permits more than the baseline, and keeps its budget.
func permitting() *Report {
	r := base("x")
	r.Verdict, r.Reason = Fail, "under pr, 1 request is permitted that the baseline refuses: pod privileged"
	r.Treatments = []Treatment{
		{ID: "main", Baseline: true, Verified: true},
		{
			ID: "pr", Verified: true, Permits: []string{"pod privileged"}, Refuses: []string{"pod with sysctls"},
			Unshown: []string{"no answer shows it of a", "nor of b"},
			Alters: []Alteration{
				{Request: "pod as root", Here: []string{"spec.a = 1"}},
				{Request: "pod", Here: []string{"spec.a = 1"}},
				{Request: "service", Baseline: []string{"spec.b = 1"}},
				{
					Request: "job", Baseline: []string{"spec.a removed"},
					Here: []string{"spec.a = 1", "spec.b = 1", "spec.c = 1", "spec.d = 1", "spec.e = 1", "spec.f = 1"},
				},
			},
		},
	}
	r.Budgets = []Budget{{
		Text: "cpu <= +10%", Treatment: "pr", Verdict: Pass, Unit: "s", Estimate: new(0.01), Limit: new(0.02),
	}}
	return r
}

// TestWhatIsPermittedStandsFirst: what a change permits and the baseline refuses comes before figures and budgets, in
// every form that judges.
func TestWhatIsPermittedStandsFirst(t *testing.T) {
	const (
		permits = "nder pr, 1 request is permitted that the baseline refuses: pod privileged"
		unshown = "nder pr, no answer shows it of a; nor of b"
		refuses = "nder pr, 1 request is refused that the baseline permits: pod with sysctls"
		alters  = "nder pr, 4 requests come back otherwise than under the baseline: pod as root and 1 other with " +
			"spec.a = 1, which the baseline does not make; service without the baseline's spec.b = 1; job with spec.a = 1, " +
			"spec.b = 1, spec.c = 1, spec.d = 1 and 2 more in place of the baseline's spec.a removed"
	)
	r := permitting()
	for name, e := range map[string]Encoder{"text": Text, "markdown": Markdown, "html": HTML} {
		text := html.UnescapeString(strings.Join(strings.Fields(string(encode(t, e, r))), " "))
		at, budget := strings.Index(text, permits), strings.Index(text, "cpu <= +10%")
		if at < 0 || !strings.Contains(text, unshown) || !strings.Contains(text, refuses) ||
			!strings.Contains(text, alters) || budget >= 0 && budget < at {
			t.Errorf("%s: permits at %d, the budget at %d:\n%s", name, at, budget, text[:min(len(text), 2000)])
		}
	}
	for name, x := range map[string]struct {
		e    Encoder
		want string
	}{
		"junit": {JUnit, `<failure message="u` + permits}, "sarif": {SARIF, `"ruleId": "permits-more"`},
		"annotations": {Annotations, "::u" + permits}, "json": {JSON, `"permits": [`}, "json, unshown": {JSON, `"unshown": [`},
		"annotations, unshown": {Annotations, "::u" + unshown},
	} {
		if text := string(encode(t, x.e, r)); !strings.Contains(text, x.want) {
			t.Errorf("%s lacks %q:\n%s", name, x.want, text)
		}
	}
}

// TestPublishedVerdict: PASS and FAIL are clusterloader2's, over requests and pods; where it has not judged what is
// measured, there is none.
func TestPublishedVerdict(t *testing.T) {
	row := func(name string, f Formula, v Verdict) SLO {
		return SLO{Treatment: "x", Name: name, Subject: name, Formula: f, Verdict: v}
	}
	for want, rows := range map[string][]SLO{
		"":                             {row("mutating", Official, Fail)},
		"PASS":                         {row("mutating", ClusterLoader2, Pass), row("read", KubeBurner, Fail)},
		"FAIL: 1 high-latency request": {row("mutating", ClusterLoader2, Fail), row("pod-startup", ClusterLoader2, Pass)},
		"FAIL: 2 high-latency requests": {
			row("mutating", ClusterLoader2, Fail), row("read", ClusterLoader2, Fail),
			row("read", ClusterLoader2, NotMeasured),
		},
		"FAIL: pod startup": {row("mutating", ClusterLoader2, Pass), row("pod-startup", ClusterLoader2, Fail)},
	} {
		r := &Report{SLO: rows}
		if got := r.passed("x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if r.passed("y") != "" {
			t.Error("another treatment has the verdict")
		}
	}
	r := &Report{SLO: []SLO{row("mutating", ClusterLoader2, NotMeasured), row("read", ClusterLoader2, Pass)}}
	if got := r.passed("x"); got != "" {
		t.Errorf("dry runs are not judged, and the verdict is %q", got)
	}
}

// TestPublishedNumbers: as the tables of 2017 print them.
func TestPublishedNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		8.637055: "8.637055s", 798e-6: "798µs", 66.485e-3: "66.485ms", 1.1e-3: "1.1ms",
		24.237e-3: "24.237ms", 60: "1m0s",
	} {
		if got := span(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{
		3.386182578: "3386.182578", 1.86783022: "1867.83022",
		2.23124665: "2231.24665",
	} {
		if got := milliseconds(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// TestDisagreement: only pass against fail is one; the A/A arm has no rows, and what passes is not listed kind by kind.
func TestDisagreement(t *testing.T) {
	r := psp()
	if got := r.disagreement(); got != "the formulas DISAGREE on pod-startup bound=1 psp policies=5005" {
		t.Errorf("%q", got)
	}
	tables, quiet := r.levelTables()
	var heads []string
	for _, x := range tables {
		heads = append(heads, x[0].head)
		for _, cell := range x[0].cells {
			if strings.Contains(cell, "A/A") {
				t.Errorf("%s has the A/A arm", x[0].head)
			}
		}
	}
	if len(tables) != 3 || quiet != "all other requests pass" {
		t.Errorf("tables %q, %q", heads, quiet)
	}
	for i := range r.SLO {
		if r.SLO[i].Verdict == Fail {
			r.SLO[i].Verdict = Inconclusive
		}
	}
	if got := r.disagreement(); got != "" {
		t.Errorf("inconclusive is no disagreement: %q", got)
	}
}

// twoRuns is a comparison of two records with one pair of namesakes and one of treatments whose levels differ.
func twoRuns() *Report {
	r := comparisonOf(
		Effect{
			Treatment: "none", Operation: "open", Estimate: .01, Lo: -.02, Hi: .04, Verdict: EffectInconclusive, Blocks: 20,
		},
		Effect{Treatment: "wall=brick", Operation: "open", Estimate: .31, Lo: .28, Hi: .35, Verdict: Regressed, Blocks: 20},
	)
	r.Effects[0].Baseline, r.Effects[1].Baseline = "old:none", "old:wall=wood"
	r.Treatments = []Treatment{
		{ID: "old:none", Baseline: true},
		{ID: "none"},
		{ID: "old:wall=wood", Baseline: true, Levels: map[string]string{"wall": "wood"}},
		{ID: "wall=brick", Levels: map[string]string{"wall": "brick"}},
	}
	r.Design.Unblocked = true
	r.Diff = &Diff{
		A: "old", B: "new", Unpaired: []string{"old:wall=hedge"},
		Pairs: []Pair{{A: "none", B: "none"}, {A: "wall=wood", B: "wall=brick", Likely: true}},
	}
	return r
}

// TestDiffRanksTheLargestFirst: the first screen has the largest difference in its first row, and says what was
// compared with what, and what was not.
func TestDiffRanksTheLargestFirst(t *testing.T) {
	var out bytes.Buffer
	r := twoRuns()
	for range 40 {
		r.Notes = append(r.Notes, strings.Repeat("x", len(r.Notes)+1)) // so that it is longer than a screen
	}
	if err := (Style{Rest: "--all"}).Text(&out, r); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	last := 0
	for _, want := range []string{
		"A is old, B is new: 1 treatment with its namesake", "guessed B:wall=brick with A:wall=wood",
		"unpaired without a counterpart, so not compared: old:wall=hedge",
		"Of 2 figures, 1 is shown to differ from A to B: brick against A:wood open.cpu +31.0 %",
		"For the other one, neither a difference nor its absence is shown.",
		"brick against A:wood open.cpu", "none open.cpu", "verdict",
	} {
		i := strings.Index(text[last:], want)
		if i < 0 {
			t.Fatalf("%q is not there, or not behind what precedes it:\n%s", want, &out)
		}
		last += i
	}
}

// TestChangesInWords: figures without blocks, with their intervals and bounds.
func TestChangesInWords(t *testing.T) {
	capacity := func(v ChangeVerdict, a, b Figure) Change {
		return Change{Treatment: "default", Baseline: "old:default", Metric: "capacity", Unit: "1/s", Verdict: v, A: a, B: b}
	}
	of := func(v, lo, hi float64) Figure { return Figure{Value: &v, Lo: &lo, Hi: &hi} }
	atLeast := func(v float64) Figure { return Figure{Value: &v, Lo: &v} }
	lower := capacity(ShownLower, of(163, 158, 175), of(148, 145, 151))
	lower.Ratio, lower.Lo, lower.Hi = new(-.092), new(-.171), new(-.044)
	overlap := capacity(NotShown, of(163, 158, 175), of(160, 150, 165))
	overlap.Reason = "the intervals overlap"
	for _, c := range []struct {
		change Change
		want   []string
	}{
		{lower, []string{"163.0/s [158.0, 175.0] 148.0/s [145.0, 151.0] -9 % [-17, -4] ‹ lower, shown"}},
		{overlap, []string{"? not shown: the intervals overlap"}},
		{capacity(NotShown, atLeast(100), atLeast(200)), []string{"at least 100.0/s at least 200.0/s ? not shown"}},
		{capacity(NotShown, of(100, 0, 100), of(150, 150, 180)), []string{"at most 100.0/s 150.0/s to 180.0/s"}},
		{capacity(NotCompared, Figure{Basis: "no search"}, atLeast(200)), []string{"– not judged"}},
	} {
		r := base("few")
		r.Question, r.Generator = design.Capacity, nil
		r.Diff = &Diff{A: "old", B: "new", Pairs: []Pair{{A: "default", B: "default"}}, Changes: []Change{c.change}}
		var out bytes.Buffer
		if err := Text(&out, r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range append(c.want, "A is old, B is new: default of both") {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not said:\n%s", want, &out)
			}
		}
	}
}

// TestDiffSaysWhatSetsTheRates: the first screen says a changed limit or failure with its certainty, and an equal one
// once. A rate limit's value is the capacity, which differs by chance.
func TestDiffSaysWhatSetsTheRates(t *testing.T) {
	r := twoRuns()
	p := &r.Diff.Pairs[0]
	p.LimitA, p.FailureA = shownQuota(), fullQueue()
	p.LimitB, p.FailureB = likely(limit.Unknown, "", signature.AcceptQueue)
	q := &r.Diff.Pairs[1]
	q.LimitA, q.FailureA = likely(limit.RateLimit, "99.97/s", signature.TokenBucket)
	q.LimitB, _ = likely(limit.RateLimit, "100.2/s", "")
	text := strings.Join(strings.Fields(string(encode(t, Style{Rest: "--all"}.Text, r))), " ")
	for _, want := range []string{
		"limit none: the CPU quota of 100m (shown) → not known from outside",
		"fails as none: accept queue (shown) → accept queue (likely)",
		"limit brick against A:wood: a rate limit (likely) in both",
		"fails as brick against A:wood: token bucket (likely) → none was found",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if q.LimitA.Value != "99.97/s" {
		t.Errorf("the text has changed the report: %+v", q.LimitA)
	}
}
