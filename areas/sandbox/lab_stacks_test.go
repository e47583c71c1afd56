package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/areas/sandbox/vm/shell"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// requireParser skips the test where AppArmor's compiler, which a guest gets from this host, is missing.
func requireParser(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("apparmor_parser"); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install apparmor")
	}
}

// ownRulesFile returns the path of a policy of the user's that all enforcers with rules can express.
func ownRulesFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	text := "files: [{path: /etc/passwd, access: [read]}, {path: /proc/version, access: [read]}]\n" +
		"execs: [/usr/bin/no-such-program]\ncapabilities: [syslog]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// labStacks returns the treatments that TestStacksInLab measures.
func labStacks(t *testing.T) []design.Treatment {
	t.Helper()
	out := []design.Treatment{baseline()}
	for _, s := range []string{
		enforcerSeccomp, enforcerLandlock, enforcerBPF, enforcerAppArmor, "landlock+seccomp", "bpf+seccomp",
		"apparmor+seccomp", "bpf+landlock", "apparmor+bpf", "apparmor+bpf+landlock+seccomp",
	} {
		out = append(out, treatment(factorEnforcer, s))
	}
	own := ownRulesFile(t)
	for _, e := range []string{enforcerBPF, enforcerAppArmor} {
		out = append(
			out,
			treatment(factorEnforcer, e, factorMode, string(RuntimeDefault)),
			treatment(factorEnforcer, e, factorMode, string(EnhanceProtect)),
			treatment(factorEnforcer, e, factorRules, "8", factorMatch, "1"),
			treatment(factorEnforcer, e, factorRules, "50", factorMatch, "2"),
			treatment(factorEnforcer, e, factorRules, own),
			treatment(factorEnforcer, e, factorOthers, "30"),
		)
	}
	return append(out, treatment(factorEnforcer, enforcerBPF, factorMode, string(Unconfined)))
}

// TestStacksInLab proves and measures each stack of enforcers, and each kind of rules, in a lab VM: in a worker and in
// threads that are confined for set-up costs. What the user's rules refuse is named.
func TestStacksInLab(t *testing.T) {
	requireParser(t)
	env := requireLab(t)
	env.Treatments = labStacks(t)
	tg, j := areatest.Open[*labTarget](t, Area{}, &Spec{
		On: onLab, Workloads: []string{"open"}, SetUp: []string{workload.KindConfine},
		Commands: []Command{{Name: "version", Run: []string{"sh", "-c", "read x < /proc/version; :"}}},
	}, env)
	cost := map[string]float64{}
	for _, tr := range env.Treatments {
		ctx := t.Context()
		if err := errors.Join(tg.Prepare(ctx, tr, j), tg.Enter(ctx, tr), tg.Verify(ctx, tr)); err != nil {
			t.Errorf("%s: %v", tr.ID, err)
			continue
		}
		ops, err := tg.Operations(tr)
		if err != nil || len(ops) != 3 {
			t.Fatalf("%s: %d operations: %v", tr.ID, len(ops), err)
		}
		if s, err := ops[1].Batch(ctx, 5); err != nil || len(s) != 1 || s[0].Value <= 0 {
			t.Errorf("%s: %s: %+v, %v", tr.ID, ops[1].Name, s, err)
		}
		s, err := ops[0].Batch(ctx, 500)
		if err != nil || len(s) != 1 || s[0].Metric != metric.Instructions.Name {
			t.Fatalf("%s: %+v, %v", tr.ID, s, err)
		}
		cost[tr.ID] = s[0].Value
		if err := tg.Leave(ctx, tr); err != nil {
			t.Errorf("%s: leave: %v", tr.ID, err)
		}
	}
	if len(tg.machines) != 2 {
		t.Errorf("%d machines, want one with BPF programs and one without", len(tg.machines))
	}
	wantCosts(t, cost)
	notes := strings.Join(tg.Notes(), "\n")
	for _, e := range []string{enforcerBPF, enforcerAppArmor} {
		want := "rules.yaml under " + e + " refuses accesses that were made when each workload ran once: version: " +
			"open /proc/version (read) by files[1]"
		if !strings.Contains(notes, want) {
			t.Errorf("want %q in:\n%s", want, notes)
		}
	}
}

