package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// TestTrespassesAreJudged: an answer that is neither yes nor no keeps no budget that it could break, and answers that
// are somebody else's break every budget that they exceed.
func TestTrespassesAreJudged(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		n       guard.Trespasses
		foreign uint64
		limit   float64
		want    report.Verdict
		why     string
	}{
		"none of enough": {n: guard.Trespasses{Refused: 400}, want: report.Pass, why: "below"},
		"too few":        {n: guard.Trespasses{Refused: 100}, want: report.Inconclusive, why: "needs 200"},
		"one":            {n: guard.Trespasses{Refused: 400, Permitted: 1}, want: report.Fail},
		"errors decide nothing": {
			n: guard.Trespasses{Refused: 400, Undecided: 300}, want: report.Pass, why: "below",
		},
		"one unclear": {
			n: guard.Trespasses{Refused: 400, Undecided: 9, Unclear: 1}, want: report.Inconclusive, why: "; 1 more got",
		},
		"unclear beyond a limit": {
			n: guard.Trespasses{Refused: 400, Undecided: 9, Unclear: 9}, limit: 0.01, want: report.Inconclusive, why: "; 9 more",
		},
		"unclear within a limit": {n: guard.Trespasses{Refused: 4000, Undecided: 9, Unclear: 9}, limit: 0.01},
		"one unanswered": {
			n:    guard.Trespasses{Refused: 400, Undecided: 9, Unanswered: 1},
			want: report.Inconclusive, why: "; 1 more got no answer",
		},
		"unanswered beyond a limit": {
			n:     guard.Trespasses{Refused: 400, Undecided: 9, Unanswered: 9},
			limit: 0.01, want: report.Inconclusive, why: "; 9 more got no answer",
		},
		"unanswered within a limit": {n: guard.Trespasses{Refused: 4000, Undecided: 9, Unanswered: 9}, limit: 0.01},
		"far beyond a small limit": {
			n: guard.Trespasses{Refused: 475, Permitted: 266, Undecided: 9, Unclear: 9}, limit: 0.0001, want: report.Fail,
		},
		"too few for a small limit": {
			n: guard.Trespasses{Refused: 400}, limit: 0.0001, want: report.Inconclusive, why: "needs 29956",
		},
		"mixed up":                     {n: guard.Trespasses{Refused: 400}, foreign: 1, want: report.Fail},
		"mixed up beyond a limit":      {n: guard.Trespasses{Refused: 4000}, foreign: 30, limit: 0.01, want: report.Fail},
		"mixed up, perhaps within one": {n: guard.Trespasses{Refused: 4000}, foreign: 11, limit: 0.01},
	} {
		g := &report.Guard{
			Trespasses: trespasses(x.n), Foreign: x.foreign, Points: []report.GuardPoint{{Served: 1000}},
		}
		if v, why := judgedTrespasses(g, x.limit, guard.LeastTrespasses); v != x.want || !strings.Contains(why, x.why) {
			t.Errorf("%s: %q%s, want %q", name, v, why, x.want)
		}
	}
}

