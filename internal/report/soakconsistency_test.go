package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tare/internal/design"
	"tare/internal/metric"
)

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
