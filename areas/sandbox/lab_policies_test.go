package sandbox

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// provedInLab prepares the treatments in a lab VM, proves each there, makes a batch of the first operation, and returns
// the instructions of one by treatment, and the notes.
func provedInLab(t *testing.T, compiler string, spec *Spec, batch int, treatments ...design.Treatment) (
	per map[string]float64, notes string,
) {
	t.Helper()
	env := requireLab(t)
	if _, err := exec.LookPath(compiler); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install apparmor secilc")
	}
	env.Treatments = treatments
	tg, j := areatest.Open[*labTarget](t, Area{}, spec, env)
	per = map[string]float64{}
	for _, tr := range treatments {
		ctx := t.Context()
		if err := errors.Join(tg.Prepare(ctx, tr, j), tg.Enter(ctx, tr), tg.Verify(ctx, tr)); err != nil {
			t.Fatalf("%s: %v", tr.ID, err)
		}
		ops, err := tg.Operations(tr)
		if err != nil || len(ops) == 0 {
			t.Fatalf("%s: %d operations: %v", tr.ID, len(ops), err)
		}
		s, err := ops[0].Batch(ctx, batch)
		if err != nil || len(s) != 1 {
			t.Fatalf("%s: %+v, %v", tr.ID, s, err)
		}
		per[tr.ID] = s[0].Value
		if err := tg.Leave(ctx, tr); err != nil {
			t.Fatal(err)
		}
	}
	return per, strings.Join(tg.Notes(), "\n")
}

// TestSELinuxInLab proves the domains of all modes in one machine, alone and with Landlock, whose proof asks for the
// same refusal. A domain adds little to what an unconfined process pays.
func TestSELinuxInLab(t *testing.T) {
	modes := []design.Treatment{
		treatment("enforcer", "selinux", "mode", "Unconfined"),
		treatment("enforcer", "selinux"),
		treatment("enforcer", "selinux", "mode", "RuntimeDefault"),
		treatment("enforcer", "selinux", "mode", "EnhanceProtect"),
		treatment("enforcer", "landlock+selinux+seccomp"),
	}
	per, notes := provedInLab(t, "secilc", &Spec{On: onLab, Workloads: []string{"open"}}, 1000, modes...)
	unconfined, all := per[modes[0].ID], per[modes[4].ID]
	for _, m := range modes[1:4] {
		if n := per[m.ID]; n < unconfined*.9 || n > unconfined*1.1 {
			t.Errorf("%s: %.0f instructions, and %.0f unconfined: want within 10 %%", m.ID, n, unconfined)
		}
	}
	if all < unconfined*1.1 {
		t.Errorf("%.0f instructions with Landlock, and %.0f without: want at least 10 %% more", all, unconfined)
	}
	if !strings.Contains(notes, "15 rules are not expressible and left out") {
		t.Errorf("the notes do not say what EnhanceProtect leaves out:\n%s", notes)
	}
}

// TestAppArmorFilesInLab measures two files whose profiles have the same name. Before anything is timed, what each
// would refuse is named; what it refuses proves it.
func TestAppArmorFilesInLab(t *testing.T) {
	const allow = "profile web {\n  file,\n  capability,\n  network,\n  signal,\n  unix,\n"
	strict := appArmorFile(t, allow+"  deny /proc/kcore r,\n  deny /proc/version r,\n  audit deny /proc/loadavg r,\n}\n")
	lax := appArmorFile(t, allow+"}\n")
	mild := treatment("enforcer", "apparmor", "profile", lax)
	hard := treatment("enforcer", "apparmor", "profile", strict+"#web")
	spec := &Spec{On: onLab, SetUp: []string{"load"}, Commands: []Command{{
		Name: "tail", Run: []string{"head", "-q", "-n1", "/proc/uptime"},
		Prepare: []string{"sh", "-c", "head /proc/version /proc/loadavg; :"},
	}}}
	per, notes := provedInLab(t, "apparmor_parser", spec, 30, baseline(), mild, hard)
	if bare := per[baseline().ID]; per[mild.ID] < 10*bare || per[hard.ID] < 10*bare {
		t.Errorf("instructions to load a profile: %v", per)
	}
	for _, want := range []string{
		"profile web of own.apparmor refuses accesses that were made when each workload ran once: tail: " +
			"open /proc/version (r), open /proc/loadavg (r)",
		"profile web of own.apparmor refused no access that the workloads made",
		hard.ID + ": the kernel says that the profile is in enforce mode, and it refuses to open /proc/kcore, /proc/version",
		mild.ID + ": the kernel says that the profile is in enforce mode; no refusal proves it",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("want %q in:\n%s", want, notes)
		}
	}
}
