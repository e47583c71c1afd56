package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// policies returns one policy of each kind that can be enforced.
func policies() map[string][]string {
	out := map[string][]string{
		"none":              {"enforcer", "none"},
		"seccomp":           {"enforcer", "seccomp"},
		"seccomp four":      {"enforcer", "seccomp", "rules", "4"},
		"seccomp default":   {"enforcer", "seccomp", "mode", "RuntimeDefault"},
		"seccomp default 9": {"enforcer", "seccomp", "mode", "RuntimeDefault", "rules", "9"},
		"seccomp all":       {"enforcer", "seccomp", "rules", fmt.Sprint(len(ruleCalls()))},
		"landlock":          {"enforcer", "landlock"},
		"landlock 60":       {"enforcer", "landlock", "rules", "60"},
		"stack":             {"enforcer", "seccomp+landlock", "rules", "2"},
	}
	for title, levels := range map[string][]string{
		"landlock network":   {"enforcer", "landlock", "rights", "network", "rules", "5"},
		"landlock scopes":    {"enforcer", "landlock", "rights", "scopes"},
		"landlock all":       {"enforcer", "landlock", "rights", "files+network+scopes", "rules", "3"},
		"stack with network": {"enforcer", "seccomp+landlock", "rights", "files+network"},
	} {
		if needABI(Policy{Rights: levels[3]}) == nil {
			out[title] = levels
		}
	}
	for title, levels := range map[string][]string{
		"bpf":              {"enforcer", "bpf", "rules", "3"},
		"bpf unconfined":   {"enforcer", "bpf", "mode", "Unconfined"},
		"apparmor":         {"enforcer", "apparmor", "rules", "3"},
		"bpf and apparmor": {"enforcer", "bpf+apparmor"},
	} {
		if kernelHas(levels[1]) {
			out[title] = levels
		}
	}
	return out
}

// kernelHas reports whether the kernel has the security modules of a stack, and this process may use them.
func kernelHas(enforcer string) bool {
	active, err := os.ReadFile("/sys/kernel/security/lsm")
	if err != nil || os.Getuid() != 0 {
		return false
	}
	for name := range strings.SplitSeq(enforcer, design.LevelMark) {
		if !slices.Contains(strings.Split(strings.TrimSpace(string(active)), ","), name) {
			return false
		}
	}
	return true
}

