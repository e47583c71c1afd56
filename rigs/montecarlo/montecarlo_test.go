package montecarlo

import (
	"os"
	"slices"
	"strings"
	"testing"

	"tare/internal/stat"
	"tare/rigs/hosttest"
)

// smallStudy returns a small, seeded study. Its bounds are four standard errors of a share around what the full tables
// show; a wrong formula is far outside.
func smallStudy(n int) Study { return Study{Seed: 20, N: n, Workers: 2} }

// halfStudy returns a study of half as many repetitions, or of all with TARE_TEST_LONG=1.
func halfStudy(n int) Study {
	if os.Getenv("TARE_TEST_LONG") != "1" {
		n /= 2
	}
	return smallStudy(n)
}

func wantWithin(t *testing.T, name string, got, lo, hi float64) {
	t.Helper()
	if !(lo <= got && got <= hi) {
		t.Errorf("%s: %.4f is not within %.3f … %.3f", name, got, lo, hi)
	}
}

func TestMedianCoverage(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, w := range Worlds() {
		c, err := MedianCoverage(t.Context(), halfStudy(800), w, 20)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, w.Name, c.Share, 0.925, 0.98)
	}
}

func TestTailCoverage(t *testing.T) {
	hosttest.SkipIfShort(t)
	worlds := Worlds()
	for _, w := range []World{worlds[1], worlds[3], worlds[7], worlds[8]} {
		c, err := TailCoverage(t.Context(), smallStudy(300), w, 20)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, w.Name, c.Share, 0.91, 0.985)
	}
}

func TestFalsePositives(t *testing.T) {
	hosttest.SkipIfShort(t)
	hosts := Hosts()
	for _, h := range []Host{hosts[1], hosts[3]} {
		f, err := FalsePositives(t.Context(), smallStudy(300), h)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, h.Name+", five looks", f.Looks, 0.01, 0.1)
		wantWithin(t, h.Name+", every block", f.EveryBlock, 0.2, 0.45) // the simulation must be able to see a bad design
		if h.Name == hosts[3].Name {
			wantWithin(t, h.Name+", sequential", f.Sequential[1], 0.5, 0.9)
		}
	}
}

func TestFalseEquivalence(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, n := range Noises() {
		at, overall, err := FalseEquivalence(t.Context(), halfStudy(1500), n)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range at {
			wantWithin(t, n.Name, v, 0.0006, stat.LookAlpha/2+0.009)
			if v > overall {
				t.Errorf("look %d: %v exceeds the %v of any", i, v, overall)
			}
		}
		wantWithin(t, n.Name+", any look", overall, 0.01, 0.05)
	}
}

func TestFamilyError(t *testing.T) {
	for name := range families() {
		f, err := FamilyError(t.Context(), smallStudy(1000), name)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, name+", Holm", f.AnyHolm, 0, 0.07)
		wantWithin(t, name+", beyond the margin", f.BeyondMargin, 0, 0.07)
		wantWithin(t, name+", Benjamini–Hochberg", f.Discoveries, 0, 0.07)
		if name == "no effect" {
			wantWithin(t, name+", unadjusted", f.AnyRaw, 0.13, 0.26)
		} else {
			wantWithin(t, name+", found", f.Found, 0.9, 1)
		}
	}
}

// TestExplore: of what is called different from 0 among 120 effects no larger share is false, and no larger share of
// the intervals misses the truth, than a look allows, whatever the noise; and a several-fold effect is found in 8
// blocks, where the rank test can find none.
func TestExplore(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, x := range Explorations() {
		none, err := Explore(t.Context(), smallStudy(400), x, exploredBlocks, 0, 0, mean())
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, x.Name+", no effect", none.Any, 0, stat.LookAlpha+0.023)
		some, err := Explore(t.Context(), smallStudy(400), x, exploredBlocks, 4, 20, mean())
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, x.Name+", false", some.False, 0, stat.LookAlpha+0.004)
		wantWithin(t, x.Name+", missed", some.Missed, 0, stat.LookAlpha+0.006)
		wantWithin(t, x.Name+", found", some.Found, 0.7, 1)
	}
	byRank, err := Explore(t.Context(), smallStudy(50), Explorations()[0], exploredBlocks, 20, 20, rank())
	if err != nil {
		t.Fatal(err)
	}
	wantWithin(t, "found by the rank test", byRank.Found, 0, 0)
}

