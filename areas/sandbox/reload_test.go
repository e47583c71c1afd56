package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/policy"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

// TestReloadCondition: validate refuses the condition where no policy can be replaced, and says why.
func TestReloadCondition(t *testing.T) {
	s := &Spec{}
	all := func(enforcers ...string) (out []design.Treatment) {
		for _, e := range enforcers {
			out = append(out, treatment("enforcer", e))
		}
		return out
	}
	for _, c := range []struct {
		name       string
		treatments []design.Treatment
		refused    bool
	}{
		{area.Reload, all("bpf", "apparmor", "bpf+seccomp"), false},
		{area.Reload, all("bpf", "seccomp"), true},
		{area.Reload, all("seccomp+landlock"), true},
		{area.Restart, all("seccomp"), false},
	} {
		why := s.WhyNot(c.name, c.treatments)
		if c.refused != (why != "") || c.refused && !strings.Contains(why, "until the process ends") {
			t.Errorf("%s of %v: %v", c.name, c.treatments, why)
		}
	}
}

// underReload asks for trespasses from all workers, without a pause, while policies are replaced, until it has seen
// enough, or for a minute.
func underReload(t *testing.T, tg *target, tr design.Treatment, enough func(map[load.Outcome]int) bool,
	impose func() (func(context.Context) error, error),
) map[load.Outcome]int {
	t.Helper()
	twins, err := tg.Trespasses(tr)
	if err != nil {
		t.Fatal(err)
	}
	lift, err := impose()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[load.Outcome]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	end := time.Now().Add(time.Minute)
	for caller := range 4 {
		all.Go(func() {
			for i, over := caller, false; !over && time.Now().Before(end); i++ {
				r := twins[i%len(twins)].Call(t.Context(), uint64(i))
				mu.Lock()
				seen[r.Outcome]++
				over = enough(seen)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := lift(t.Context()); err != nil {
		t.Error(err)
	}
	return seen
}

// TestReloadUnderLoad: policies that are replaced at once are not charged, and those that are not are found. Nothing
// is left of the replacements.
func TestReloadUnderLoad(t *testing.T) {
	for _, c := range []struct {
		enforcer string
		planted  func(t *testing.T, tg *target, a *arm) replacement
	}{
		{enforcerBPF, emptiedRules},
		{enforcerAppArmor, weakProfile},
	} {
		t.Run(c.enforcer, func(t *testing.T) {
			if !kernelHas(c.enforcer) {
				hosttest.Missing(t, fmt.Sprintf("no %s, or this user may not use it", c.enforcer),
					hosttest.Root+", on a kernel that has it")
			}
			tr := treatment("enforcer", c.enforcer, "rules", "8")
			tg, j := guarded(t, tr)
			a := tg.arms[tr.ID]
			before := fmt.Sprint(len(j.Pending()), folders(t, tg))
			conditions := tg.reloading(a)
			if len(conditions) != 1 {
				t.Fatalf("%d conditions replace policies", len(conditions))
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if lift, err := conditions[0].Impose(ended); err == nil || lift != nil || a.reloaded.Load() > 0 {
				t.Errorf("policies are replaced after an interrupt: %v", err)
			}
			tried := func(seen map[load.Outcome]int) bool { return seen[load.Denied] >= 100 && a.reloaded.Load() >= 20 }
			sound := underReload(t, tg, tr, tried, func() (func(context.Context) error, error) {
				return conditions[0].Impose(t.Context())
			})
			replaced := a.reloaded.Load()
			if len(sound) != 1 || !tried(sound) {
				t.Errorf("replaced at once, %d times: %v", replaced, sound)
			}
			found := func(seen map[load.Outcome]int) bool { return seen[load.Permitted] > 0 && seen[load.Denied] > 0 }
			planted := underReload(t, tg, tr, found, func() (func(context.Context) error, error) {
				return a.reload(t.Context(), c.planted(t, tg, a))
			})
			if !found(planted) {
				t.Errorf("replaced in two steps, %d times: %v", a.reloaded.Load()-replaced, planted)
			}
			if _, after := tallied(t, tg, tr, 20); len(after) != 1 || after[load.Denied] == 0 {
				t.Errorf("after the replacements: %v", after)
			}
			if left := fmt.Sprint(len(j.Pending()), folders(t, tg)); left != before {
				t.Errorf("replacing leaves %s, and there was %s", left, before)
			}
			fmt.Printf("reload of %s: %d times at once: %v; %d times in two steps: %v\n", c.enforcer, replaced, sound,
				a.reloaded.Load()-replaced, planted)
		})
	}
}

// emptiedRules replaces BPF rules in the slot that is in use, by none and then by the same.
func emptiedRules(_ *testing.T, tg *target, a *arm) replacement {
	p := a.plan.policy
	return func(bool) error {
		return errors.Join(tg.host.programs.SetRules(p.BPF.Slot, policy.Policy{}),
			tg.host.programs.SetRules(p.BPF.Slot, p.bpfModel()))
	}
}

// weakProfile replaces an AppArmor profile by one that refuses nothing, and that by the same as before.
func weakProfile(t *testing.T, _ *target, a *arm) replacement {
	t.Helper()
	own := apparmor.Loaded{Label: *a.plan.policy.AppArmor, Compiled: a.plan.policy.compiled}
	weak, err := own.Changed(t.Context(), policy.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return func(bool) error { return errors.Join(weak.Replace(), own.Replace()) }
}
