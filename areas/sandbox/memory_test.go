package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/rigs/hosttest"
)

func TestMeminfo(t *testing.T) {
	const text = "MemTotal:  5 kB\nSUnreclaim:  3 kB\nVmallocUsed:\t20 kB\nPercpu:  100 kB\nHugePages_Total:  7\n"
	if got, err := parseMeminfo([]byte(text)); got != 123<<10 || err != nil {
		t.Errorf("%d: %v, want 123 KiB", got, err)
	}
	for _, bad := range []string{
		"", strings.Replace(text, "Percpu", "X", 1), strings.Replace(text, "20 kB", "20", 1),
		strings.Replace(text, " 3 kB", " x kB", 1),
	} {
		if got, err := parseMeminfo([]byte(bad)); err == nil || !strings.Contains(err.Error(), "cannot be read here") {
			t.Errorf("%q gives %d: %v", bad, got, err)
		}
	}
	if _, err := policyMemory(t.Context(), &sample{}, 1); err == nil {
		t.Error("memory without a process that holds policies")
	}
}

// TestMemoryOfAFilter: a thread under a long filter takes more of the kernel's memory than one under none. The bounds
// are wide, since other work on the host moves the figures.
func TestMemoryOfAFilter(t *testing.T) {
	hosttest.SkipIfShort(t)
	docker := treatment("enforcer", "seccomp", "mode", "RuntimeDefault")
	tg, _ := prepared(t, &Spec{SetUp: []string{kindMemory}}, baseline(), docker)
	enter(t, tg, baseline())
	enter(t, tg, docker)
	var bare, filtered []float64
	for range 5 {
		for arm, out := range map[string]*[]float64{baseline().ID: &bare, docker.ID: &filtered} {
			s, err := operationOf(t, tg, tg.arms[arm].treatment, kindMemory).Batch(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			*out = append(*out, value(t, s, metricMemory))
		}
	}
	if more := middle(filtered) - middle(bare); more < 2<<10 || more > 100<<10 {
		t.Errorf("a thread takes %.0f B, one under Docker's profile %.0f B", middle(bare), middle(filtered))
	}
	if got := memorySample(workload.Cost{Memory: 300}, 3); got[0].Value != 100 {
		t.Errorf("300 B of 3 policies are %v of one", got)
	}
}

// TestForecastOfSetUp: budgets may name set-up costs, and memory only where it is measured.
func TestForecastOfSetUp(t *testing.T) {
	for _, c := range []struct {
		setUp []string
		want  bool
	}{{[]string{"confine", "memory"}, true}, {[]string{"confine"}, false}} {
		f := (&Spec{SetUp: c.setUp}).Forecast(area.Asked{}, baseline())
		if d := cmp.Diff(c.setUp, f.Operations); d != "" || slices.Contains(f.Metrics, metricMemory) != c.want {
			t.Errorf("%v: operations (-want +got) %s, metrics %v", c.setUp, d, f.Metrics)
		}
	}
}
