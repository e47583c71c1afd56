package imagepull

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/driver"
	"tare/internal/load"
	"tare/internal/question"
	"tare/rigs/areatest"
)

// TestGuardAsksForChecks: other operations have no form that must be refused, and an old tare-plane has none at all.
func TestGuardAsksForChecks(t *testing.T) {
	old := driver.Description{Name: "pull-manager", Operations: []driver.Operation{{Name: opCheck}}}
	recent := old
	recent.Operations = append(recent.Operations[:1:1], driver.Operation{Name: "foreign", Trespass: opCheck})
	for _, c := range []struct {
		name string
		spec Spec
		d    driver.Description
		bad  bool
	}{
		{"check", Spec{}, recent, false},
		{"check by name", Spec{Operations: []string{opCheck}}, recent, false},
		{"prune", Spec{Operations: []string{opCheck, opPrune}}, recent, true},
		{"an old program", Spec{}, old, true},
	} {
		f := c.spec.checkGuarded(c.d)
		if slices.ContainsFunc(f, func(f area.Finding) bool { return f.Severity == area.Error }) != c.bad {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestGuardIsRefused: hits have no meaning in guard, in the section and in a treatment.
func TestGuardIsRefused(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		q    design.Question
		tr   design.Treatment
		bad  bool
	}{
		{Spec{Hits: new(Share(50))}, design.Guard, treatment("accessor", "cached"), true},
		{Spec{}, design.Guard, treatment("accessor", "cached", "hits", "50%"), true},
		{Spec{}, design.Guard, treatment("accessor", "lru:20", "policy", "neververifypreloadedimages"), false},
		{Spec{}, design.Compare, treatment("hits", "50%"), false},
	} {
		f := c.spec.Validate(question.Of(c.q).Asked(), []design.Treatment{c.tr})
		if bad := slices.ContainsFunc(f, isError); bad != c.bad || bad && !strings.Contains(f[0].Message, "hits") {
			t.Errorf("%+v: %+v", c.tr, f)
		}
	}
}

// TestRealGuard: the real pull manager refuses every trespass under each condition that it offers, among many calls at
// once; on a full disk it refuses pulls of pods with the right; and nothing is left of it.
func TestRealGuard(t *testing.T) {
	requireBinary(t)
	tr := treatment("accessor", "lru:20")
	spec := &Spec{Dir: t.TempDir(), Records: new(50), Stripes: new(4)}
	t.Cleanup(func() { nothingLeft(t, spec.Dir) })
	env := testEnv(t, tr)
	env.Trespasses = true
	tg, j := areatest.Open[area.Target](t, Area{}, spec, env)
	if err := tg.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	enterAndVerify(t, tg, tr)
	var names []string
	for _, c := range tg.Can().Conditions(tr) {
		names = append(names, c.Name)
		got := under(t, tg, tr, c)
		t.Logf("%s: %v", c.Name, got)
		for _, name := range []string{"foreign", "foreign-pull"} {
			if got[name][load.Permitted] > 0 || got[name][load.Denied] == 0 {
				t.Errorf("%s: %s %v", c.Name, name, got[name])
			}
		}
		refused, full := got[opPull][load.Wrong] > 0, c.Name == conditionFullDisk
		if refused != full || got[opCheck][load.Wrong] > 0 {
			t.Errorf("%s: %v", c.Name, got)
		}
	}
	if want := new(Spec).Conditions(); !slices.Equal(names, want) {
		t.Errorf("conditions %q, want %q", names, want)
	}
}

// under makes calls of all operations at once while a condition holds, and counts their outcomes by operation.
func under(t *testing.T, tg area.Target, tr design.Treatment, c area.Condition) map[string]map[load.Outcome]int {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	twins, err := tg.Can().Trespass(tr)
	if err != nil {
		t.Fatal(err)
	}
	out, mu, all, stop := map[string]map[load.Outcome]int{}, sync.Mutex{}, sync.WaitGroup{}, make(chan struct{})
	for _, op := range slices.Concat(ops, twins) {
		out[op.Name] = map[load.Outcome]int{}
		for range 4 {
			all.Go(func() {
				for i := uint64(0); ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					r := op.Call(t.Context(), i)
					mu.Lock()
					out[op.Name][r.Outcome]++
					mu.Unlock()
				}
			})
		}
	}
	lift, err := c.Impose(t.Context())
	if err != nil {
		t.Errorf("%s: %v", c.Name, err)
	}
	time.Sleep(500 * time.Millisecond)
	if lift != nil {
		if err := lift(t.Context()); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	close(stop)
	all.Wait()
	return out
}
