package apparmor

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
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

func TestObserveNamesWhatAProfileWouldRefuse(t *testing.T) {
	namespace := testNamespace(t)
	s := newScratch(t)
	text := "abi <abi/3.0>,\nprofile mine {\n  file,\n  deny \"" + s.secret + "\" w,\n  unix,\n  network unix,\n" +
		"  signal,\n  capability dac_override,\n  capability dac_read_search,\n  capability sys_ptrace,\n}\n"
	under := loadText(t, namespace, text, Complain)
	o, err := Observe(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	results, label := runConfined(t, under, [][]string{
		{"read", s.secret},
		{"write", s.secret},
		{"hostname"},
		{"hostname"},
		{"mount", "x", s.mountPoint, "tmpfs"},
		{"umount", s.mountPoint},
	})
	refusals, lost, err := o.Stop(t.Context())
	if err != nil || lost != 0 {
		t.Errorf("%d lost, %v", lost, err)
	}
	if label != under || slices.ContainsFunc(results, func(r string) bool { return r != "ok" }) {
		t.Errorf("%s: %q, want complain mode and no refusal", label, results)
	}
	var got []string
	for _, r := range refusals {
		got = append(got, r.String())
		if r.Enforced || r.Profile != "mine" || r.PID == 0 {
			t.Errorf("%+v", r)
		}
	}
	want := []string{
		"open " + s.secret + " (w)", "capable sys_admin", "mount tmpfs x " + s.mountPoint + "/ [failed mntpnt match]",
		"umount " + s.mountPoint + "/",
	}
	if !slices.Equal(got, want) {
		t.Errorf("refusals:\n%q, want\n%q", got, want)
	}
}

// TestObserveOfManyRecords makes more records at once than the kernel's queue holds by default (64).
func TestObserveOfManyRecords(t *testing.T) {
	refusals, lost := observeMany(t, testNamespace(t))
	if len(refusals) < 300 && lost == 0 {
		t.Errorf("%d refusals of 300 mounts, and none is said to be lost", len(refusals))
	}
}

// TestObserveSaysWhatItLoses limits the kernel to 5 records a second.
func TestObserveSaysWhatItLoses(t *testing.T) {
	if os.Getenv("TARE_IN_VM") == "" {
		hosttest.Missing(t, "the limit holds for the whole machine: it is set in a virtual machine only", "boot the lab VM")
	}
	namespace := testNamespace(t)
	limit := func(n uint32) {
		if err := limitAudit(n); err != nil {
			t.Fatal(err)
		}
	}
	limit(5)
	defer limit(0)
	refusals, lost := observeMany(t, namespace)
	if len(refusals) >= 300 || lost < 200 {
		t.Errorf("%d refusals of 300 mounts, %d said to be lost", len(refusals), lost)
	}
}

// limitAudit sets how many records the kernel makes a second; 0 is no limit.
func limitAudit(perSecond uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return err
	}
	defer unix.Close(fd)                                         //nolint:errcheck // nothing is read
	const set, rateLimit, size = 1001, 8, unix.NLMSG_HDRLEN + 40 // AUDIT_SET, AUDIT_STATUS_RATE_LIMIT
	var request [size]byte
	order := binary.NativeEndian
	order.PutUint32(request[0:], size)
	order.PutUint16(request[4:], set)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST)
	order.PutUint32(request[unix.NLMSG_HDRLEN:], rateLimit)
	order.PutUint32(request[unix.NLMSG_HDRLEN+16:], perSecond)
	return unix.Sendto(fd, request[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// observeMany observes 300 different mounts under a profile that allows none.
func observeMany(t *testing.T, namespace string) (refusals []Refusal, lost int) {
	t.Helper()
	s := newScratch(t)
	under := loadText(t, namespace, "abi <abi/3.0>,\nprofile mine {\n  file,\n}\n", Complain)
	o, err := Observe(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	var attempts [][]string
	for i := range 300 {
		attempts = append(attempts, []string{"mount", fmt.Sprint("x", i), s.mountPoint, "tmpfs"},
			[]string{"umount", s.mountPoint})
	}
	runConfined(t, under, attempts)
	if refusals, lost, err = o.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d refusals, %d lost", len(refusals), lost)
	return refusals, lost
}

// The environment of a process that confines itself, and of the worker that it becomes.
const (
	confineVariable = "TARE_TEST_CONFINE"  // a label as JSON
	attemptVariable = "TARE_TEST_ATTEMPTS" // JSON: a list of attempts
)

func TestMain(m *testing.M) {
	if what := os.Getenv(confineVariable); what != "" {
		fmt.Fprintln(os.Stderr, confineAndExecute(what))
		os.Exit(1)
	}
	if list := os.Getenv(attemptVariable); list != "" {
		attemptAll(list)
		os.Exit(0)
	}
	hosttest.Main(m)
}

// confineAndExecute does what a shim does: no_new_privs, the profile, a seccomp filter that allows all, execve.
func confineAndExecute(what string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	var label Label
	if err := json.Unmarshal([]byte(what), &label); err != nil {
		return err
	}
	if err := Enter(label); err != nil {
		return err
	}
	allow := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}} // SECCOMP_RET_ALLOW
	program := unix.SockFprog{Len: 1, Filter: &allow[0]}
	if err := seccompFilter(&program); err != nil {
		return err
	}
	if err := os.Unsetenv(confineVariable); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", []string{"worker"}, os.Environ())
}

func attemptAll(list string) {
	var attempts [][]string
	if err := json.Unmarshal([]byte(list), &attempts); err != nil {
		fmt.Println(err)
		return
	}
	results := make([]string, len(attempts))
	for i, a := range attempts {
		results[i] = "ok"
		if err := try(a[0], a[1:]...); err != nil {
			results[i] = err.Error()
		}
	}
	text, _ := json.Marshal(results)
	fmt.Println(string(text))
	_, _ = io.ReadAll(os.Stdin) // stay until the label has been read
}

// try makes one attempt.
func try(what string, args ...string) error {
	switch what {
	case "read", "write", "append", "create":
		return tryFile(what, args[0])
	case "remove":
		return unix.Unlink(args[0])
	case "link":
		return unix.Link(args[0], args[1])
	case "exec":
		c := exec.Command(args[0])
		c.Env = noAttempts()
		return c.Run()
	case "connect":
		c, err := net.Dial(args[0], args[1])
		if err != nil {
			return err
		}
		return c.Close()
	case "mount":
		return unix.Mount(args[0], args[1], args[2], 0, "")
	case "umount":
		return unix.Unmount(args[0], 0)
	case "hostname": // takes sys_admin
		return unix.Sethostname([]byte("x"))
	case "chroot":
		return unix.Chroot("/")
	case "parent": // takes the right to read it by ptrace
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
		return err
	case "child":
		return tryChild()
	case "signal":
		return unix.Kill(os.Getppid(), 0)
	case "raise":
		return unix.Kill(os.Getpid(), unix.SIGURG)
	case "profile": // change it, which would end the confinement
		f, err := openAttribute("thread-self", "current", os.O_WRONLY)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // the kernel acts on the write
		_, err = f.WriteString("changeprofile " + args[0])
		return err
	}
	return fmt.Errorf("there is no attempt %q", what)
}

// noAttempts is the environment of a program that is this one and ends at once.
func noAttempts() []string { return []string{attemptVariable + "=[]"} }

func tryFile(what, path string) error {
	flags := map[string]int{
		"read": unix.O_RDONLY, "write": unix.O_WRONLY, "append": unix.O_WRONLY | unix.O_APPEND,
		"create": unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL,
	}[what]
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tryChild reads a child that runs under the same profile.
func tryChild() error {
	c := exec.Command("/proc/self/exe")
	c.Env = noAttempts()
	end, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	_, read := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.Process.Pid))
	_ = end.Close()
	if err := c.Wait(); err != nil {
		return err
	}
	return read
}

// runConfined makes attempts under a profile. It returns the results, "ok" or an error each, and the
// label of the worker.
func runConfined(t *testing.T, under Label, attempts [][]string) ([]string, Label) {
	t.Helper()
	list, err := json.Marshal(attempts)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := json.Marshal(under)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Env = []string{attemptVariable + "=" + string(list), confineVariable + "=" + string(profile)}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var results []string
	if err := json.NewDecoder(out).Decode(&results); err != nil {
		t.Fatalf("under %s: %v (%v)", profile, err, c.Wait())
	}
	label, err := Current(c.Process.Pid)
	if err != nil {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	return results, label
}
