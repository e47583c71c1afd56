package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
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
	for title, levels := range policies() {
		tr := treatment(levels...)
		tg, _ := prepared(t, &Spec{Workloads: []string{"fork"}}, tr)
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
		t.Logf("all proofs tried in a worker under %s", title)
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

// TestProofsRejectEachFlaw runs proofs against a worker with one flaw at a time.
func TestProofsRejectEachFlaw(t *testing.T) {
	denied := func(refused map[string]syscall.Errno) func(string, []string) (syscall.Errno, error) {
		return func(what string, args []string) (syscall.Errno, error) {
			if what == trySyscall {
				return refused[args[0]], nil
			}
			return refused[what], nil
		}
	}
	filtered := workload.Status{Seccomp: 2, Filters: 1, NoNewPrivs: true}
	open := workload.Status{NoNewPrivs: true}
	four := map[string]syscall.Errno{canary(): unix.EPERM}
	for _, c := range firstRules {
		four[c] = unix.EPERM
	}
	without := func(m map[string]syscall.Errno, call string, instead syscall.Errno) map[string]syscall.Errno {
		out := map[string]syscall.Errno{call: instead}
		for c, e := range m {
			if c != call {
				out[c] = e
			}
		}
		return out
	}
	seccomp4 := Policy{Enforcer: "seccomp", Mode: AlwaysAllow, Rules: 4, Scratch: "/x"}
	docker := Policy{Enforcer: "seccomp", Mode: RuntimeDefault, Scratch: "/x"}
	lock := Policy{Enforcer: "landlock", Mode: AlwaysAllow, Scratch: "/x"}
	bareWorker := Policy{Enforcer: "none", Scratch: "/x"}
	fifo := map[string]syscall.Errno{tryFifo: unix.EACCES}
	for _, c := range []struct {
		title  string
		policy Policy
		worker fakeWorker
		wrong  string // empty: the proof holds
	}{
		{"four rules", seccomp4, fakeWorker{filtered, denied(four)}, ""},
		{
			"a rule is missing", seccomp4,
			fakeWorker{filtered, denied(without(four, "mount", unix.EFAULT))},
			"mount must be refused with EPERM, and gave EFAULT",
		},
		{"the filter's own call", seccomp4, fakeWorker{filtered, denied(without(four, canary(), unix.ENOSYS))}, canary() +
			" must be refused"},
		{
			"too much is refused", seccomp4,
			fakeWorker{filtered, denied(without(four, "getppid", unix.EPERM))},
			"getppid must be allowed, and gave EPERM",
		},
		{"no filter", seccomp4, fakeWorker{open, denied(four)}, "seccomp mode 0"},
		{
			"two filters", seccomp4,
			fakeWorker{workload.Status{Seccomp: 2, Filters: 2, NoNewPrivs: true}, denied(four)},
			"with 2 filters",
		},
		{
			"Docker's", docker,
			fakeWorker{filtered, denied(map[string]syscall.Errno{canary(): unix.EPERM, "clone3": unix.ENOSYS})},
			"",
		},
		{
			"Docker's with clone3", docker,
			fakeWorker{filtered, denied(map[string]syscall.Errno{canary(): unix.EPERM, "clone3": unix.EINVAL})},
			"clone3 must be refused with ENOSYS",
		},
		{"Landlock", lock, fakeWorker{open, denied(fifo)}, ""},
		{
			"no Landlock", lock,
			fakeWorker{open, denied(nil)},
			"fifo /x/proof.fifo must be refused with EACCES, and gave success",
		},
		{
			"Landlock refuses files", lock,
			fakeWorker{open, denied(without(fifo, tryCreate, unix.EACCES))},
			"create /x/proof.file must be allowed",
		},
		{"Landlock and seccomp", lock, fakeWorker{filtered, denied(fifo)}, "want mode 0"},
		{"nothing", bareWorker, fakeWorker{open, denied(nil)}, ""},
		{"a container's profile", bareWorker, fakeWorker{filtered, denied(nil)}, "want mode 0"},
		{"a sandbox around it", bareWorker, fakeWorker{open, denied(fifo)}, "must not be refused with EACCES"},
		{"new privileges", bareWorker, fakeWorker{workload.Status{}, denied(nil)}, "no_new_privs is not set"},
	} {
		s, err := findStack(c.policy.Enforcer)
		if err != nil {
			t.Fatal(err)
		}
		err = s.prove(t.Context(), c.policy, c.worker)
		if (err == nil) != (c.wrong == "") || (err != nil && !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", c.title, err, c.wrong)
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