// TestPoliciesAreEnforced enters every policy, verifies it, runs every workload under it, and checks it from outside.
func TestPoliciesAreEnforced(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for title, levels := range policies() {
		t.Run(title, func(t *testing.T) {
			tr := treatment(levels...)
			tg, _ := prepared(t, &Spec{Workloads: kinds()}, tr)
			enter(t, tg, tr)
			if err := tg.Verify(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			for _, k := range workload.Kinds() {
				s, err := operationOf(t, tg, tr, k.Name).Batch(t.Context(), 1)
				if err != nil {
					t.Errorf("%s: %v", k.Name, err)
					continue
				}
				value(t, s, metricWall)
			}
		})
	}
}

func kinds() []string {
	var out []string
	for _, k := range workload.Kinds() {
		out = append(out, k.Name)
	}
	return out
}

// TestProofsRejectOtherEnforcers runs every proof against the worker of every other enforcer: a proof that cannot fail
// proves nothing.
func TestProofsRejectOtherEnforcers(t *testing.T) {
	tg, j := prepared(t, &Spec{Workloads: []string{"fork"}})
	for title, levels := range policies() {
		t.Run(title, func(t *testing.T) {
			tr := treatment(levels...)
			if err := tg.Prepare(t.Context(), tr, j); err != nil {
				t.Fatal(err)
			}
			enter(t, tg, tr)
			s := tg.arms[tr.ID].sample
			for _, e := range enforcers() {
				p := s.worker.policy
				p.Enforcer, p.Mode = e.Name(), AlwaysAllow
				err := stack{e}.prove(t.Context(), p, s.worker.client)
				same := e.Name() == s.plan.policy.Enforcer
				if s.plan.policy.Mode == Unconfined { // nothing confines the worker
					same = e.Name() == enforcerNone
				}
				if same != (err == nil) && s.plan.policy.Mode != RuntimeDefault {
					t.Errorf("%s proved in a worker under %q: %v", e.Name(), title, err)
				}
				if err != nil && !strings.Contains(err.Error(), "not enforced as expected") {
					t.Errorf("%s in a worker under %q: %v", e.Name(), title, err)
				}
			}
			if err := tg.Leave(t.Context(), tr); err != nil {
				t.Error(err)
			}
			t.Logf("all proofs tried in a worker under %s", title)
		})
	}
}

// A fakeWorker answers attempts as the test says.
type fakeWorker struct {
	status workload.Status
	answer func(what string, args []string) (syscall.Errno, error)
}

func (f fakeWorker) Try(_ context.Context, what string, args ...string) (syscall.Errno, error) {
	return f.answer(what, args)
}

func (f fakeWorker) Status(context.Context) (workload.Status, error) { return f.status, nil }

// answers is a worker with a status that gets these errnos, by attempt with its arguments or without, and success
// otherwise.
func answers(s workload.Status, errnos map[string]syscall.Errno) fakeWorker {
	return fakeWorker{s, func(what string, args []string) (syscall.Errno, error) {
		if errno, ok := errnos[attempt(what, args)]; ok {
			return errno, nil
		}
		return errnos[what], nil
	}}
}

// TestProofsRejectEachFlaw runs proofs against a worker with one flaw at a time.
func TestProofsRejectEachFlaw(t *testing.T) {
	own, mount, clone3 := "syscall "+canary(), "syscall mount", "syscall clone3"
	filtered, twice := workload.Status{Seccomp: 2, Filters: 1, NoNewPrivs: true}, workload.Status{
		Seccomp: 2, Filters: 2, NoNewPrivs: true,
	}
	open := workload.Status{NoNewPrivs: true}
	four := map[string]syscall.Errno{own: unix.EPERM}
	for _, c := range firstRules {
		four["syscall "+c] = unix.EPERM
	}
	defaults := map[string]syscall.Errno{own: unix.EPERM, clone3: unix.ENOSYS}
	fifo := map[string]syscall.Errno{tryFifo: unix.EACCES}
	outer := map[string]syscall.Errno{
		"fifo /x/s/proof.fifo": unix.EACCES, "bind 501": unix.EACCES, "connect 501": unix.EACCES,
		"connect 500": unix.ECONNREFUSED, "abstract x-s": unix.EPERM, "signal parent": unix.EPERM,
	}
	only := map[string]syscall.Errno{"fifo /x/s/proof.fifo": unix.EACCES, "connect 501": unix.ECONNREFUSED}
	seccomp4 := Policy{Enforcer: "seccomp", Mode: AlwaysAllow, Rules: 4, Scratch: "/x"}
	docker := Policy{Enforcer: "seccomp", Mode: RuntimeDefault, Scratch: "/x"}
	lock := Policy{Enforcer: "landlock", Mode: AlwaysAllow, Scratch: "/x"}
	bare, bound := Policy{Enforcer: "none", Scratch: "/x"}, Policy{Enforcer: "none", Port: 500, Scratch: "/x/s"}
	files := Policy{Enforcer: "landlock", Mode: AlwaysAllow, Port: 500, Scratch: "/x/s"}
	all := files
	all.Rights = "files+network+scopes"
	for _, c := range []struct {
		policy  Policy
		status  workload.Status
		errnos  map[string]syscall.Errno
		attempt string // answered differently
		errno   syscall.Errno
		wrong   string // empty: the proof holds
	}{
		{policy: seccomp4, status: filtered, errnos: four},
		{seccomp4, filtered, four, mount, unix.EFAULT, "mount must be refused with EPERM, and gave EFAULT"},
		{seccomp4, filtered, four, own, unix.ENOSYS, canary() + " must be refused"},
		{seccomp4, filtered, four, "syscall getppid", unix.EPERM, "getppid must be allowed, and gave EPERM"},
		{seccomp4, open, four, "", 0, "seccomp mode 0"},
		{seccomp4, twice, four, "", 0, "with 2 filters"},
		{policy: docker, status: filtered, errnos: defaults},
		{docker, filtered, defaults, clone3, unix.EINVAL, "clone3 must be refused with ENOSYS"},
		{policy: lock, status: open, errnos: fifo},
		{lock, open, nil, "", 0, "fifo /x/proof.fifo must be refused with EACCES, and gave success"},
		{lock, open, fifo, tryCreate, unix.EACCES, "create /x/proof.file must be allowed"},
		{lock, filtered, fifo, "", 0, "want mode 0"},
		{policy: bare, status: open},
		{bare, filtered, nil, "", 0, "want mode 0"}, // a container's profile
		{bare, open, fifo, "", 0, "must not be refused with EACCES"},
		{bare, workload.Status{}, nil, "", 0, "no_new_privs is not set"},
		{bound, open, nil, tryBind, unix.EACCES, "bind 501 must not be refused"},

		{policy: all, status: open, errnos: outer},
		{policy: files, status: open, errnos: only},
		{all, open, outer, "fifo /x/s/proof.fifo", 0, "fifo /x/s/proof.fifo must be refused"},
		{all, open, outer, "bind 501", 0, "bind 501 must be refused with EACCES"},
		{all, open, outer, "connect 501", unix.ECONNREFUSED, "connect 501 must be refused with EACCES"},
		{all, open, outer, "bind 500", unix.EACCES, "bind 500 must be allowed"},
		{all, open, outer, "connect 500", unix.EACCES, "connect 500 must not be refused"},
		{all, open, outer, "abstract x-s", 0, "abstract x-s must be refused with EPERM"},
		{all, open, outer, "abstract x-s", unix.ECONNREFUSED, "abstract x-s must be refused with EPERM"},
		{all, open, outer, "ownabstract x-s-own", unix.EPERM, "ownabstract x-s-own must be allowed"},
		{all, open, outer, "signal parent", 0, "signal parent must be refused with EPERM"},
		{all, open, outer, "signal self", unix.EPERM, "signal self must be allowed"},
		{files, open, only, "bind 501", unix.EACCES, "bind 501 must not be refused"},
		{files, open, only, "abstract x-s", unix.EPERM, "abstract x-s must not be refused"},
		{files, open, only, "signal parent", unix.EPERM, "signal parent must not be refused"},
	} {
		s, err := findStack(c.policy.Enforcer)
		if err != nil {
			t.Fatal(err)
		}
		errnos := map[string]syscall.Errno{c.attempt: c.errno}
		for what, errno := range c.errnos {
			if what != c.attempt {
				errnos[what] = errno
			}
		}
		err = s.prove(t.Context(), c.policy, answers(c.status, errnos))
		if (err == nil) != (c.wrong == "") || (err != nil && !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s with %q answered %v: %v, want %q", c.policy.Enforcer, c.attempt, c.errno, err, c.wrong)
		}
	}
	gone := errors.New("worker is gone")
	broken := fakeWorker{filtered, func(string, []string) (syscall.Errno, error) { return 0, gone }}
	if err := (stack{seccompFilter{}}).prove(t.Context(), seccomp4, broken); !errors.Is(err, gone) {
		t.Errorf("a worker that is gone: %v", err)
	}
}

// TestDockerDefault compares the translated profile with what is known of Docker's.
func TestDockerDefault(t *testing.T) {
	policy, err := dockerDefault()
	if err != nil {
		t.Fatal(err)
	}
	last := policy.Syscalls[len(policy.Syscalls)-1]
	for _, call := range []string{"openat", "execve", "getppid", "mmap", "connect", "wait4"} {
		if !slices.Contains(last.Names, call) {
			t.Errorf("%s is not simply allowed", call)
		}
	}
	for _, call := range []string{"mount", "kexec_load", "init_module", "uselib", "keyctl", "unshare", "clone", "clone3"} {
		if slices.Contains(last.Names, call) {
			t.Errorf("%s is simply allowed", call)
		}
	}
	program, err := filterProgram(Policy{Mode: RuntimeDefault})
	n := len(program)
	if err != nil || n < 200 || n > 4096 {
		t.Errorf("%d instructions: %v", n, err)
	}
	more, err := filterProgram(Policy{Mode: RuntimeDefault, Rules: 5})
	if err != nil || len(more) != n+6 { // a comparison for each, and one refusal
		t.Errorf("%d instructions with five rules more than %d: %v", len(more), n, err)
	}
	seen := map[string]bool{}
	for _, c := range ruleCalls() {
		if seen[c] || c == canary() || slices.Contains(keptCalls, c) {
			t.Errorf("rule %s", c)
		}
		seen[c] = true
	}
}

func TestNoLandlock(t *testing.T) {
	for _, c := range []struct {
		err  error
		says string
	}{
		{unix.ENOSYS, "kernel without Landlock (ENOSYS)"},
		{unix.EOPNOTSUPP, "switched off"},
		{unix.EPERM, "operation not permitted"},
	} {
		if err := noLandlock(c.err); !strings.Contains(err.Error(), c.says) || area.HintOf(err) == "" {
			t.Errorf("%v: %v, next %q", c.err, err, area.HintOf(err))
		}
	}
}

func TestFindStack(t *testing.T) {
	for level, want := range map[string]string{
		"seccomp+landlock": "", "none": "", "landlock+landlock": "named twice", "none+seccomp": "cannot be combined",
		"landlock+": `there is no ""`, "": `there is no ""`, "seccomp+lanlock": "did you mean",
	} {
		s, err := findStack(level)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", level, err, want)
		}
		if err == nil && len(s) > 1 && s[len(s)-1].Name() != enforcerSeccomp {
			t.Errorf("%q: seccomp is not applied last", level)
		}
	}
}

