package sandbox

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if name := areatest.ServerOfArgs(areaName); name != "" {
		if what := hostileWorker(); what != "" && name == serverWorker {
			misbehave(what)
		}
		areatest.Serve(Area{}, name)
	}
	serveGuest()
	holdTrial()
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

// treatment shortens the tests' many calls.
var treatment = areatest.Treatment

func baseline() design.Treatment {
	t := treatment("enforcer", "none")
	t.Baseline = true
	return t
}

// prepared opens spec and prepares treatments. At the end of the test it closes the target, which must undo all
// changes.
func prepared(t testing.TB, spec *Spec, treatments ...design.Treatment) (*target, *areatest.Journal) {
	t.Helper()
	tg, j := areatest.Open[*target](t, Area{}, spec, areatest.Env(t))
	for _, tr := range treatments {
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
	}
	return tg, j
}

// enter enters the treatment, or skips the test if this kernel cannot enforce it.
func enter(t testing.TB, tg *target, tr design.Treatment) {
	t.Helper()
	requireEnforcer(t, tr.Levels[factorEnforcer])
	if err := tg.Enter(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
}

// requireEnforcer skips the test if the kernel does not have the enforcer. If the kernel has it, failing to enforce is
// an error.
func requireEnforcer(t testing.TB, enforcer string) {
	t.Helper()
	if all := strings.Split(enforcer, design.LevelMark); len(all) > 1 {
		for _, one := range all {
			requireEnforcer(t, one)
		}
		return
	}
	switch enforcer {
	case enforcerLandlock:
		if _, err := landlockRights(); err != nil {
			hosttest.Missing(t, err.Error(), "run on a kernel that has Landlock")
		}
	case enforcerSeccomp:
		if _, err := os.Stat("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
			hosttest.Missing(t, err.Error(), "run on a kernel that has seccomp")
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(status), "\nSeccomp:\t0\n") {
		hosttest.Missing(t, "the tests run under a seccomp filter, or it cannot be seen", "run them without one")
	}
}

// measureInterleaved measures blocks of rounds in which each arm has one batch of n calls. For each arm it returns the
// CPU time of a call: the median over blocks of the ratio to the first arm, where the value of a block is the median of
// its rounds.
func measureInterleaved(t testing.TB, tg *target, arms []design.Treatment, op string, n, rounds, blocks int) []float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	ratios := make([][]float64, len(arms))
	for range blocks {
		batches := make([]func() float64, len(arms))
		for _, i := range rng.Perm(len(arms)) {
			enter(t, tg, arms[i])
			if err := tg.Verify(t.Context(), arms[i]); err != nil {
				t.Fatal(err)
			}
		}
		for i, a := range arms {
			batches[i] = cpuOf(t, tg, a, op, n)
		}
		values := make([][]float64, len(arms))
		for r := range rounds + 1 {
			for _, i := range rng.Perm(len(arms)) {
				if v := batches[i](); r > 0 { // the first is a warm-up
					values[i] = append(values[i], v)
				}
			}
		}
		for i, a := range arms {
			ratios[i] = append(ratios[i], middle(values[i])/middle(values[0]))
			if err := tg.Leave(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := make([]float64, len(arms))
	for i := range arms {
		out[i] = middle(ratios[i])
	}
	return out
}

func cpuOf(t testing.TB, tg *target, a design.Treatment, op string, n int) func() float64 {
	t.Helper()
	o := operationOf(t, tg, a, op)
	return func() float64 {
		s, err := o.Batch(t.Context(), n)
		if err != nil {
			t.Fatalf("%s under %s: %v", op, a.ID, err)
		}
		return value(t, s, metricCPU)
	}
}

func operationOf(t testing.TB, tg *target, a design.Treatment, name string) load.Operation {
	t.Helper()
	ops, err := tg.Operations(a)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ops, func(o load.Operation) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("%s has no operation %s", a.ID, name)
	}
	return ops[i]
}

func value(t testing.TB, s []load.BatchSample, metric string) float64 {
	t.Helper()
	i := slices.IndexFunc(s, func(s load.BatchSample) bool { return s.Metric == metric })
	if i < 0 || s[i].Value <= 0 {
		t.Fatalf("no %s in %v", metric, s)
	}
	return s[i].Value
}

func middle(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// countCalls is an operation that reports the number of calls that it was asked for.
func countCalls(calls *int) func(context.Context, *sample, int) (workload.Cost, error) {
	return func(_ context.Context, _ *sample, n int) (workload.Cost, error) {
		*calls += n
		return workload.Cost{N: n, Wall: 1, CPU: 1}, nil
	}
}