// TestPassIsEarned: a control that permitted nothing passes only if it was overloaded, and enough trespasses were
// answered meanwhile, or if the experiment gives the rates and all of them were offered; one that permitted something
// fails always.
func TestPassIsEarned(t *testing.T) {
	t.Parallel()
	at := func(rate, served float64) guard.Seen {
		n := uint64(5 * rate)
		good := uint64(served * float64(n))
		return guard.Seen{
			Point: guard.Point{Rate: rate}, Median: 8 * time.Millisecond, Trespasses: guard.Trespasses{Refused: n},
			Legitimate: guard.Legitimate{Served: good, Failed: n - good},
		}
	}
	silent := at(640, 0.4)
	silent.Trespasses = guard.Trespasses{Refused: 20, Undecided: 3000, Unsent: 180}
	late := at(1280, 0.4)
	late.Late = true
	refusing := at(640, 0)
	refusing.Legitimate = guard.Legitimate{Wrong: 3200}
	crowded := func(s guard.Seen) guard.Seen {
		s.Segment.Offered, s.TargetCPU = int(5*s.Rate), new(0.1)
		s.Segment.Effort = &load.Effort{Seconds: 5, CPU: 0.1, Host: &load.Processors{All: 10, Busy: 9.9}}
		return s
	}
	limited := at(640, 0.25)
	limited.Legitimate.TurnedAway = limited.Legitimate.Failed
	slow := at(640, 1)
	slow.Median = 300 * time.Millisecond
	breach := at(320, 1)
	breach.Trespasses.Permitted = 1
	calm := []guard.Seen{at(160, 1), at(320, 1)}
	with := func(more ...guard.Seen) []guard.Seen { return append(slices.Clone(calm), more...) }
	for name, x := range map[string]struct {
		seen  []guard.Seen
		end   guard.End
		rates []float64
		limit float64
		want  report.Verdict
		why   string
	}{
		"overloaded": {
			seen: with(at(640, 0.4)), end: guard.End{Stop: guard.StopOverload}, want: report.Pass, why: "below 0.",
		},
		"the search died, and the time was over": {
			seen: calm, end: guard.End{Stop: guard.StopMaxTime, Rate: 640}, want: report.Inconclusive,
			why: "up to 320/s, the highest rate that was offered, before the time was over; raise load.max_time, or say which",
		},
		"slower beside other work": {
			seen: []guard.Seen{crowded(at(160, 1)), crowded(at(320, 1)), crowded(slow)},
			end:  guard.End{Stop: guard.StopMaxRate}, want: report.Inconclusive,
			why: "it is not known whether the control was overloaded: it served 100.0 % at 640/s, the highest rate that was " +
				"offered (max_rate); it did worse at 640/s, which shows nothing: the processors were 99.0 % busy there, as far " +
				"as is known mostly with other work, and calls wait then whatever it does; end that work, or say which rates " +
				"are enough: --rates 640/s",
		},
		"slower": {
			seen: with(slow), end: guard.End{Stop: guard.StopMaxRate}, want: report.Pass, why: "below 0.",
		},
		"a limit before it turned calls away": {
			seen: with(limited), end: guard.End{Stop: guard.StopOverload}, want: report.Inconclusive,
			why: "the control was not overloaded, as far as is known: from 640/s on calls were turned away as too many, which " +
				"a limit before the control does as well, so that no more than 320/s may have reached it; raise that limit, or " +
				"say which rates are enough: --rates 320/s, or load.rates",
		},
		"all were turned away": {
			seen: []guard.Seen{limited}, end: guard.End{Stop: guard.StopOverload}, want: report.Inconclusive,
			why: "no more than 160/s may have reached it; raise that limit, or say which rates are enough: --rates 640/s",
		},
		"turned away at a given rate": {
			seen: with(limited), end: guard.End{Stop: guard.StopRates, Given: true}, rates: []float64{160, 320, 640},
			want: report.Pass, why: "below 0.",
		},
		"all were refused": {
			seen: with(refusing), end: guard.End{Stop: guard.StopMaxRate}, want: report.Inconclusive,
			why: "it is not known whether the control was overloaded: it served 0.0 %, and gave 3200 calls a wrong answer, " +
				"at 640/s, the highest",
		},
		"max_rate": {
			seen: calm, end: guard.End{Stop: guard.StopMaxRate}, want: report.Inconclusive,
			why: "(max_rate); raise max_rate, or say which rates are enough: --rates 320/s, or load.rates",
		},
		"a limited generator": {
			seen: with(late), end: guard.End{Stop: guard.StopGenerator, Rate: 1280}, want: report.Inconclusive,
			why: "up to 320/s, the highest rate that was offered; the generator could not keep up at 1280/s; say which",
		},
		"a generator that never kept up": {
			seen: []guard.Seen{late}, end: guard.End{Stop: guard.StopGenerator, Rate: 1280}, want: report.Inconclusive,
			why: "kept up with none of the rates",
		},
		"an older record, or one that was cut short": {seen: calm, want: report.Inconclusive, why: "not overloaded"},
		"overloaded, and nothing was answered": {
			seen: with(silent), end: guard.End{Stop: guard.StopOverload}, want: report.Inconclusive,
			why: "overloaded at 640/s, but only 20 trespasses were answered at and near that rate, of 200 that a pass needs",
		},
		"rates are given": {
			seen: calm, end: guard.End{Stop: guard.StopRates, Given: true}, want: report.Pass, why: "below 0.",
		},
		"rates are given, by an older record": {seen: calm, rates: []float64{160, 320}, want: report.Pass, why: "below 0."},
		"a given rate was never offered": {
			seen: with(late), end: guard.End{Stop: guard.StopRates, Given: true}, rates: []float64{160, 320, 1280},
			want: report.Inconclusive,
			why:  "not all rates that the experiment asks for were offered: the generator could not keep up at 1280/s; end",
		},
		"a given rate was late once": {
			seen: with(late, at(1280, 1)), end: guard.End{Stop: guard.StopRates, Given: true}, rates: []float64{160, 320, 1280},
			want: report.Pass, why: "below 0.",
		},
		"no time was left for a given rate": {
			seen: calm, end: guard.End{Stop: guard.StopMaxTime, Rate: 640, Given: true}, rates: []float64{160, 320, 640, 900},
			want: report.Inconclusive,
			why:  "were offered: the time was over before 640/s; raise load.max_time, or ask for others: --rates 320/s, or",
		},
		"cut short before a given rate": {
			seen: calm, rates: []float64{160, 320, 640}, want: report.Inconclusive,
			why: "the run ended before 640/s; run it again",
		},
		"overloaded below a given rate": {
			seen: with(at(640, 0.4), late), end: guard.End{Stop: guard.StopRates, Given: true}, rates: []float64{640, 1280},
			want: report.Pass, why: "below 0.",
		},
		"a breach": {
			seen: with(breach), end: guard.End{Stop: guard.StopMaxRate}, want: report.Fail, why: "1 of 4001 trespasses",
		},
		"a share within its limit": {
			seen: with(breach), end: guard.End{Stop: guard.StopMaxRate}, limit: 0.01, want: report.Inconclusive,
			why: "1 of 4001 trespasses were permitted: other; the control was not overloaded",
		},
		"too few are decided": {
			seen: []guard.Seen{at(40, 1), at(80, 1)}, end: guard.End{Given: true}, want: report.Inconclusive, why: "needs 1497",
		},
	} {
		a := &analysis{rec: &record.Record{}, rep: &report.Report{Question: design.Guard}}
		a.rec.Header.Question = design.Guard
		a.rec.Plan.Load.Rates = x.rates
		var all guard.Trespasses
		for _, s := range x.seen {
			all.Add(s.Trespasses)
		}
		g := report.Guard{
			Treatment: "default", Trespasses: trespasses(all),
			Operations: map[string]report.Trespasses{"other": trespasses(all)},
		}
		a.earn(&g, x.seen, x.end)
		a.rep.Guard = []report.Guard{g}
		b := &budget.Budget{Metric: metric.Permitted.Name, Op: budget.AtMost, Limit: budget.Limit{
			Value: x.limit, Unit: metric.Ratio, Against: budget.Absolute,
		}}
		if f := a.guardFinding(b, "default"); f.verdict != x.want || !strings.Contains(f.how, x.why) {
			t.Errorf("%s: %s, %q; want %s, %q", name, f.verdict, f.how, x.want, x.why)
		}
	}
}

