package guard

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
)

// at is a point of a target that serves a share of the other calls, with a median response, and refuses the trespasses.
func at(rate, served float64, median time.Duration) Seen {
	n := uint64(5 * rate)
	good := uint64(served * float64(n))
	return Seen{
		Point: Point{Rate: rate}, Median: median, Trespasses: Trespasses{Refused: n / 10},
		Legitimate: Legitimate{Served: good, Failed: n - good},
	}
}

// late is a point at which the generator could not keep up.
func late(s Seen) Seen {
	s.Late = true
	return s
}

// refusing is a point at which the calls that were not served were refused.
func refusing(s Seen) Seen {
	s.Legitimate.Wrong, s.Legitimate.Failed = s.Legitimate.Failed, 0
	return s
}

// away is a point at which the calls that were not served were turned away.
func away(s Seen) Seen {
	s.Legitimate.TurnedAway = s.Legitimate.Failed
	return s
}

const ms = time.Millisecond

// TestOverload: a target is overloaded from the lowest rate on at which, and at all above which, it served fewer or was
// much slower than below; a stall at one rate is no overload.
func TestOverload(t *testing.T) {
	for name, x := range map[string]struct {
		points []Seen
		want   float64 // 0: it was not overloaded
		slower bool
	}{
		"nothing degraded": {points: []Seen{at(100, 1, 8*ms), at(200, 1, 8*ms), at(400, 1, 9*ms)}},
		"fewer served":     {points: []Seen{at(100, 1, 8*ms), at(200, 1, 8*ms), at(400, 0.8, 9*ms)}, want: 400},
		"slower": {
			points: []Seen{at(100, 1, 8*ms), at(200, 1, 60*ms), at(400, 1, 2000*ms)}, want: 200, slower: true,
		},
		"slower by a little":      {points: []Seen{at(100, 1, ms), at(200, 1, 9*ms)}},
		"slower, but not 3 times": {points: []Seen{at(100, 1, 50*ms), at(200, 1, 120*ms)}},
		"a stall at one rate":     {points: []Seen{at(100, 1, 8*ms), at(200, 0.7, 300*ms), at(400, 1, 9*ms)}},
		"a few fail at any rate":  {points: []Seen{at(100, 0.95, 8*ms), at(200, 0.945, 8*ms), at(400, 0.95, 9*ms)}},
		"refused, not overloaded": {points: []Seen{at(100, 1, 8*ms), refusing(at(200, 0.5, 8*ms)), refusing(at(400, 0, 0))}},
		"turned away, not overloaded": {points: []Seen{
			at(100, 1, 8*ms), away(at(200, 0.5, 8*ms)), away(at(400, 0.2, 9*ms)),
		}},
		"turned away, and slower": {
			points: []Seen{at(100, 1, 8*ms), away(at(200, 0.5, 60*ms))}, want: 200, slower: true,
		},
		"turned away, and then errors": {
			points: []Seen{at(100, 1, 8*ms), away(at(200, 0.5, 8*ms)), at(400, 0.2, 9*ms)}, want: 400,
		},
		"refused at lower rates": {points: []Seen{refusing(at(100, 0.5, 8*ms)), at(400, 0.8, 9*ms)}, want: 400},
		"one rate":               {points: []Seen{at(400, 0.5, 900*ms)}},
		"in any order":           {points: []Seen{at(400, 0.8, 9*ms), at(100, 1, 8*ms)}, want: 400},
		"the generator's":        {points: []Seen{at(100, 1, 8*ms), late(at(400, 0.5, 900*ms))}},
		"too few calls to tell":  {points: []Seen{at(1, 1, 8*ms), at(2, 0.8, 9*ms)}},
		"a condition": {points: []Seen{at(100, 1, 8*ms), {
			Point: Point{Rate: 200, Condition: &Condition{}}, Legitimate: Legitimate{Failed: 1000},
		}}},
	} {
		o, ok := OverloadOf(x.points)
		if ok != (x.want > 0) || o.Rate != x.want || o.Slower != x.slower {
			t.Errorf("%s: %+v, %v; want %v/s", name, o, ok, x.want)
		}
	}
}

