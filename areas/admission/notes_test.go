package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
)

// TestNotesNameTheirArm: what holds for some treatments with a bundle names the levels that tell them from the others,
// and what holds for the A/A arm alone is said of that.
func TestNotesNameTheirArm(t *testing.T) {
	old, recent := treatment("bundle", "p", "kyverno", "1.13.6"), treatment("bundle", "p", "kyverno", "1.18.2")
	other, aa := treatment("bundle", "q", "kyverno", "1.18.2"), old
	aa.ID, aa.Control, aa.Of = "aa", area.AA, old.ID
	tg := &target{}
	for tr, proved := range map[*area.Treatment]string{&old: "3", &recent: "2", &other: "1", &aa: "0"} {
		plan, err := new(Spec).plan(*tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tg.arms.Add(*tr, func(int) *arm {
			return &arm{
				plan: plan, treatment: *tr, declared: &Spec{}, ready: true, namespace: proved,
				env: area.Env{Treatments: []area.Treatment{old, recent, other}},
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	got := tg.ofArms(func(p *arm) []string {
		return []string{p.spec.Bundle + ": " + p.namespace + " proved", p.spec.Bundle + ": in force", "a control plane"}
	})
	if d := cmp.Diff([]string{
		"A/A: p: 0 proved", "a control plane", "p kyverno=1.13.6: 3 proved", "p kyverno=1.18.2: 2 proved", "p: in force",
		"q: 1 proved", "q: in force",
	}, got); d != "" {
		t.Error(d)
	}
}