// wantCosts requires that more enforcement takes more instructions of an open.
func wantCosts(t *testing.T, cost map[string]float64) {
	t.Helper()
	id := func(levels ...string) string { return treatment(levels...).ID }
	none := baseline().ID
	all := id(factorEnforcer, "apparmor+bpf+landlock+seccomp")
	for _, c := range [][2]string{ // those that differ by more than what the placement of a worker's memory makes
		{none, id(factorEnforcer, enforcerLandlock)},
		{none, id(factorEnforcer, enforcerAppArmor)},
		{none, id(factorEnforcer, enforcerBPF, factorMode, string(RuntimeDefault))},
		{id(factorEnforcer, enforcerAppArmor), all},
		{id(factorEnforcer, "bpf+landlock"), all},
		{id(factorEnforcer, enforcerBPF), id(factorEnforcer, enforcerBPF, factorRules, "8", factorMatch, "1")},
		{
			id(factorEnforcer, enforcerBPF, factorRules, "8", factorMatch, "1"),
			id(factorEnforcer, enforcerBPF, factorRules, "50", factorMatch, "2"),
		},
	} {
		if less, more := cost[c[0]], cost[c[1]]; less == 0 || more <= less {
			t.Errorf("an open takes %.0f instructions under %s and %.0f under %s: want more", less, c[0], more, c[1])
		}
	}
	t.Logf("instructions of an open: %v", cost)
}

// TestKernelInLab runs the tests of proofs and of reloads in a guest with two processors, whose kernel has all
// enforcers: a proof that cannot fail proves nothing.
func TestKernelInLab(t *testing.T) {
	requireParser(t)
	m := bootShell(t, requireLab(t), 2)
	var out bytes.Buffer
	status, err := shell.Run(m.Link, []string{
		vm.GuestSelf, "-test.v", "-test.run", "^(TestProofsRejectOtherEnforcers|TestReloadUnderLoad)$",
	}, &out)
	if err != nil || status != 0 {
		t.Errorf("in the guest: status %d, %v\n%s", status, err, &out)
	}
	for _, want := range []string{
		"all proofs tried in a worker under bpf\n", "all proofs tried in a worker under bpf unconfined\n",
		"all proofs tried in a worker under apparmor\n", "all proofs tried in a worker under bpf and apparmor\n",
		"reload of " + enforcerBPF + ":", "reload of " + enforcerAppArmor + ":",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the guest did not report %q:\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "reload of ") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// bootShell boots a guest that runs commands, with this test binary and AppArmor's compiler in it. processors is as in
// vm.Options.
func bootShell(t *testing.T, env area.Env, processors int) *vm.Machine {
	t.Helper()
	env.Treatments = []design.Treatment{treatment(factorEnforcer, enforcerAppArmor)}
	r, err := (&Spec{}).guestFiles(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	initrd := filepath.Join(env.Dir, "initrd")
	if err := r.Save(initrd); err != nil {
		t.Fatal(err)
	}
	all, err := vm.Kernels(env.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	emulator, err := vm.Emulator()
	if err != nil {
		t.Fatal(err)
	}
	m, err := vm.Boot(t.Context(), vm.Options{
		Emulator: emulator, Kernel: all[0], Initrd: initrd, Init: []string{vm.GuestSelf, "lab", "init", "shell"},
		LSM: labSecurity, Dir: env.Dir, Name: "proofs", Clock: env.Clock, Processors: processors,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestPlantedProgramInLab: a program of known length costs as many instructions as it has, compared with an empty one.
func TestPlantedProgramInLab(t *testing.T) {
	env := requireLab(t)
	const planted = 20_000 // far more than what the placement of memory makes
	base := treatment(factorEnforcer, enforcerNone, factorPlanted, "0 instructions")
	more := treatment(factorEnforcer, enforcerNone, factorPlanted, "20000 instructions")
	base.Baseline = true
	env.Treatments = []design.Treatment{base, more}
	tg, j := areatest.Open[*labTarget](t, Area{}, &Spec{On: onLab, Workloads: []string{"open"}}, env)
	cost := map[string]float64{}
	for _, tr := range env.Treatments {
		ctx := t.Context()
		if err := tg.Prepare(ctx, tr, j); err != nil {
			t.Fatal(err)
		}
		for range 3 { // workers, of which the least counts: the placement of their memory differs
			if err := errors.Join(tg.Enter(ctx, tr), tg.Verify(ctx, tr)); err != nil {
				t.Fatal(err)
			}
			ops, err := tg.Operations(tr)
			if err != nil {
				t.Fatal(err)
			}
			// Batches of a few milliseconds, as in runs: of long system calls these were charged to other threads in part.
			for range 3 {
				s, err := ops[0].Batch(ctx, 200)
				if err != nil || len(s) != 1 {
					t.Fatalf("%+v, %v", s, err)
				}
				if cost[tr.ID] == 0 || s[0].Value < cost[tr.ID] {
					cost[tr.ID] = s[0].Value
				}
			}
			if err := tg.Leave(ctx, tr); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := cost[more.ID] - cost[base.ID]
	t.Logf("an open takes %v instructions, %.0f more with %d planted", cost, got, planted)
	if got < planted*0.95 || got > planted*1.05 {
		t.Errorf("%d planted instructions cost %.0f, want them within 5 %%", planted, got)
	}
}