func TestPowerAt(t *testing.T) {
	cells, err := PowerAt(t.Context(), smallStudy(800), 40, []float64{0.01, 0.05}, []float64{0, 0.02, 0.05})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][3]float64{
		{0, 0.013, 1},
		{0.006, 1, 0.013},
		{1, 1, 0},
		{0, 0.013, 0.07},
		{0.006, 0.45, 0.013},
		{0.84, 1, 0},
	} {
		c := cells[i]
		for k, got := range []float64{c.Regressed, c.Differs, c.Equivalent} {
			wantWithin(t, "power", got, want[k]-0.07, want[k]+0.07)
		}
	}
}

func TestPowerAtMDE(t *testing.T) {
	for _, blocks := range []int{10, 40} {
		p, err := PowerAtMDE(t.Context(), smallStudy(1200), Noises()[0], blocks)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, "power at the minimum detectable effect", p, 0.75, 0.86)
	}
}

func TestPromised(t *testing.T) {
	for _, effect := range []float64{0, 0.03} {
		p, err := Promised(t.Context(), smallStudy(300), effect, 20)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, "promised", p.Announced, 0.45, 0.9)
		wantWithin(t, "kept", p.Kept, 0.77, 1)
	}
}

func TestGrowthOf(t *testing.T) {
	hosttest.SkipIfShort(t)
	long := Ladders()[1]
	for _, l := range stat.Laws() {
		g, err := GrowthOf(t.Context(), smallStudy(120), l, long, 0.02)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, string(l)+" named wrongly", g.Wrong, 0, 0.03)
		wantWithin(t, string(l)+" with a knee", g.FalseKnee, 0, 0.08)
		wantWithin(t, string(l)+" with a step", g.FalseStep, 0, 0.05)
		wantWithin(t, string(l)+" not fitted", g.Unfit, 0, 0.05)
		if l == stat.Constant {
			wantWithin(t, "constant named", g.Right, 0, 0) // it is a bound, never a law
			continue
		}
		wantWithin(t, string(l)+" named rightly", g.Right, 0.85, 1)
		wantWithin(t, string(l)+" c1", g.C1, 0.87, 1)
		wantWithin(t, string(l)+" breaks inside", g.Inside, 0.87, 1)
		wantWithin(t, string(l)+" breaks beyond", g.Beyond, 0.87, 1)
	}
}

func TestKneeOf(t *testing.T) {
	hosttest.SkipIfShort(t)
	for shape := range shapes(1, 10) {
		k, err := KneeOf(t.Context(), halfStudy(80), shape, Ladders()[1], 0.02)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, shape+" found", k.Found, 0.95, 1)
		wantWithin(t, shape+" covered", k.Covered, 0.9, 1)
		wantWithin(t, shape+" near", k.Within, 0.95, 1)
		// Where only one in eight is found, it is the luckiest: its interval must be wide enough all the same.
		k, err = KneeOf(t.Context(), halfStudy(400), shape, Ladders()[1], 0.1)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, shape+" covered at 10 %", k.Covered, 0.75, 1) // of some sixty
	}
}

// TestTurnOf: steps of 50 % are found where they are, intervals cover their factor, and nothing else is called a step.
func TestTurnOf(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, turn := range Turns() {
		if turn.Factor == 1.1 { // too small for this noise
			continue
		}
		x, err := TurnOf(t.Context(), smallStudy(80), turn, 0.03)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case turn.Factor > 0:
			wantWithin(t, turn.Name+" found", x.Placed, 0.95, 1)
			wantWithin(t, turn.Name+" covered", x.Covered, 0.86, 1)
			wantWithin(t, turn.Name+" taken for a bend", x.Bend, 0, 0.05)
			wantWithin(t, turn.Name+" bias", x.Bias, -0.02, 0.02)
			if turn.Factor > 1 {
				wantWithin(t, turn.Name+" breaks in the step", x.Broken, 0.95, 1)
			}
		case turn.Bend > 0:
			wantWithin(t, turn.Name+" found", x.Bend, 0.9, 1)
			wantWithin(t, turn.Name+" taken for a step", x.Step, 0, 0.05)
			wantWithin(t, turn.Name+" covered", x.Covered, 0.9, 1)
			wantWithin(t, turn.Name+" bias", x.Bias, -0.1, 0.1)
		default:
			wantWithin(t, turn.Name+" taken for a step", x.Step, 0, 0.05)
		}
	}
}

