package montecarlo

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/stat"

	"tare/rigs/hosttest"
)

// TestTurnsFalse: equal arms differ no more often than a look allows, wherever the host's speed changes, and an effect
// of 3 % is found.
func TestTurnsFalse(t *testing.T) {
	hosttest.SkipIfShort(t)
	hosts, services := TurnHosts(), TurnServices()
	for _, c := range []struct {
		host    TurnHost
		service TurnService
		found   float64 // at least, after 20 blocks
	}{
		{hosts[0], services[0], 0.99},
		{hosts[1], services[0], 0.2},
		{hosts[3], services[0], 0.9},
		{hosts[5], services[1], 0.01},
		{hosts[7], services[3], 0},
	} {
		const n = 120
		of := turnCase{host: c.host, service: c.service, plan: usualTurns(), treated: times(1 + turnEffect)}
		values := []BlockValue{RelativeMedians(), MeanOfAll()}
		tallies, err := tallyTurns(t.Context(), smallStudy(n), of, values, []int{10, 20}, math.Log1p(turnEffect))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range tallies {
			for k := range v.excluded {
				wantWithin(t, c.host.Name+", false", v.at(v.excluded, k), 0, stat.LookAlpha+4*math.Sqrt(stat.LookAlpha/n))
			}
			if i == 0 {
				wantWithin(t, c.host.Name+", found", v.at(v.found, 1), c.found, 1)
			}
		}
	}
}

// TestRoundsAreNoBlocks: the simulation sees a wrong unit. The rounds of a block share their connections, so that taken
// as independent they find differences between equal arms.
func TestRoundsAreNoBlocks(t *testing.T) {
	placed := TurnHost{"placed", func(*rand.Rand) machine { return machine{own: 0.1} }}
	c := turnCase{host: placed, service: TurnServices()[0], plan: usualTurns(), treated: unchanged}
	found, err := repeat(t.Context(), smallStudy(50), "rounds", func(r *rand.Rand) bool {
		run := c.start(r)
		var d []float64
		for range 10 {
			b := run.next()
			d = append(d, ratios(b[baseArm].medians, b[sameArm].medians)...)
		}
		return excludes0(lookAt(d))
	})
	if err != nil {
		t.Fatal(err)
	}
	wantWithin(t, "false differences between rounds", share(found, func(is bool) bool { return is }), 0.3, 1)
}

func TestNamed(t *testing.T) {
	estimate := func(lo, hi float64) turnLook { return turnLook{same: stat.Estimate{Lo: lo, Hi: hi}} }
	open, equal, differs := estimate(-0.1, 0.1), estimate(-0.01, 0.01), estimate(0.001, 0.1)
	for _, c := range []struct {
		looks []turnLook
		want  bool
	}{
		{[]turnLook{open, open}, false},
		{[]turnLook{open, differs}, true},
		{[]turnLook{equal, differs}, false}, // it had stopped
		{[]turnLook{differs, equal}, true},
		{nil, false},
	} {
		if got := named(c.looks, ofSame); got != c.want {
			t.Errorf("named(%v) = %v, want %v", c.looks, got, c.want)
		}
	}
}

// TestStalls: work in a stall waits for its end, work that a stall interrupts ends later, and the promised share of the
// time is stolen.
func TestStalls(t *testing.T) {
	m := machine{stolen: 0.1, stalls: []stall{{1, 2}, {3, 4}, {100, 101}}}
	for _, c := range []struct{ from, work, end float64 }{
		{0, 0.5, 0.5},
		{0, 1.5, 2.5},
		{1.5, 0.5, 2.5},
		{1, 1.5, 4.5},
		{2.5, 1, 4.5},
		{5, 1, 6},
	} {
		if end := m.run(nil, c.from, c.work); math.Abs(end-c.end) > 1e-12 {
			t.Errorf("work of %v from %v ends at %v, want %v", c.work, c.from, end, c.end)
		}
	}
	if !m.late(1.5) || m.late(2.5) || m.late(1.9999) {
		t.Error("a call is late that is due in a stall, until 1 ms before the stall's end")
	}
	m.forget(3.5)
	if len(m.stalls) != 2 {
		t.Errorf("%d stalls are left of three, one of which was over", len(m.stalls))
	}
	r := rand.New(rand.NewPCG(1, 3))
	for _, stolen := range []float64{0.1, 0.25} {
		m, took := machine{stolen: stolen}, 0.0
		for range 2000 { // half a second of work at a time
			end := m.run(r, took, 0.5)
			took = end
			m.forget(took)
		}
		wantWithin(t, "stolen", 1-1000/took, stolen-0.01, stolen+0.01)
	}
}

// TestModes: a mode is present for the share of time that its sojourns say.
func TestModes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	for _, step := range []float64{0.001, 0.1, 10} {
		m := machine{modes: []mode{{slower: 1, present: 0.02, absent: 0.06}}}
		sum := 0.0
		const n = 40_000
		for i := range n {
			sum += m.slower(r, step*float64(i))
		}
		wantWithin(t, "present", sum/n, 0.22, 0.28)
	}
}

// TestProcesses: what lives as long as a process is in the interval only if processes are restarted for every block.
func TestProcesses(t *testing.T) {
	for _, c := range []struct {
		every  int
		lo, hi float64
	}{
		{0, 0, 0.7},
		{1, 0.95, 1},
	} {
		of := turnCase{
			host: TurnHosts()[0], service: TurnServices()[0], plan: usualTurns(), treated: unchanged, layout: processLayout,
			restart: c.every,
		}
		runs, err := turnBlocks(t.Context(), smallStudy(150), "processes", of, 20, treatedRatio)
		if err != nil {
			t.Fatal(err)
		}
		wantWithin(t, "intervals that hold the truth", held(runs, 20, 0), c.lo, c.hi)
	}
}

// TestCarryoverCoverage: the effect on the next turn is estimated, whatever the arm's own effect.
func TestCarryoverCoverage(t *testing.T) {
	truth := math.Log1p(0.1)
	c := turnCase{
		host: TurnHosts()[3], service: TurnServices()[0], plan: usualTurns(), treated: times(1.5), after: truth,
	}
	runs, err := turnBlocks(t.Context(), smallStudy(150), "carry", c, 20, carried)
	if err != nil {
		t.Fatal(err)
	}
	wantWithin(t, "intervals that hold the truth", held(runs, 20, truth), 0.93, 1)
	wantWithin(t, "half width", medianHalf(runs, 20), 0.001, 0.05)
}