// TestLeftOutRates: lower rates at which a target did badly, too, are named: what is said of lower rates is not of
// them.
func TestLeftOutRates(t *testing.T) {
	busy := func(s Seen) Seen { return beside(s, 2, 1, .02) }
	for name, x := range map[string]struct {
		points []Seen
		rate   float64 // of the overload
		want   []float64
	}{
		"other work at two rates": {
			points: []Seen{
				busy(at(200, 1, 400*ms)), busy(at(400, 1, 1300*ms)), busy(at(800, 1, 1400*ms)), at(1600, 0.1, 2500*ms),
			},
			rate: 1600, want: []float64{400, 800},
		},
		"a stall": {
			points: []Seen{
				at(100, 1, 8*ms), at(200, 0.7, 300*ms), at(400, 1, 9*ms), at(800, 0.4, 300*ms), at(900, 0.4, 300*ms),
			},
			rate: 800, want: []float64{200},
		},
		"nothing": {points: []Seen{at(100, 1, 8*ms), at(200, 1, 9*ms), at(800, 0.4, 300*ms)}, rate: 800},
	} {
		o, ok := OverloadOf(x.points)
		if !ok || o.Rate != x.rate || !slices.Equal(o.LeftOut, x.want) || o.Below.Value != 1 {
			t.Errorf("%s: %+v, %v; want %v/s without %v", name, o, ok, x.rate, x.want)
		}
	}
}

// TestTurnedAway: calls are turned away from the lowest rate on at which they are, and at all higher ones; no more than
// what was let through reached the control.
func TestTurnedAway(t *testing.T) {
	limited := []Seen{
		at(25, 1, 8*ms), away(at(100, 0.5, 8*ms)), away(at(200, 0.26, 8*ms)), late(away(at(400, 0.01, 8*ms))),
	}
	for name, x := range map[string]struct {
		points []Seen
		want   TurnedAway
	}{
		"from a rate on": {points: limited, want: TurnedAway{Rate: 100, Most: 52}},
		"at all rates":   {points: limited[1:], want: TurnedAway{Rate: 100, Most: 52}},
		"at one rate":    {points: []Seen{away(at(100, 0.5, 8*ms)), at(200, 1, 8*ms)}},
		"others failed":  {points: []Seen{at(100, 1, 8*ms), at(200, 0.5, 8*ms)}},
		"hardly any":     {points: []Seen{at(100, 1, 8*ms), away(at(200, 0.98, 8*ms))}},
		"no points":      {},
	} {
		if got, ok := TurnedAwayFrom(x.points); ok != (x.want.Rate > 0) || ok && got != x.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, ok, x.want)
		}
	}
}

// TestOverloadIsAnswered: the trespasses that count are those at and near the overload; errors are answers, time-outs
// and refused connections are not.
func TestOverloadIsAnswered(t *testing.T) {
	over := at(400, 0.5, 900*ms)
	over.Trespasses = Trespasses{Refused: 50, Undecided: 100, Errors: 70, Unsent: 5}
	o, ok := OverloadOf([]Seen{at(100, 1, 8*ms), at(300, 1, 8*ms), over})
	if !ok || o.Decided != 150+50 || o.Answered != 150+50+70 || o.Failed != 35 || !o.Enough() {
		t.Errorf("%+v, %v", o, ok)
	}
	if o, ok = OverloadOf([]Seen{at(100, 1, 8*ms), over}); !ok || o.Enough() {
		t.Errorf("%+v, %v; want too few", o, ok)
	}
}