// TestRightsOfThisKernel proves the rights that this kernel has, and says which those are.
func TestRightsOfThisKernel(t *testing.T) {
	requireEnforcer(t, enforcerLandlock)
	for _, r := range landlockRightsKnown() {
		err := needABI(Policy{Rights: r.name})
		if err != nil && !strings.Contains(err.Error(), "and this kernel has version") {
			t.Errorf("%s: %v", r.name, err)
		}
		t.Logf("%s: %v", r.name, err)
		tr := treatment("enforcer", "landlock", "rights", r.name)
		tg, j := areatest.Open[*target](t, Area{}, &Spec{Workloads: []string{"connect"}}, areatest.Env(t))
		got := tg.Prepare(t.Context(), tr, j)
		if (got == nil) != (err == nil) {
			t.Errorf("%s: prepared with %v, want %v", r.name, got, err)
		}
		if got != nil {
			continue
		}
		enter(t, tg, tr)
		if err := tg.Verify(t.Context(), tr); err != nil {
			t.Error(err)
		}
		if _, err := operationOf(t, tg, tr, "connect").Batch(t.Context(), 3); errors.Is(err, unix.ENETUNREACH) {
			hosttest.Untried(t, fmt.Sprintf("the loopback device is down: %v", err), "ip link set lo up")
		} else if err != nil {
			t.Errorf("connect under %s: %v", r.name, err)
		}
	}
}

