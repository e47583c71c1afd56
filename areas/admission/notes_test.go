package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
)

// TestNotesNameTheirArm: what is said of a bundle names the levels that tell its treatment from others with the same
// bundle, and what is true of the A/A arm alone is said of that.
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
		return []string{p.title() + ": " + p.namespace + " proved", p.title() + ": in force"}
	})
	if d := cmp.Diff([]string{
		"A/A: p kyverno=1.13.6: 0 proved", "p kyverno=1.13.6: 3 proved", "p kyverno=1.13.6: in force",
		"p kyverno=1.18.2: 2 proved", "p kyverno=1.18.2: in force", "q: 1 proved", "q: in force",
	}, got); d != "" {
		t.Error(d)
	}
}
