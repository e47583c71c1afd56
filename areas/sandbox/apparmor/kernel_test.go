package apparmor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

func seccompFilter(program *unix.SockFprog) error {
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(program)), 0, 0)
}

// testNamespace returns a namespace for one test, or skips the test where AppArmor cannot be used.
func testNamespace(t *testing.T) string {
	t.Helper()
	namespace := Namespace(fmt.Sprintf("test-%d-%s", os.Getpid(), t.Name()))
	if err := Probe(t.Context(), namespace); err != nil {
		hosttest.Missing(t, err.Error(), "boot the lab VM: TestLab")
	}
	t.Cleanup(func() {
		if err := Remove(namespace); err != nil {
			t.Error(err)
		}
		if left, err := Namespaces(); err != nil || slices.Contains(left, namespace) {
			t.Errorf("%s is left: %q, %v", namespace, left, err)
		}
	})
	return namespace
}

// loadPolicy loads the profile of a policy.
func loadPolicy(t *testing.T, namespace, name string, p policy.Policy) Loaded {
	t.Helper()
	l, err := LoadPolicy(t.Context(), namespace, name, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Warnings) > 0 {
		t.Logf("%s: %q", name, l.Warnings)
	}
	return l
}

// loadText loads the profile "mine" of the user's.
func loadText(t *testing.T, namespace, text string, m Mode) Label {
	t.Helper()
	l, err := LoadFile(t.Context(), namespace, &File{Name: "mine", Text: text}, "mine", m)
	if err != nil {
		t.Fatal(err)
	}
	return l.Label
}

// scratch is a folder with the files that attempts need.
type scratch struct{ dir, secret, public, program, other, mountPoint, port string }

