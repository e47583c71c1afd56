package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// offer sends a few calls of each operation of a treatment, as a run does, and counts how they ended.
func offer(t *testing.T, tg *target, tr design.Treatment, n float64) (out map[string]int, causes []string) {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	out = map[string]int{}
	causes = offered(t, tg, tr, ops, 20, n/20, func(op load.Operation, o load.Outcome, n uint64) {
		out[op.Name+" "+o.String()] += int(n) //nolint:gosec // a few
	})
	return out, causes
}

// offered offers operations at a rate for some seconds, and counts how they ended.
func offered(t *testing.T, tg *target, tr design.Treatment, ops []load.Operation, rate, seconds float64,
	count func(load.Operation, load.Outcome, uint64),
) (causes []string) {
	t.Helper()
	endpoint, err := tg.Endpoint(tr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := load.Open(t.Context(), load.Config{
		Engine: load.Std, Operations: ops, Endpoint: *endpoint,
		Timeout: 20 * time.Second, MaxConns: 8 * int(rate), Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	l := load.Constant{Rate: rate, Duration: time.Duration(seconds * float64(time.Second))}
	if _, err := s.Offer(t.Context(), l, 50*time.Millisecond, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), 20*time.Second, 10*time.Millisecond,
		func() bool { return s.Progress().Open() == 0 }); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Take() {
		count(ops[c.Operation], c.Outcome, c.Service.Count())
		for _, why := range c.Causes {
			causes = append(causes, fmt.Sprintf("%s: %s (status %d) × %d", ops[c.Operation].Name,
				why.Cause.Text(ops[c.Operation].Causes), why.Status, why.Count))
		}
	}
	return causes
}

// runTrial takes a treatment through one trial.
func runTrial(t *testing.T, tg *target, tr design.Treatment, calls float64) {
	t.Helper()
	if err := tg.Enter(t.Context(), tr); err != nil {
		t.Fatalf("enter: %v", err)
	}
	if err := tg.Verify(t.Context(), tr); err != nil {
		t.Fatalf("verify: %v", err)
	}
	got, causes := offer(t, tg, tr, calls)
	total := 0
	for what, n := range got {
		total += n
		if !slices.ContainsFunc(tg.operations, func(o operation) bool { return what == o.name+" "+load.OK.String() }) {
			t.Errorf("%d calls of one trial ended as %q, which no operation expects: %v", n, what, causes)
		}
	}
	if total < int(calls) {
		t.Errorf("%d calls were counted, want %v: %v", total, calls, got)
	}
	if err := tg.Leave(t.Context(), tr); err != nil {
		t.Fatalf("leave: %v", err)
	}
}

// TestMechanisms takes every mechanism through two trials, on a control plane of its own or on a shared one.
func TestMechanisms(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	takeThrough := func(t *testing.T, tg *target, j *areatest.Journal, tr design.Treatment) {
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			runTrial(t, tg, tr, 10)
		}
		served, err := tg.Witnessed(t.Context(), tr)
		if err != nil || served == nil || len(served.Requests) == 0 {
			t.Errorf("the API server's own measurements: %v, %v", served, err)
		}
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		tg, j := openedShared(t, &Spec{}, testEnv(t))
		for _, levels := range [][]string{
			{"mechanism", "none"},
			{"mechanism", "psa", "level", "restricted"},
			{"mechanism", "vap", "policies", "5", "bound", "4", "useable", "3"},
			{"mechanism", "webhook", "policies", "3"},
			{"mechanism", "mutating-webhook", "policies", "3", "webhook_latency", "5ms"},
			{"mechanism", "map", "policies", "3"},
		} {
			tr := treatment(levels...)
			t.Run(tr.ID, func(t *testing.T) { takeThrough(t, tg, j, tr) })
		}
	})
	for _, c := range []struct {
		version plane.Version
		levels  []string
	}{
		{plane.V136, []string{"mechanism", "vap", "policies", "3", "bound", "2", "useable", "1", "params", "3"}},
		{plane.V124, []string{"mechanism", "psp", "policies", "6", "bound", "3"}},
		{plane.V124, []string{"mechanism", "none", "version", "1.24"}},
	} {
		tr := treatment(c.levels...)
		t.Run(tr.ID, func(t *testing.T) {
			t.Parallel()
			requireBinary(t, c.version)
			tg, j := opened(t, &Spec{}, testEnv(t))
			takeThrough(t, tg, j, tr)
		})
	}
}

// TestOperations makes calls of every operation, with simulated nodes, on a shared control plane whose policies come
// and go.
func TestOperations(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	requireBinary(t, plane.V136)
	tg, j := opened(t, &Spec{Embedded: &Embedded{Nodes: 3, Shared: true}, Objects: 30}, testEnv(t, operationNames()...))
	arms := []design.Treatment{
		treatment("mechanism", "none"), treatment("mechanism", "vap", "policies", "3"),
		treatment("mechanism", "webhook", "policies", "2"),
	}
	prepare(t, tg, j, arms)
	if n := len(tg.controls.all); n != 1 {
		t.Errorf("%d control planes were started, want one that is shared", n)
	}
	for _, k := range []int{0, 1, 2, 0, 1} {
		runTrial(t, tg, arms[k], 60)
	}
	var notes int
	for _, n := range tg.Notes() {
		if n == "control plane only: the 3 nodes are simulated, no container is started" {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("notes: %q", tg.Notes())
	}
}

// TestManifests enters and leaves an engine that is known by its files only, on a shared control plane.
func TestManifests(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	s := &Spec{
		Manifests: &Manifests{
			Before: "testdata/manifests/before", After: "testdata/manifests/after",
			Bad: "testdata/manifests/bad.yaml",
		},
	}
	tg, j := openedShared(t, s, testEnv(t))
	arms := []design.Treatment{treatment("mechanism", "none"), treatment("mechanism", "manifests")}
	prepare(t, tg, j, arms)
	for _, k := range []int{0, 1, 0, 1} {
		runTrial(t, tg, arms[k], 10)
	}
	if err := tg.Enter(t.Context(), arms[1]); err != nil {
		t.Fatal(err)
	}
	deleteBehind(t, armOf(t, tg, arms[1]), "ValidatingAdmissionPolicyBinding", armOf(t, tg, arms[1]).namespace+".engine")
	wantVerifyFails(t, tg, arms[1], "the manifests deny the bad pod")
	if err := tg.Leave(t.Context(), arms[1]); err != nil {
		t.Error(err)
	}
}