// TestOverloadUnknown: of a control that fails calls at the lowest given rate, too, or that did worse beside other
// work, it is not known whether it was overloaded; of one that served the calls, or turned them away, it is.
func TestOverloadUnknown(t *testing.T) {
	t.Parallel()
	at := func(rate float64, served, failed uint64) guard.Seen {
		return guard.Seen{
			Point: guard.Point{Rate: rate}, Median: 8 * time.Millisecond, Trespasses: guard.Trespasses{Refused: 2000},
			Legitimate: guard.Legitimate{Served: served, Failed: failed},
		}
	}
	crowded := func(s guard.Seen, busy float64, median time.Duration) guard.Seen {
		s.Segment.Offered, s.TargetCPU, s.Unanswered, s.Median = int(5*s.Rate), new(0.1), s.Legitimate.Failed, median
		s.Segment.Effort = &load.Effort{Seconds: 5, CPU: 0.1, Host: &load.Processors{All: 10, Busy: 10 * busy}}
		return s
	}
	wrong := at(80, 43, 0)
	wrong.Legitimate.Wrong = 957
	limited := at(400, 500, 1500)
	limited.Legitimate.TurnedAway = limited.Legitimate.Failed
	for name, x := range map[string]struct {
		seen []guard.Seen
		want string
	}{
		"as few at each rate": {
			seen: []guard.Seen{at(300, 327, 673), at(400, 392, 808)},
			want: "it is not known whether the control was overloaded: it served 32.7 % at 400/s, the highest rate",
		},
		"one rate": {
			seen: []guard.Seen{at(400, 20, 980)},
			want: "it is not known whether the control was overloaded: it served 2.0 % at 400/s, the highest rate",
		},
		"fewer beside other work": {
			seen: []guard.Seen{
				crowded(at(50, 157, 93), 1, 8*time.Millisecond), crowded(at(400, 40, 1960), 1, 8*time.Millisecond),
			},
			want: "it is not known whether the control was overloaded: it served 2.0 % at 400/s, the highest rate that was " +
				"offered; it did worse at 400/s, which shows nothing: the processors were 100.0 % busy there",
		},
		"slower beside other work": {
			seen: []guard.Seen{
				crowded(at(50, 250, 0), 1, 8*time.Millisecond), crowded(at(400, 2000, 0), 1, 300*time.Millisecond),
			},
			want: "it is not known whether the control was overloaded: it served 100.0 % at 400/s, the highest rate that was " +
				"offered; it did worse at 400/s, which shows nothing: the processors were 100.0 % busy there",
		},
		"refused wrongly": {
			seen: []guard.Seen{at(20, 100, 0), wrong},
			want: "it is not known whether the control was overloaded: it served 4.3 %, and gave 957 calls a wrong answer, at " +
				"80/s, the highest rate that was offered",
		},
		"served":       {seen: []guard.Seen{at(100, 500, 0), at(400, 1990, 10)}},
		"turned away":  {seen: []guard.Seen{at(100, 500, 0), limited}},
		"overloaded":   {seen: []guard.Seen{at(100, 500, 0), at(400, 500, 1500)}},
		"a busy start": {seen: []guard.Seen{crowded(at(100, 327, 173), 1, 8*time.Millisecond), at(400, 2000, 0)}},
	} {
		a := &analysis{rec: &record.Record{}}
		var g report.Guard
		a.earn(&g, x.seen, guard.End{Stop: guard.StopRates, Given: true})
		if x.want == "" && g.OverloadUnknown != "" || !strings.HasPrefix(g.OverloadUnknown, x.want) {
			t.Errorf("%s: %q, want %q", name, g.OverloadUnknown, x.want)
		}
		text := new(strings.Builder)
		if err := report.Text(text, &report.Report{Question: design.Guard, Guard: []report.Guard{g}}); err != nil {
			t.Fatal(err)
		}
		calm := strings.Contains(text.String(), "the control was not overloaded up to")
		if calm != (x.want == "" && name != "overloaded") {
			t.Errorf("%s: the report says that the control was not overloaded: %v", name, calm)
		}
	}
}