func newScratch(t *testing.T) scratch {
	t.Helper()
	dir := t.TempDir()
	s := scratch{
		dir: dir, secret: filepath.Join(dir, "the secret.d", "a+b (c), d"), public: filepath.Join(dir, "public"),
		program: filepath.Join(dir, "program"), other: filepath.Join(dir, "other"), mountPoint: filepath.Join(dir, "mnt"),
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{filepath.Dir(s.secret), s.mountPoint} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string][]byte{s.secret: nil, s.public: nil, s.program: self, s.other: self} {
		if err := files.WriteProgram(path, text); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s.port = l.Addr().String()
	return s
}

// TestEveryRule proves each kind of rule: what it refuses and what it allows, under no_new_privs.
func TestEveryRule(t *testing.T) {
	namespace := testNamespace(t)
	s := newScratch(t)
	t.Setenv("LC_ALL", "C")
	run := func(path string) []string { return []string{"exec", path} }
	r, w := []policy.Access{policy.Read}, []policy.Access{policy.Write}
	folder := filepath.Dir(s.secret)
	for _, c := range []struct {
		name             string
		policy           policy.Policy
		refused, allowed [][]string
	}{
		{"nothing", policy.Policy{}, [][]string{{"profile", "unconfined"}}, [][]string{
			{"read", s.secret},
			{"write", s.secret},
			{"append", s.secret},
			{"create", s.dir + "/new"},
			{"remove", s.dir + "/new"},
			{"link", s.public, s.dir + "/link"},
			{"remove", s.dir + "/link"},
			run(s.program),
			{"connect", "unix", s.port},
			{"mount", "x", s.mountPoint, "tmpfs"},
			{"umount", s.mountPoint},
			{"hostname"},
			{"chroot"},
			{"parent"},
			{"child"},
			{"signal"},
			{"raise"},
		}},
		{
			"read",
			policy.Policy{Files: []policy.File{{Path: policy.Path(s.secret), Access: r}}},
			[][]string{{"read", s.secret}},
			[][]string{{"read", s.public}, {"write", s.secret}, {"append", s.secret}},
		},
		{
			"write",
			policy.Policy{Files: []policy.File{{Path: policy.Path(s.secret), Access: w}}},
			[][]string{{"write", s.secret}, {"append", s.secret}, {"remove", s.secret}},
			[][]string{{"read", s.secret}, {"write", s.public}},
		},
		{
			"prefix",
			policy.Policy{Files: []policy.File{{Path: policy.Path(folder + "/**"), Access: append(r, w...)}}},
			[][]string{
				{"read", s.secret}, {"write", s.secret}, {"create", folder + "/new"}, {"link", s.public, folder + "/new"},
			},
			[][]string{{"read", folder}, {"read", s.public}},
		},
		{
			"suffix",
			policy.Policy{Files: []policy.File{{Path: "/**/the secret.d", Access: r}}},
			[][]string{{"read", folder}},
			[][]string{{"read", s.secret}, {"read", s.dir}},
		},
		{
			"middle",
			policy.Policy{Files: []policy.File{{Path: policy.Path(s.dir + "/**d"), Access: r}}},
			[][]string{{"read", s.secret}, {"read", folder}},
			[][]string{{"read", s.public}},
		},
		{
			"exec",
			policy.Policy{Execs: []policy.Path{policy.Path(s.program)}},
			[][]string{run(s.program)},
			[][]string{run(s.other), {"read", s.program}},
		},
		{
			"mount",
			policy.Policy{Mounts: []policy.Mount{{}}},
			[][]string{{"mount", "x", s.mountPoint, "tmpfs"}, {"mount", "x", s.mountPoint, "proc"}},
			[][]string{{"hostname"}},
		},
		{
			"mount type",
			policy.Policy{Mounts: []policy.Mount{{Type: "tmpfs"}}},
			[][]string{{"mount", "x", s.mountPoint, "tmpfs"}},
			[][]string{{"mount", "x", s.mountPoint, "proc"}, {"umount", s.mountPoint}},
		},
		{
			"mount source",
			policy.Policy{Mounts: []policy.Mount{{Source: "bad**"}}},
			[][]string{{"mount", "bad one", s.mountPoint, "tmpfs"}},
			[][]string{{"mount", "good", s.mountPoint, "tmpfs"}, {"umount", s.mountPoint}},
		},
		{"umount", policy.Policy{Umount: true}, [][]string{{"umount", "/dev"}}, [][]string{{"hostname"}}},
		{"capability", policy.Policy{Capabilities: []string{"sys_chroot"}}, [][]string{{"chroot"}}, [][]string{{"hostname"}}},
		{
			"ptrace",
			policy.Policy{Ptrace: true},
			[][]string{{"parent"}},
			[][]string{{"child"}, {"signal"}, {"read", s.secret}},
		},
	} {
		name := strings.ReplaceAll(c.name, " ", "-")
		want := loadPolicy(t, namespace, name, c.policy).Label
		results, label := runConfined(t, want, slices.Concat(c.refused, c.allowed))
		if label != want || label.Mode != "enforce" {
			t.Errorf("%s: the kernel says %s, want %s", c.name, label, want)
		}
		for i, got := range results {
			if i < len(c.refused) {
				if !strings.HasSuffix(got, unix.EACCES.Error()) && !strings.HasSuffix(got, unix.EPERM.Error()) {
					t.Errorf("%s: %q must be refused, and gave: %s", c.name, c.refused[i], got)
				}
			} else if a := c.allowed[i-len(c.refused)]; got != "ok" {
				t.Errorf("%s: %q must be allowed, and gave: %s", c.name, a, got)
			}
		}
	}
}

// TestBuiltinPolicies proves what the built-in policies refuse of files that every kernel has.
func TestBuiltinPolicies(t *testing.T) {
	namespace := testNamespace(t)
	all := policy.RuntimeDefault()
	for _, r := range policy.EnhanceProtect() {
		all = all.And(r.Policy)
	}
	policies := map[string]policy.Policy{"default": policy.RuntimeDefault(), "all": all}
	attempts := [][]string{
		{"read", "/proc/kcore"},
		{"write", "/proc/sysrq-trigger"},
		{"read", fmt.Sprintf("/proc/%d/mem", os.Getpid())},
		{"parent"},
		{"read", "/proc/partitions"},
		{"read", "/proc/self/mountinfo"},
		{"umount", "/dev"},
		{"hostname"},
		{"read", "/proc/stat"},
	}
	want := map[string]string{"default": "xxxx  b  ", "all": "xxxxxxxx "} // x: refused, b: busy
	for profile, want := range want {
		loaded := loadPolicy(t, namespace, profile, policies[profile])
		t.Logf("%s: %d bytes", profile, len(loaded.Compiled))
		results, _ := runConfined(t, loaded.Label, attempts)
		for i, got := range results {
			refused := strings.HasSuffix(got, unix.EACCES.Error()) || strings.HasSuffix(got, unix.EPERM.Error())
			if refused != (want[i] == 'x') {
				t.Errorf("%s: %q: got %s", profile, attempts[i], got)
			}
		}
	}
}

func TestRemoveRemovesTheProfilesOfOneRun(t *testing.T) {
	namespace := testNamespace(t)
	other := namespace + "-2"
	first := loadPolicy(t, namespace, "a", policy.Policy{}).Label
	second := loadPolicy(t, other, "a", policy.Policy{Umount: true}).Label
	third := loadText(t, namespace, "profile mine { }", Enforce)
	if all, err := Namespaces(); err != nil || !slices.Contains(all, namespace) || !slices.Contains(all, other) {
		t.Errorf("namespaces: %q, %v", all, err)
	}
	for range 2 {
		if err := Remove(namespace); err != nil {
			t.Error(err)
		}
	}
	if all, err := Namespaces(); err != nil || slices.Contains(all, namespace) || !slices.Contains(all, other) {
		t.Errorf("namespaces: %q, %v", all, err)
	}
	for _, l := range []Label{first, third} {
		if err := Enter(l); err == nil || !strings.Contains(err.Error(), "is not loaded") {
			t.Errorf("enter %s, which is removed: %v", l, err)
		}
	}
	if _, label := runConfined(t, second, nil); label != second {
		t.Errorf("the other run's profile: the kernel says %s", label)
	}
	if err := Remove(other); err != nil {
		t.Error(err)
	}
}

// TestProfilesOfAFileStayInTheirNamespace loads a profile that would attach to a program of the host.
func TestProfilesOfAFileStayInTheirNamespace(t *testing.T) {
	namespace := testNamespace(t)
	s := newScratch(t)
	text := fmt.Sprintf("abi <abi/3.0>,\nprofile mine %q { }\n", s.program)
	loadText(t, namespace, text, Enforce)
	if err := try("exec", s.program); err != nil {
		t.Errorf("a program of the host came under a profile of tare's: %v", err)
	}
	label := loadText(t, namespace, strings.Replace(text, "{ }", "{\n  file,\n  deny \""+s.secret+"\" r,\n}", 1), Enforce)
	results, got := runConfined(t, label, [][]string{{"read", s.secret}, {"read", s.public}, {"parent"}})
	if got != label || !slices.Equal(results, []string{unix.EACCES.Error(), "ok", "ok"}) {
		t.Errorf("%s: %q", got, results) // the last: what concerns processes outside of the namespace is allowed
	}
}

func TestLoadSaysWhyTheKernelRefuses(t *testing.T) {
	namespace := testNamespace(t)
	if err := loadInto(namespace, []byte("no profile at all")); err == nil || !strings.Contains(err.Error(), namespace) {
		t.Errorf("got %v", err)
	}
}
