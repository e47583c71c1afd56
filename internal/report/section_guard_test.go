package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
