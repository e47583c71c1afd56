package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// emulated holds a place for each lab VM that may be emulated at a time, which takes a processor.
var emulated = make(chan struct{}, 2)

// requireLab skips the test where no lab VM can be booted, and returns an environment in which it can. The test then
// runs beside others.
func requireLab(t *testing.T) area.Env {
	t.Helper()
	hosttest.SkipIfShort(t)
	env := areatest.Env(t)
	env.Getenv = os.LookupEnv
	if _, err := vm.Emulator(); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install qemu-system-x86")
	}
	all, err := vm.Kernels(env.Getenv)
	if err != nil || len(all) == 0 {
		hosttest.Missing(t, "there is no kernel for the lab VM", "unpack one: areas/sandbox/docs/lab.md")
	}
	t.Parallel()
	emulated <- struct{}{}
	t.Cleanup(func() { <-emulated })
	return env
}

// TestLab measures in a lab VM: two stacks are proved there, and the same call takes the same number of instructions.
func TestLab(t *testing.T) {
	env := requireLab(t)
	bare, both := baseline(), treatment("enforcer", "landlock+seccomp")
	env.Treatments = []design.Treatment{bare, both}
	spec := &Spec{On: onLab, Workloads: []string{"open", "syscall"}}
	if apache := (&Spec{Real: []string{"apache-20"}}); len(apache.missing()) == 0 { // a program with modules
		spec.Real = apache.Real
	}
	tg, j := areatest.Open[*labTarget](t, Area{}, spec, env)
	per := map[string]float64{}
	for _, tr := range env.Treatments {
		ctx := t.Context()
		if err := errors.Join(tg.Prepare(ctx, tr, j), tg.Enter(ctx, tr), tg.Verify(ctx, tr)); err != nil {
			t.Fatal(err)
		}
		ops, err := tg.Operations(tr)
		if err != nil || len(ops) != 2+len(spec.Real) {
			t.Fatalf("%d operations: %v", len(ops), err)
		}
		for _, o := range ops {
			if o.Whole > 1 { // threads take turns by chance
				s, err := o.Batch(t.Context(), o.Whole)
				if err != nil || len(s) != 1 || s[0].Value < 20_000 || s[0].Value > 2_000_000 {
					t.Errorf("%s under %s: %+v, %v", o.Name, tr.ID, s, err)
				}
				continue
			}
			for range 2 {
				s, err := o.Batch(t.Context(), 2000)
				if err != nil || len(s) != 1 || s[0].Metric != metric.Instructions.Name {
					t.Fatalf("%s: %+v, %v", o.Name, s, err)
				}
				before := per[tr.ID+o.Name]
				if now := s[0].Value; before > 0 && (now > before*1.05 || now < before*.95) {
					t.Errorf("%s under %s: %.0f instructions, then %.0f", o.Name, tr.ID, before, now)
				}
				per[tr.ID+o.Name] = s[0].Value
			}
		}
		if err := tg.Leave(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []string{"open", "syscall"} {
		if per[both.ID+o] < per[bare.ID+o]*1.1 {
			t.Errorf("%s: %.0f instructions under both, %.0f under none: want at least 10 %% more", o, per[both.ID+o],
				per[bare.ID+o])
		}
	}
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, "guest instructions") {
		t.Errorf("the notes do not say what the figures are:\n%s", notes)
	}
}

// changeLog is a journal that keeps what was journaled.
type changeLog struct {
	areatest.Journal

	changes []area.Change
}

func (j *changeLog) Intend(c area.Change) error {
	j.changes = append(j.changes, c)
	return j.Journal.Intend(c)
}

// TestLabIsUndoneAfterKill boots a machine and forgets it, as a killed run does: the journal suffices to end it.
func TestLabIsUndoneAfterKill(t *testing.T) {
	env := requireLab(t)
	bare := baseline()
	env.Treatments = []design.Treatment{bare}
	opened, err := Area{}.Open(t.Context(), &Spec{On: onLab, Workloads: []string{"open"}}, env)
	if err != nil {
		t.Fatal(err)
	}
	j := &changeLog{}
	if err := opened.Prepare(t.Context(), bare, j); err != nil {
		t.Fatal(err)
	}
	changes := j.changes
	if len(changes) != 2 {
		t.Fatalf("%d changes in the journal, want the folder and QEMU: %+v", len(changes), changes)
	}
	areatest.UndoTwice(t, Area{}, changes, area.Env{})
	for _, c := range changes {
		if path := c.Data["path"]; path != "" {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there: %v", path, err)
			}
		}
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLabFindings: an error in the machine names the warnings before it, such as what a profile refuses.
func TestLabFindings(t *testing.T) {
	found := []area.Finding{
		{Severity: area.Info, Message: "plain"},
		{Severity: area.Warning, Message: "web refuses open /a (r)"},
	}
	if notes, err := labFindings("6.1", found); err != nil || len(notes) != 2 || notes[0] != "Linux 6.1: plain" {
		t.Errorf("%q, %v", notes, err)
	}
	found = append(found, area.Finding{Severity: area.Error, Message: "nginx ended", Hint: "allow it"})
	_, err := labFindings("6.1", found)
	if err == nil || err.Error() != "in the lab VM (Linux 6.1): nginx ended; web refuses open /a (r)" ||
		area.HintOf(err) != "allow it" {
		t.Errorf("%v, next %q", err, area.HintOf(err))
	}
}

// TestKernelNeedsLab: on the host there is one kernel.
func TestKernelNeedsLab(t *testing.T) {
	tr := treatment("enforcer", "none", "kernel", "6.1")
	if _, err := (&Spec{}).plan(tr); err == nil || !strings.Contains(err.Error(), "on: lab") {
		t.Errorf("kernel on the host: %v", err)
	}
	if _, err := (&Spec{On: onLab}).plan(tr); err != nil {
		t.Errorf("kernel in the lab VM: %v", err)
	}
}