// TestMedianIsTheTargets: the generator's own delay of a call is no part of the median response.
func TestMedianIsTheTargets(t *testing.T) {
	var calls load.Calls
	for i := range 101 {
		due := time.Second + time.Duration(i)*ms
		calls = append(calls, load.Call{Intended: due, Ready: due, Sent: due + 40*ms, Done: due + 45*ms})
	}
	p := Point{Segment: load.Segment{Start: time.Second, End: 2 * time.Second}, Read: time.Minute}
	s := Assess(p, twoOperations, calls)
	if s.Median != 5*ms {
		t.Errorf("%v, want 5 ms", s.Median)
	}
}

// TestHigher: the rate doubles until the target is overloaded and once more; it never exceeds the bound, and comes back
// from a rate that the generator twice could not offer.
func TestHigher(t *testing.T) {
	sound := []Seen{at(100, 1, 8*ms), at(400, 1, 8*ms)}
	with := func(more ...Seen) []Seen { return append(append([]Seen{}, sound...), more...) }
	busy := late(at(800, 0.5, 900*ms))
	for name, x := range map[string]struct {
		points []Seen
		most   float64
		rate   float64
		end    End
	}{
		"nothing degraded": {points: sound, rate: 800},
		"up to max_rate":   {points: sound, most: 500, rate: 500},
		"max_rate reached": {points: sound, most: 400, end: End{Stop: StopMaxRate}},
		"overloaded":       {points: with(at(800, 0.5, 9*ms)), rate: 1600},
		"turned away, well beyond": {
			points: with(away(at(800, 0.5, 9*ms)), away(at(2000, 0.2, 9*ms))), end: End{Stop: StopOverload},
		},
		"beyond":           {points: with(at(800, 0.5, 9*ms), at(1600, 0.2, 9*ms)), rate: 3200},
		"well beyond":      {points: with(at(800, 0.5, 9*ms), at(2000, 0.2, 9*ms)), end: End{Stop: StopOverload}},
		"once at max_rate": {points: with(at(800, 0.5, 9*ms)), most: 800, rate: 800},
		"twice at max_rate": {
			points: with(at(800, 0.5, 9*ms), at(800, 0.5, 9*ms)), most: 800, end: End{Stop: StopOverload},
		},
		"a stall at max_rate": {
			points: with(at(800, 0.5, 9*ms), at(800, 1, 9*ms)), most: 800, end: End{Stop: StopMaxRate},
		},
		"a busy host, once": {points: with(busy), rate: 800},
		"back":              {points: with(busy, busy), rate: 565.685424949238},
		"a limited generator": {
			points: with(busy, busy, at(565, 1, 8*ms)), end: End{Stop: StopGenerator, Rate: 800},
		},
		"overloaded below what the generator can do": {
			points: with(busy, busy, at(565, 0.6, 8*ms)), end: End{Stop: StopOverload},
		},
		"nothing but a busy host": {points: []Seen{busy, busy}, end: End{Stop: StopGenerator, Rate: 800}},
	} {
		rate, end := Higher(x.points, x.most)
		if rate-x.rate > 1e-9 || x.rate-rate > 1e-9 || end != x.end {
			t.Errorf("%s: %v/s %+v, want %v/s %+v", name, rate, end, x.rate, x.end)
		}
	}
}

// TestHigherEnds: the rates of a target that never degrades end, and none exceeds the bound.
func TestHigherEnds(t *testing.T) {
	for _, most := range []float64{0, 150, 1000} {
		points := []Seen{at(10, 1, 8*ms)}
		for n := 0; ; n++ {
			rate, end := Higher(points, most)
			if end.Stop == StopMaxRate {
				break
			}
			if n > 20 || rate <= points[len(points)-1].Rate || most > 0 && rate > most || rate > HighestRate {
				t.Fatalf("bound %v: %v/s after %v/s, %+v", most, rate, points[len(points)-1].Rate, end)
			}
			points = append(points, at(rate, 1, 8*ms))
		}
	}
}