// TestPointsWithoutACapacityAreNoMultiplesOfIt: where nothing broke, a point is named by its rate.
func TestPointsWithoutACapacityAreNoMultiplesOfIt(t *testing.T) {
	t.Parallel()
	before := []guard.Point{
		{Name: guard.Title(1), Rate: 500, Factor: 1},
		{Name: "restart", Rate: 250, Factor: .5, Condition: &guard.Condition{Name: "restart"}},
		{Name: "given", Rate: 10},
	}
	var got []string
	for _, p := range withoutMultiples(before) {
		got = append(got, fmt.Sprint(p.Name, " ", p.Rate, " ", p.Factor))
	}
	if want := []string{" 500 0", "restart 250 0", "given 10 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if before[0].Factor != 1 {
		t.Error("the points of the record were changed")
	}
}

// TestBusyPoints: other work on the host while the points were offered is a warning; that of generator and target is
// none, whether the target's is known by its address or by probes, and where it is hidden, that is said.
func TestBusyPoints(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		busy, stolen float64  // of 20 CPU-seconds
		target       *float64 // of each of two points
		probed       float64
		local        bool
		want         string
	}{
		"its own": {busy: 10, target: new(4.0), local: true},
		"others": {
			busy: 18, target: new(4.0), local: true,
			want: "other work used 40 % of this host's CPU time while the points were offered: rates and times are those of",
		},
		"its own, probed": {busy: 10, probed: 9, local: true},
		"hidden":          {busy: 18, local: true, want: "other processes, the server under test among them, used 80 %"},
		"elsewhere":       {busy: 18, want: "other work used 80 %"},
		"stolen":          {busy: 2, stolen: 1, want: "the hypervisor took 5 % of this host's CPU time while the points"},
	} {
		trial := &record.Trial{Generator: []record.Generator{{Placement: &record.Placement{Local: x.local}}}}
		if x.probed > 0 {
			for when, v := range map[record.When]float64{record.Before: 7, record.After: 7 + x.probed} {
				trial.Samples = append(trial.Samples, record.Samples{When: when, Samples: []metric.Sample{
					{Subject: "pdp", Metric: probe.CPU.Name, Value: v},
				}})
			}
		}
		half := guard.Point{TargetCPU: x.target, Segment: load.Segment{Effort: &load.Effort{
			CPU: 1, Host: &load.Processors{All: 10, Busy: x.busy / 2, Stolen: x.stolen / 2},
		}}}
		a := &analysis{rec: &record.Record{}, rep: &report.Report{}}
		a.busyPoints(trial, []guard.Point{half, {}, half})
		if got := strings.Join(a.rep.Warnings, "; "); (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// TestEachTrespassIsDecided: a trespass of which no call was decided earns no pass for it.
func TestEachTrespassIsDecided(t *testing.T) {
	trial := &record.Trial{TrialBegin: record.TrialBegin{
		Operations: []string{"good", "bad/a", "bad/b"}, Twins: map[string]string{"bad/a": "good", "bad/b": "good"},
	}}
	g := &report.Guard{
		Trespasses: report.Trespasses{Refused: 9}, Operations: map[string]report.Trespasses{"bad/a": {Refused: 9}},
	}
	if got := neverDecided(trial, g); !strings.Contains(got, "decided no call of bad/b: a longer") {
		t.Errorf("%q, want that bad/b was never decided", got)
	}
	if g.Operations["bad/b"] = (report.Trespasses{Permitted: 1}); neverDecided(trial, g) != "" {
		t.Errorf("%q, want nothing: each was decided", neverDecided(trial, g))
	}
}

// TestBreachesAreTimed: a breach is timed as the first of its point is: since the point began, or the condition.
func TestBreachesAreTimed(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	segment := func(from, to float64) load.Segment { return load.Segment{Start: at(from), End: at(to)} }
	points := []guard.Point{
		{Rate: 60, Segment: segment(1, 6)},
		{
			Name: "late", Rate: 60, Segment: segment(10, 25),
			Condition: &guard.Condition{Name: "late", Begun: at(12), Ended: at(14)},
		},
	}
	got := breachesOf([]guard.Breach{{At: at(3)}, {At: at(15)}, {At: at(11)}}, points)
	for i, want := range []report.Breach{
		{At: 2, Point: "60/s", Rate: 60}, {At: 3, Point: "late", Rate: 60}, {At: -1, Point: "late", Rate: 60},
	} {
		if got[i] != want {
			t.Errorf("%+v, want %+v", got[i], want)
		}
	}
}

// TestFiguresHaveIntervals: a quantile of what an area measured is open above where the values are too few; the longest
// is a fact, and the worst condition counts.
func TestFiguresHaveIntervals(t *testing.T) {
	t.Parallel()
	var values []float64
	for i := range 100 {
		values = append(values, 1+float64(i)/100)
	}
	a := &analysis{areaFigures: []areaFigure{
		{"default", "reload", metric.Revoke.Name, []float64{1, 2}, []float64{1, 2}},
		{"default", "revoke", metric.Revoke.Name, values, values},
	}}
	for _, x := range []struct {
		quantile string
		reload   bool // was measured, too
		limit    float64
		want     report.Verdict
		why      string
	}{
		{"p99", false, 2.1, report.Inconclusive, "100 times under the condition revoke; so few do not bound it from above"},
		{"p90", false, 2.1, report.Pass, "revoke"},
		{"p90", false, 1.9, report.Inconclusive, "revoke"},
		{"p90", false, 1.5, report.Fail, "revoke"},
		{"mean", false, 1.6, report.Pass, "revoke"},
		{"mean", false, 1.5, report.Inconclusive, "revoke"},
		{"max", false, 2, report.Pass, "revoke"},
		{"", true, 2, report.Pass, "2 times under the condition reload"},
		{"p90", true, 2.1, report.NotMeasured, ""},
	} {
		at := analysis{areaFigures: a.areaFigures[1:]}
		if x.reload {
			at = *a
		}
		b := &budget.Budget{Metric: metric.Revoke.Name, Quantile: x.quantile, Op: budget.AtMost, Limit: budget.Limit{
			Value: x.limit, Unit: metric.Seconds, Against: budget.Absolute,
		}}
		if f := at.figureFinding(b, "default").judged(b); f.verdict != x.want || !strings.Contains(f.how, x.why) {
			t.Errorf("%q <= %v: %s, %q %+v; want %s, %q", x.quantile, x.limit, f.verdict, f.how, f.Interval, x.want, x.why)
		}
	}
}

// TestTimesWithoutAnEndPassNothing: what was still granted when it was asked for last lasts longer than that, nobody
// knows how long. A budget passes only where the others decide it, and the report says of which figures it is a bound.
func TestTimesWithoutAnEndPassNothing(t *testing.T) {
	t.Parallel()
	spans := func(ended, unended int) (out []guard.Span) {
		for i := range ended {
			out = append(out, guard.Span{Least: float64(i) / 100, Most: new(float64(i)/100 + 0.1)})
		}
		for range unended {
			out = append(out, guard.Span{Least: 60})
		}
		return out
	}
	for _, x := range []struct {
		ended, unended int
		quantile       string
		limit          float64
		want           report.Verdict
	}{
		{0, 100, "max", 90, report.Inconclusive},
		{0, 100, "p90", 90, report.Inconclusive},
		{0, 100, "mean", 90, report.Inconclusive},
		{0, 100, "max", 30, report.Fail},
		{0, 100, "p90", 30, report.Fail},
		{99, 1, "max", 90, report.Inconclusive},
		{99, 1, "max", 30, report.Fail},
		{99, 1, "mean", 90, report.Inconclusive},
		{99, 1, "p50", 0.8, report.Pass},
		{62, 38, "p50", 90, report.Pass},
		{45, 55, "p50", 90, report.Inconclusive},
		{100, 0, "max", 1, report.Inconclusive}, // it ended between 0.99 s and 1.09 s
		{100, 0, "max", 1.1, report.Pass},
		{100, 0, "max", 0.98, report.Fail},
	} {
		a := &analysis{}
		point := &guard.Point{Condition: &guard.Condition{
			Name: "revoke", Spans: map[string][]guard.Span{metric.Revoke.Name: spans(x.ended, x.unended)},
		}}
		var g report.Guard
		trial := &record.Trial{}
		trial.Treatment = "default"
		a.conditionRemarks(trial, point, &g)
		b := &budget.Budget{Metric: metric.Revoke.Name, Quantile: x.quantile, Op: budget.AtMost, Limit: budget.Limit{
			Value: x.limit, Unit: metric.Seconds, Against: budget.Absolute,
		}}
		f := a.figureFinding(b, "default").judged(b)
		said := strings.Contains(f.how, fmt.Sprintf("; still granted when asked for last under revoke: %d of 100", x.unended))
		if f.verdict != x.want || said != (x.unended > 0) || strings.Contains(f.how, "so few") {
			t.Errorf("%+v: %s, %q %+v", x, f.verdict, f.how, f.Interval)
		}
		if len(g.Figures) != 1 || g.Figures[0].Unended != uint64(x.unended) || g.Figures[0].Values.N != 100 {
			t.Errorf("%+v: %+v", x, g.Figures)
		}
	}
}

// TestEachRateIsJudged: a limit above 0 holds at each rate and under each condition by itself, however many calls were
// made elsewhere.
func TestEachRateIsJudged(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		n         guard.Trespasses // at 200/s
		condition string
		refined   bool
		want      report.Verdict
		why       string
	}{
		"beyond at one rate": {
			n: guard.Trespasses{Refused: 455, Permitted: 43}, want: report.Fail,
			why: "; judged at 200/s: 43 of 498, interval at 99",
		},
		"beyond where the onset is": {n: guard.Trespasses{Refused: 455, Permitted: 43}, refined: true, want: report.Fail},
		"beyond under a condition": {
			n: guard.Trespasses{Refused: 455, Permitted: 43}, condition: "slow", want: report.Fail, why: "judged under slow",
		},
		"perhaps beyond": {n: guard.Trespasses{Refused: 97, Permitted: 3}, want: report.Inconclusive, why: "3 of 100"},
		"unclear": {
			n: guard.Trespasses{Refused: 100, Unclear: 3}, want: report.Inconclusive, why: "0 of 100, with 3 answered neither",
		},
		"unanswered": {
			n: guard.Trespasses{Refused: 100, Unanswered: 3}, want: report.Inconclusive, why: "0 of 100, with 3 not answered",
		},
		"within": {n: guard.Trespasses{Refused: 495, Permitted: 3}, want: report.Pass, why: "3 of 498"},
		"none":   {n: guard.Trespasses{Refused: 20}, want: report.Pass},
	} {
		a := &analysis{rec: &record.Record{}, rep: &report.Report{Question: design.Guard}}
		g := report.Guard{Treatment: "default"}
		all := x.n
		for _, rate := range []float64{20, 40, 60, 80} {
			n := guard.Trespasses{Refused: 520}
			all.Add(n)
			g.Points = append(g.Points, report.GuardPoint{Rate: rate, Trespasses: trespasses(n)})
		}
		p := report.GuardPoint{Rate: 200, Refined: x.refined, Trespasses: trespasses(x.n)}
		if x.condition != "" {
			p.Condition = &report.GuardCondition{Name: x.condition}
		}
		g.Points, g.Trespasses = append(g.Points, p), trespasses(all)
		a.rep.Guard = []report.Guard{g}
		b := &budget.Budget{Metric: metric.Permitted.Name, Op: budget.AtMost, Limit: budget.Limit{
			Value: 0.04, Unit: metric.Ratio, Against: budget.Absolute,
		}}
		if f := a.guardFinding(b, "default"); f.verdict != x.want || !strings.Contains(f.how, x.why) {
			t.Errorf("%s: %s, %q; want %s, %q", name, f.verdict, f.how, x.want, x.why)
		}
	}
}

// TestUnansweredTrespassesOfASoak: a soak counts its calls, and trespasses without an answer may have been permitted
// where other calls got none at least twice as often.
func TestUnansweredTrespassesOfASoak(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		trespasses, calls report.Outcomes
		want              uint64
	}{
		"permits wait, refusals do not": {
			report.Outcomes{Denied: 985, Timeout: 10, ConnFailed: 5}, report.Outcomes{OK: 300, Timeout: 700}, 15,
		},
		"both wait":  {report.Outcomes{Denied: 310, Timeout: 690}, report.Outcomes{OK: 300, Timeout: 700}, 0},
		"never sent": {report.Outcomes{Denied: 985, Timeout: 15, Unsent: 15}, report.Outcomes{OK: 300, Timeout: 700}, 0},
		"no call was sent": {
			report.Outcomes{Denied: 985, Timeout: 15}, report.Outcomes{OK: 300, ConnFailed: 700, Unsent: 700}, 0,
		},
	} {
		a := &analysis{rec: &record.Record{}, rep: &report.Report{}}
		s := &soak{trial: &record.Trial{}, total: tallies{names: []string{"token", "stranger"}, per: map[string]*soakTally{
			"token": {tally: tally{outcomes: x.calls}}, "stranger": {tally: tally{outcomes: x.trespasses}},
		}}}
		s.trial.Twins = map[string]string{"stranger": "token"}
		a.soakedTrespasses(s)
		g := a.rep.Guard[0]
		if n := g.Trespasses.Unanswered; n != x.want || g.Operations["stranger"].Unanswered != x.want {
			t.Errorf("%s: %d unanswered, want %d", name, n, x.want)
		}
	}
}
