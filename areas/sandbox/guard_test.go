package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/policy"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/question"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// guarded opens a target for guard with a treatment in force.
func guarded(t *testing.T, tr design.Treatment) (*target, *areatest.Journal) {
	t.Helper()
	env := areatest.Env(t)
	env.Trespasses = true
	tg, j := areatest.Open[*target](t, Area{}, &Spec{Workloads: []string{"open", "exec"}}, env)
	if err := tg.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	enter(t, tg, tr)
	if err := tg.Verify(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

// guardTarget is a target on this host or in a lab VM.
type guardTarget interface {
	area.Target
	Trespasses(tr design.Treatment) ([]load.Operation, error)
}

// tallied makes calls of all operations, and of all trespasses, from several callers at once.
func tallied(t *testing.T, tg guardTarget, tr design.Treatment, each int) (allowed, refused map[load.Outcome]int) {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	twins, err := tg.Trespasses(tr)
	if err != nil || len(ops) != 2 || len(twins) == 0 {
		t.Fatalf("%d operations, %d trespasses: %v", len(ops), len(twins), err)
	}
	allowed, refused = map[load.Outcome]int{}, map[load.Outcome]int{}
	var all sync.WaitGroup
	var mu sync.Mutex
	ask := func(o load.Operation, into map[load.Outcome]int) {
		all.Go(func() {
			for i := range each {
				r := o.Call(t.Context(), uint64(i))
				mu.Lock()
				into[r.Outcome]++
				mu.Unlock()
			}
		})
	}
	for range 2 {
		for _, o := range ops {
			ask(o, allowed)
		}
		for _, o := range twins {
			if o.Twin == "" || o.Batch != nil {
				t.Errorf("%s is no trespass that can be asked at a rate", o.Name)
			}
			ask(o, refused)
		}
	}
	all.Wait()
	return allowed, refused
}

func guardedTreatments() []design.Treatment {
	return []design.Treatment{
		treatment("enforcer", "seccomp", "rules", "4"),
		treatment("enforcer", "seccomp", "mode", "RuntimeDefault"),
		treatment("enforcer", "landlock", "rights", "files"),
		treatment("enforcer", "seccomp+landlock"),
	}
}

// TestSoundSandboxIsNotCharged: all that must be refused is, and all that must be allowed is, also under the
// conditions. Nothing of them is left.
func TestSoundSandboxIsNotCharged(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, tr := range guardedTreatments() {
		t.Run(tr.ID, func(t *testing.T) {
			tg, j := guarded(t, tr)
			check := func(when string, each int) {
				allowed, refused := tallied(t, tg, tr, each)
				if len(allowed) != 1 || allowed[load.OK] != 4*each || len(refused) != 1 || refused[load.Denied] == 0 {
					t.Errorf("%s: allowed %v, refused %v", when, allowed, refused)
				}
			}
			check("at rest", 100)
			before := fmt.Sprint(len(j.Pending()), folders(t, tg))
			for _, c := range tg.Conditions(tr) {
				lift, err := c.Impose(t.Context())
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				check(c.Name, 25)
				if lift != nil {
					if len(j.Pending()) < 4 {
						t.Errorf("%s: %d changes are journaled", c.Name, len(j.Pending()))
					}
					if err := lift(t.Context()); err != nil {
						t.Errorf("%s: %v", c.Name, err)
					}
				}
				if after := fmt.Sprint(len(j.Pending()), folders(t, tg)); after != before {
					t.Errorf("%s leaves %s, and there was %s", c.Name, after, before)
				}
			}
		})
	}
}

// TestInterruptedConditionLeavesNothing: a condition that an interrupt cuts off leaves no worker and no folder behind.
func TestInterruptedConditionLeavesNothing(t *testing.T) {
	tr := treatment("enforcer", "seccomp")
	tg, j := guarded(t, tr)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range tg.Conditions(tr) {
		before := fmt.Sprint(len(j.Pending()), folders(t, tg))
		if lift, err := c.Impose(ctx); err == nil || lift != nil {
			t.Errorf("%s: it was brought about after an interrupt", c.Name)
		}
		if after := fmt.Sprint(len(j.Pending()), folders(t, tg)); c.Name != area.Restart && after != before {
			t.Errorf("%s leaves %s, and there was %s", c.Name, after, before)
		}
	}
	if err := tg.Leave(t.Context(), tr); err != nil || folders(t, tg) != 0 {
		t.Errorf("%d folders are left: %v", folders(t, tg), err)
	}
}

// folders counts the folders of workers.
func folders(t *testing.T, tg *target) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(tg.folder, "s*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestMissingRuleIsFound: one of the workers is confined without what the treatment refuses.
func TestMissingRuleIsFound(t *testing.T) {
	for _, c := range []struct{ sound, weak design.Treatment }{
		{treatment("enforcer", "seccomp", "rules", "4"), treatment("enforcer", "seccomp", "rules", "3")},
		{treatment("enforcer", "landlock"), treatment("enforcer", "none")},
		{treatment("enforcer", "seccomp+landlock"), treatment("enforcer", "landlock")},
	} {
		t.Run(c.sound.ID, func(t *testing.T) {
			tg, _ := guarded(t, c.sound)
			weak, err := tg.spec.plan(c.weak)
			if err != nil {
				t.Fatal(err)
			}
			a := tg.arms[c.sound.ID]
			weak.policy.Dir = a.plan.policy.Dir
			s := tg.oneSample(a, "")
			s.spec, s.beside, s.plan = &Spec{}, true, weak
			if err := s.start(t.Context(), tg.env.Clock); err != nil {
				t.Fatal(err)
			}
			a.sample.peers = append(a.sample.peers, s) // ended with the others
			policy := a.plan.policy
			policy.Scratch, policy.Port = s.worker.policy.Scratch, s.worker.policy.Port
			planted := &caller{s.worker, tg.demands(t.Context(), a, policy, s.worker.client)}
			a.crew.callers = kit.NewCallers(append([]*caller{planted}, held(t, a.crew)...)...)
			allowed, refused := tallied(t, tg, c.sound, 100)
			if len(allowed) != 1 || refused[load.Permitted] == 0 || refused[load.Denied] == 0 || refused[load.Failed] > 0 {
				t.Errorf("allowed %v, refused %v", allowed, refused)
			}
			twins, _ := tg.Trespasses(c.sound)
			unrefused := 0
			for _, i := range a.crew.refused[workload.TryNew] {
				err := planted.worker.proveNew(t.Context(), planted.demands[i])
				if err != nil && strings.Contains(err.Error(), "not enforced as expected: new ") {
					unrefused++
				}
			}
			if unrefused == 0 {
				t.Error("a new process of a worker that lacks a rule is proved")
			}
			if n := len(twins); twins[n-1].Name != "refused-new" || twins[n-1].Twin != "exec" {
				t.Errorf("the last of %d trespasses is %s, of %s", n, twins[n-1].Name, twins[n-1].Twin)
			}
			request, answer := twins[0].Describe(0, 0, nil)
			if request == "" || !strings.Contains(answer, "as where nothing is enforced") {
				t.Errorf("%q: %q", request, answer)
			}
		})
	}
}

func held(t *testing.T, c *crew) []*caller {
	t.Helper()
	all, err := c.callers.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPlanNamesWhatGuardCreates: a plan of guard has no blocks, and one of nginx no apache.
func TestPlanNamesWhatGuardCreates(t *testing.T) {
	for _, c := range []struct {
		q             design.Question
		real          string
		want, without string
	}{
		{design.Compare, "nginx", "sockets in the folder below", "apache"},
		{design.Compare, "apache", "a port of loopback (apache)", "sockets"},
		{design.Guard, "", "one treatment at a time", "block"},
	} {
		s := &Spec{Workloads: []string{"open"}}
		if c.real != "" {
			s.Real = []string{c.real}
		}
		s.Validate(question.Of(c.q).Asked(), []design.Treatment{treatment("enforcer", "seccomp")})
		all := strings.Join(s.Creates(nil), "; ")
		if !strings.Contains(all, c.want) || strings.Contains(all, c.without) {
			t.Errorf("%s %s creates %s", c.q, c.real, all)
		}
	}
}

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
