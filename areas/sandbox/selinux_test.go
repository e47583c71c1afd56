package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/rigs/hosttest"
)

// rulesFile writes a policy of the user's and returns its path.
func rulesFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSELinuxDomains: each policy has a domain of its own, whatever folder it is for, and the same policy the same.
func TestSELinuxDomains(t *testing.T) {
	domains, err := domainsOf([]Policy{
		{Mode: AlwaysAllow},
		{Mode: RuntimeDefault},
		{Mode: AlwaysAllow, Dir: "/tmp/tare/arm001"},
		{Mode: EnhanceProtect},
	})
	if err != nil || len(domains) != 3 {
		t.Fatalf("%d domains, want 3: %v", len(domains), err)
	}
	var p Policy
	p.Mode = EnhanceProtect
	if err := (seLinux{}).Install(t.Context(), &p, nil); err != nil || p.SELinux != domains[2].Name {
		t.Errorf("installed as %q, want %q: %v", p.SELinux, domains[2].Name, err)
	}
	p = Policy{Mode: Unconfined}
	if err := (seLinux{}).Install(t.Context(), &p, nil); err != nil || p.SELinux != "" {
		t.Errorf("unconfined, and installed as %q: %v", p.SELinux, err)
	}
}

// TestSELinuxDescribesWhatIsLeftOut: nothing is dropped in silence, and nothing of it is to be proved.
func TestSELinuxDescribesWhatIsLeftOut(t *testing.T) {
	p := Policy{Mode: EnhanceProtect}
	all, left := p.model(), expressible(p.model())
	if len(left.Files) == 0 || len(left.Files) >= len(all.Files) {
		t.Errorf("%d of %d rules on files are expressible", len(left.Files), len(all.Files))
	}
	if refusesRead(left, "/proc/self/mountinfo") || !refusesRead(left, "/proc/partitions") {
		t.Error("want /proc/partitions among them, and not /proc/self/mountinfo, which has no label of its own")
	}
	text := seLinux{}.Describe(p)
	for _, want := range []string{
		"15 rules are not expressible and left out: ", "(/proc/**/mem): the files of a process", "and so on",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in %q", want, text)
		}
	}
	if text := (seLinux{}).Describe(Policy{Mode: AlwaysAllow}); strings.Contains(text, "left out") {
		t.Errorf("nothing is left out of a policy without rules: %q", text)
	}
}

// TestLandlockIsNotSoughtUnderSELinux: a domain refuses what Landlock would, so that refusal is no proof of Landlock.
func TestLandlockIsNotSoughtUnderSELinux(t *testing.T) {
	refused := fakeWorker{workload.Status{NoNewPrivs: true}, func(what string, _ []string) (syscall.Errno, error) {
		if what == tryFifo {
			return unix.EACCES, nil
		}
		return 0, nil
	}}
	for domain, wrong := range map[string]int{"": 1, "x": 0} {
		x := &proof{ctx: t.Context(), w: refused}
		landlockRules{}.Absent(x, Policy{Scratch: "/x", SELinux: domain})
		if len(x.wrong) != wrong {
			t.Errorf("domain %q: %q", domain, x.wrong)
		}
	}
}

// TestSELinuxProofNeedsTheKernel: where the kernel enforces no SELinux the proof fails, however the worker answers.
func TestSELinuxProofNeedsTheKernel(t *testing.T) {
	if _, err := os.Stat("/sys/fs/selinux/enforce"); err == nil {
		hosttest.Missing(t, "this kernel runs SELinux", "run on one that does not")
	}
	obedient := fakeWorker{
		workload.Status{PID: os.Getpid(), NoNewPrivs: true},
		func(what string, _ []string) (syscall.Errno, error) {
			if what == tryFifo {
				return unix.EACCES, nil
			}
			return 0, nil
		},
	}
	for _, mode := range []Mode{AlwaysAllow, Unconfined} {
		x := &proof{ctx: t.Context(), w: obedient}
		seLinux{}.Prove(x, Policy{Mode: mode, Scratch: "/x", SELinux: "x"})
		if err := x.end(); err == nil || !strings.Contains(err.Error(), "whether SELinux enforces") {
			t.Errorf("%s: %v", mode, err)
		}
	}
	x := &proof{ctx: t.Context(), w: obedient}
	seLinux{}.Absent(x, Policy{Scratch: "/x"})
	if err := x.end(); err != nil {
		t.Errorf("absent: %v", err)
	}
}

// TestOwnRulesAreContents: a run does not go on with other rules.
func TestOwnRulesAreContents(t *testing.T) {
	path := rulesFile(t, "capabilities: [sys_chroot]\n")
	contents := func() string {
		all, err := Area{}.Contents(&Spec{On: onLab}, []design.Treatment{treatment("enforcer", "selinux", "rules", path)})
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all["content of "+path]
	}
	before := contents()
	if err := os.WriteFile(path, []byte("capabilities: [sys_admin]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := contents(); len(before) != 64 || after == before {
		t.Errorf("%q, then %q", before, after)
	}
}