// TestReproducible: the result does not depend on the number of workers.
func TestReproducible(t *testing.T) {
	w := Worlds()[7]
	one, _ := MedianCoverage(t.Context(), Study{Seed: 3, N: 50, Workers: 1}, w, 10)
	four, _ := MedianCoverage(t.Context(), Study{Seed: 3, N: 50, Workers: 4}, w, 10)
	other, _ := MedianCoverage(t.Context(), Study{Seed: 4, N: 50, Workers: 1}, w, 10)
	if one != four || one == other {
		t.Errorf("one worker %+v, four %+v, another seed %+v", one, four, other)
	}
}

// TestTruth: the slow path raises p99 by much more than the 5 % of everything else, and p50 hardly more.
func TestTruth(t *testing.T) {
	worlds := Worlds()
	slow := worlds[len(worlds)-1]
	wantWithin(t, "plain p99", worlds[0].truth(0.99), 0.0487, 0.0489)
	wantWithin(t, "p50 with a slow path", slow.truth(0.5), 0.05, 0.06)
	wantWithin(t, "p99 with a slow path", slow.truth(0.99), 0.8, 0.9)
}

func TestTables(t *testing.T) {
	var titles []string
	for _, table := range []int{1, 2, 3} { // the quick ones
		tab, err := Tables()[table](t.Context(), smallStudy(20))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := tab.Write(&b); err != nil {
			t.Fatal(err)
		}
		for _, row := range tab.Rows {
			if len(row) != len(tab.Columns) || !strings.Contains(b.String(), "| "+strings.Join(row, " | ")+" |\n") {
				t.Errorf("%s: row %v", tab.Title, row)
			}
		}
		if slices.Contains(titles, tab.Title) || len(tab.Rows) == 0 {
			t.Errorf("table %q twice or empty", tab.Title)
		}
		titles = append(titles, tab.Title)
	}
}

// TestTrendCoverage: intervals of trends have their coverage if a window's value forgets the previous ones within a few
// windows; those of the fitted line alone do not.
func TestTrendCoverage(t *testing.T) {
	hosttest.SkipIfShort(t)
	all := Courses()
	for _, c := range []struct {
		course  Course
		windows int
		lo, hi  float64
	}{
		{all[0], 60, 0.915, 0.985},
		{all[2], 60, 0.9, 0.975},
		{all[2], 120, 0.91, 0.99},
		{all[4], 120, 0.92, 0.985},
		{all[6], 300, 0.95, 1},
		{all[8], 300, 0.88, 0.98},
	} {
		x, err := TrendCoverage(t.Context(), smallStudy(300), c.course, c.windows)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, c.course.Name, x.Share, c.lo, c.hi)
		if c.course.Name == all[2].Name {
			wantWithin(t, "least squares alone", x.Line, 0.4, 0.75) // the simulation must be able to see a bad interval
		}
	}
}

func TestMeanCoverage(t *testing.T) {
	truths := means()
	for _, c := range []Course{Courses()[0], Courses()[2], Courses()[6]} {
		v, err := MeanCoverage(t.Context(), smallStudy(300), c, 60, truths[c.Name])
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, c.Name, v, 0.9, 1)
	}
}

// TestLeak: half a MiB a minute is found in ten minutes; a twentieth of that is not.
func TestLeak(t *testing.T) {
	found, held, err := Leak(t.Context(), smallStudy(120), 1.0/30, 300)
	if err != nil {
		t.Fatal(err)
	}
	wantWithin(t, "found", found, 0.99, 1)
	wantWithin(t, "held", held, 0.94, 1)
	few, _, err := Leak(t.Context(), smallStudy(120), 0.01/30, 60)
	if err != nil {
		t.Fatal(err)
	}
	wantWithin(t, "a small one in two minutes", few, 0, 0.08)
}
