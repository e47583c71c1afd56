package sandbox

import (
	"os/exec"
	"testing"

	"tare/internal/area/sandbox/workload"
	"tare/internal/design"
)

// TestRealWorkloads runs every installed daemon under every enforcer.
func TestRealWorkloads(t *testing.T) {
	spec := &Spec{}
	for _, name := range realNames() {
		if s := (&Spec{Real: []string{name}}); name != realSysbench && len(s.missing()) == 0 {
			spec.Real = append(spec.Real, name)
		}
	}
	if len(spec.Real) == 0 {
		_, err := exec.LookPath("redis-server")
		t.Skipf("NOT INSTALLED: none of %v (%v)", realNames(), err)
	}
	if testing.Short() {
		spec.Real = spec.Real[:1]
	}
	arms := []design.Treatment{
		baseline(), treatment("enforcer", "seccomp", "mode", "RuntimeDefault"),
		treatment("enforcer", "landlock", "rules", "3"),
	}
	tg, j := prepared(t, spec, arms...)
	for _, a := range arms {
		enter(t, tg, a)
		if err := tg.Verify(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		for _, name := range spec.Real {
			o := operationOf(t, tg, a, name)
			if o.Negative {
				t.Errorf("%s under %s is a negative control", name, a.ID)
			}
			s, err := o.Batch(t.Context(), 2)
			if err != nil {
				t.Fatalf("%s under %s: %v", name, a.ID, err)
			}
			if wall, cpu := value(t, s, metricWall), value(t, s, metricCPU); cpu > 10*wall {
				t.Errorf("%s under %s: %g CPU-s in %g s", name, a.ID, cpu, wall)
			}
		}
	}
	if want := 1 + len(arms)*(1+len(spec.daemons())); len(j.Pending()) != want {
		t.Errorf("%d changes are journaled, want %d: a folder, and a worker and its daemons for each arm",
			len(j.Pending()), want)
	}
	if len(workload.Daemons()) == 0 {
		t.Error("package workload knows no daemons")
	}
}
