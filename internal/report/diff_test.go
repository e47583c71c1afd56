package report

import (
	"bytes"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/signature"
)

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
		r := pageBase("few")
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