// TestRightsNeedABI: the error names the version that the kernel has and the one that is needed.
func TestRightsNeedABI(t *testing.T) {
	for _, c := range []struct {
		rights string
		abi    int
		want   string
	}{
		{"", 1, ""},
		{"files", 1, ""},
		{"network", 4, ""},
		{"network", 3, "network needs version 4 of Landlock's ABI, and this kernel has version 3"},
		{"files+network", 2, "network needs version 4 of Landlock's ABI, and this kernel has version 2"},
		{"scopes", 5, "scopes needs version 6 of Landlock's ABI, and this kernel has version 5"},
		{"files+network+scopes", 6, ""},
	} {
		err := rightsNeed(Policy{Rights: c.rights}, c.abi)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q on ABI %d: %v, want %q", c.rights, c.abi, err, c.want)
		}
		if err != nil && area.HintOf(err) == "" {
			t.Errorf("%q on ABI %d: no next step", c.rights, c.abi)
		}
	}
}

// TestPorts: the worker's own port is granted, and never the one that must be refused.
func TestPorts(t *testing.T) {
	for _, c := range []struct {
		p    Policy
		want []int
	}{
		{Policy{Rights: "files", Port: 40000, Rules: 3}, nil},
		{Policy{Rights: "files+network", Port: 40000, Rules: 3}, []int{40000}},
		{Policy{Rights: "network", Port: 40000, Rules: 3}, []int{40000, 1, 2, 3}},
		{Policy{Rights: "network", Port: 2, Rules: 3}, []int{2, 1, 4, 5}},
	} {
		if d := cmp.Diff(c.want, portsOf(c.p)); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.p, d)
		}
	}
	if p := (Policy{Port: 65535}); otherPort(p) != 65534 {
		t.Errorf("beside the last port: %d", otherPort(p))
	}
}

// TestInertUnderRights: a workload is a negative control only for rights that cannot affect it.
func TestInertUnderRights(t *testing.T) {
	for rights, want := range map[string]string{
		"":               "fork connect udpconnect syscall compute",
		"network":        "fork open stat create read pipe switch copy copy1024 copy256 syscall compute",
		"files+network":  "fork syscall compute",
		"scopes":         "fork open stat create connect udpconnect read pipe switch copy copy1024 copy256 syscall compute",
		"network+scopes": "fork open stat create read pipe switch copy copy1024 copy256 syscall compute",
	} {
		var got []string
		for _, k := range kinds() {
			if (stack{landlockRules{}}).inert(Policy{Rights: rights}, k) {
				got = append(got, k)
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q (-want +got):\n%s", rights, d)
		}
		text := landlockRules{}.Describe(Policy{Rights: rights})
		if strings.Contains(text, "TCP") != strings.Contains(rights, "network") ||
			strings.Contains(text, "signals") != strings.Contains(rights, "scopes") {
			t.Errorf("%q is described as %s", rights, text)
		}
	}
}

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
	refused := answers(workload.Status{NoNewPrivs: true}, map[string]syscall.Errno{tryFifo: unix.EACCES})
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
	status := workload.Status{PID: os.Getpid(), NoNewPrivs: true}
	obedient := answers(status, map[string]syscall.Errno{tryFifo: unix.EACCES})
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