// TestMore: trespasses that a verdict lacks are asked for below the overload, or at it if too few were answered there;
// none after a breach, which decides.
func TestMore(t *testing.T) {
	over := at(800, 0.5, 9*ms)
	few := over
	few.Trespasses = Trespasses{Refused: 150, Undecided: 250}
	breach := at(200, 1, 8*ms)
	breach.Trespasses.Permitted = 1
	for name, x := range map[string]struct {
		points []Seen
		rate   float64
	}{
		"few":                   {points: []Seen{at(100, 1, 8*ms), at(200, 1, 8*ms), over}, rate: 200},
		"enough":                {points: []Seen{at(10000, 1, 8*ms)}},
		"few answered overload": {points: []Seen{at(100, 1, 8*ms), at(500, 1, 8*ms), few}, rate: 800},
		"a breach":              {points: []Seen{breach, over}},
		"nothing decided":       {points: []Seen{{Point: Point{Rate: 100}, Legitimate: Legitimate{Failed: 500}}}},
	} {
		rate, length, ok := More(x.points, 0.2, Enough())
		if rate != x.rate || ok != (x.rate > 0) || ok && (length <= 0 || length > LongestPoint) {
			t.Errorf("%s: %v/s for %v, %v; want %v/s", name, rate, length, ok, x.rate)
		}
	}
}

// TestRareFaultIsFound: a control that permits 1 in 200 trespasses passes as many as are enough for a verdict in fewer
// than 1 in 1,000 runs.
func TestRareFaultIsFound(t *testing.T) {
	rng, missed := rand.New(rand.NewPCG(2, 7)), 0
	const runs = 20_000
	for range runs {
		permitted := false
		for range Enough() {
			permitted = permitted || rng.IntN(200) == 0
		}
		if !permitted {
			missed++
		}
	}
	if missed > runs/1000 {
		t.Errorf("%d of %d runs miss it", missed, runs)
	}
}

// TestPlannedTrespassesAreEnough: the planned points of a target ask for more trespasses than a verdict needs, however
// slow or fast it is, though most of those above its capacity are not decided.
func TestPlannedTrespassesAreEnough(t *testing.T) {
	for _, capacity := range []float64{40, 150, 500, 20_000} {
		lowest := capacity * Factors()[0]
		share, decided := Share(0.1, lowest), 0.0
		for _, f := range Factors() {
			rate := f * capacity
			decided += min(rate, capacity) * share * Length(UsualPoint, rate, share).Seconds()
		}
		if decided < float64(Enough()) {
			t.Errorf("capacity %v/s: %.0f trespasses, want %d", capacity, decided, Enough())
		}
	}
}

// TestTooFewTrespasses: rates at which a pass cannot have its trespasses in time are named, with the time that would
// do.
func TestTooFewTrespasses(t *testing.T) {
	const minute = time.Minute
	for name, x := range map[string]struct {
		most  time.Duration
		rates []float64
		want  string
	}{
		"enough in the default time": {rates: []float64{20}},
		"too slow for the default time": {
			rates: []float64{4}, want: "it needs 1497 trespasses that the control decides, and at most about 1200 are offered " +
				"in 10m: raise load.max_time to 14m, or offer higher rates",
		},
		"that time does":        {most: 14 * minute, rates: []float64{4}},
		"too little time":       {most: minute, rates: []float64{20}, want: "at most about 600 are offered in 1m: "},
		"the search gives them": {},
	} {
		got := TooFew(x.most, 0, 0.1, x.rates, Enough())
		if (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// TestMoreInVain: a point that gave less than half of the trespasses that it was to give was in vain.
func TestMoreInVain(t *testing.T) {
	for decided, want := range map[uint64]bool{0: true, 40: true, 60: false} {
		s := Seen{Point: Point{Rate: 100}, Trespasses: Trespasses{Refused: decided}}
		if got := MoreInVain(&s, 5*time.Second, 0.2); got != want {
			t.Errorf("%d of 100 decided: %v", decided, got)
		}
	}
}
