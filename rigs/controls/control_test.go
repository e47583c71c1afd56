package controls

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"tare/internal/report"
	"tare/rigs/hosttest"
)

// quick are the controls that every run of the tests watches; all of them are watched with TARE_GUARD_RUNS=20.
var quick = map[string]bool{
	"permits after waiting 50 ms": true, "checks 199 of 200": true, "permits for 200 ms after a restart": true,
	"gives answers of others": true, "refuses all after waiting 100 ms": true, "fails 1 in 20": true,
}

// searched are the controls that are also watched without rates of their own, for minutes, with TARE_GUARD_RUNS=20: two
// whose faults a guard misses that overloads nothing or asks too little, and a sound one.
var searched = map[string]bool{
	"permits with more than 40 in flight": true, "checks 199 of 200": true, "decides": true,
}

// TestPlantedFaults: every planted fault is found, by its condition if it needs one, and none is charged to a sound
// control.
func TestPlantedFaults(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("TARE_GUARD_RUNS"))
	if runs == 0 {
		hosttest.SkipIfShort(t)
	}
	var all sync.WaitGroup
	places := make(chan struct{}, 10) // they mostly wait, so more than there are processors
	watch := func(c Control, n int, name string, rates []float64) {
		dir := t.TempDir()
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			r, err := Watch(t.Context(), c, dir, uint64(n)+1, rates)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			check(t, name, c, r)
		})
	}
	rates := Rates()
	if runs == 0 {
		rates = []float64{rates[1], rates[len(rates)-1]}
	}
	for _, c := range All() {
		for n := range max(1, runs) {
			if runs > 0 || quick[c.Name] {
				watch(c, n, fmt.Sprintf("%s, run %d", c.Name, n), rates)
			}
			if runs > 0 && searched[c.Name] {
				watch(c, n, fmt.Sprintf("%s, searched, run %d", c.Name, n), nil)
			}
		}
	}
	all.Wait()
}

func check(t *testing.T, name string, c Control, r *report.Report) {
	t.Helper()
	if len(r.Guard) != 1 {
		t.Errorf("%s: the report has %d answers", name, len(r.Guard))
		return
	}
	g := &r.Guard[0]
	under := map[string]uint64{}
	plain := uint64(0)
	for _, p := range g.Points {
		if p.Condition != nil {
			under[p.Condition.Name] += p.Trespasses.Permitted
		} else {
			plain += p.Trespasses.Permitted
		}
	}
	t.Logf("%s: %d of %d permitted, %d undecided; by load %d, by condition %v; onset %+v", name, g.Trespasses.Permitted,
		g.Trespasses.Decided(), g.Trespasses.Undecided, plain, under, g.Onset)
	switch {
	case c.Sound && g.Trespasses.Permitted > 0:
		t.Errorf("%s: a sound control is charged with %d breaches: %+v", name, g.Trespasses.Permitted, g.Breaches[0])
	case c.Sound && r.Verdict != report.Pass:
		t.Errorf("%s: a sound control has the verdict %s: %s", name, r.Verdict, r.Reason)
	case c.Sound:
	case c.Under == "" && plain == 0, c.Under != "" && under[c.Under] == 0, r.Verdict != report.Fail:
		t.Errorf("%s: the fault was not found: verdict %s: %s", name, r.Verdict, r.Reason)
	case c.Under != "" && plain > 0:
		t.Errorf("%s: the fault of %s is charged to the load alone", name, c.Under)
	case len(g.Breaches) == 0:
		t.Errorf("%s: no breach was kept", name)
	}
}
