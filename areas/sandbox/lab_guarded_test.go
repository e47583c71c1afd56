package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/areatest"
)

// TestGuardInLab asks both workers in a lab VM for what AppArmor, BPF programs and seccomp must refuse, at rest and
// under each condition.
func TestGuardInLab(t *testing.T) {
	requireParser(t)
	env := requireLab(t)
	env.Trespasses = true
	tr := treatment("enforcer", "apparmor+bpf+seccomp", "rules", "4")
	env.Treatments = []design.Treatment{tr}
	tg, j := areatest.Open[*labTarget](t, Area{}, &Spec{On: onLab, Workloads: []string{"open", "exec"}}, env)
	ctx := t.Context()
	if err := errors.Join(tg.Prepare(ctx, tr, j), tg.Enter(ctx, tr), tg.Verify(ctx, tr)); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		began := time.Now()
		allowed, refused := tallied(t, tg, tr, 5)
		if len(allowed) != 1 || allowed[load.OK] != 20 || len(refused) != 1 || refused[load.Denied] == 0 {
			t.Errorf("%s: allowed %v, refused %v", when, allowed, refused)
		}
		t.Logf("%s: %d calls in %.1f s", when, allowed[load.OK]+refused[load.Denied], time.Since(began).Seconds())
	}
	check("at rest")
	names := ""
	for _, c := range tg.Conditions(tr) {
		names += " " + c.Name
		lift, err := c.Impose(ctx)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		check(c.Name)
		if (lift == nil) != (c.Name == area.Restart) {
			t.Errorf("%s lasts: %t", c.Name, lift != nil)
		}
		if lift != nil {
			if err := lift(ctx); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	}
	if names != " restart starved reload" {
		t.Errorf("conditions:%s", names)
	}
	twins, err := tg.Trespasses(tr)
	if err != nil {
		t.Fatal(err)
	}
	if _, answer := twins[0].Describe(0, 0, nil); !strings.Contains(answer, "as where nothing is enforced") {
		t.Error(answer)
	}
	if err := tg.Leave(ctx, tr); err != nil {
		t.Error(err)
	}
	notes := strings.Join(tg.Notes(), "\n")
	for _, want := range []string{"a serial line", "2 workers", "was replaced"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in %s", want, notes)
		}
	}
}
