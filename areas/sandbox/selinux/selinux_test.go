package selinux

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

func builtin() (runtimeDefault, all policy.Policy) {
	runtimeDefault = policy.RuntimeDefault()
	all = runtimeDefault
	for _, r := range policy.EnhanceProtect() {
		all = all.And(r.Policy)
	}
	return runtimeDefault, all
}

func TestSourceListsWhatItCannotExpress(t *testing.T) {
	_, all := builtin()
	all.Execs = []policy.Path{"/bin/nc"}
	all.Mounts = append(all.Mounts, policy.Mount{Type: "ext4"})
	text, unsupported := Source([]Domain{{"all", all}, {"none", policy.Policy{}}})
	got := strings.Join(unsupported["all"], "\n")
	for _, want := range []string{
		"(/proc/**/mem): the files of a process", "(/proc/**/mountinfo): the files", "(/**/runc): SELinux sees labels",
		"execs[0] (/bin/nc): SELinux sees labels", "connects[0] (169.254.169.254): SELinux labels ports",
		"mounts[1]: SELinux sees",
		"(/sys/fs/cgroup/devices/**/tasks): a label stands",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
	for _, want := range []string{
		`(genfscon proc "/net/arp" `, `(genfscon sysfs "/firmware" `, `(genfscon proc "/kcore" `,
		`(genfscon securityfs / (tare_u object_r tare_label`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
	if len(unsupported["none"]) > 0 {
		t.Errorf("the empty policy: %q", unsupported["none"])
	}
}

func TestCompile(t *testing.T) {
	if _, err := secilc.Find(); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install secilc")
	}
	runtimeDefault, all := builtin()
	text, _ := Source([]Domain{{"allow", policy.Policy{}}, {"default", runtimeDefault}, {"all", all}})
	binary, err := Compile(t.Context(), text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !strings.Contains(string(binary[:64]), "SE Linux") || len(binary) < 1000 {
		t.Errorf("%d bytes: %q", len(binary), binary[:64])
	}
	if _, err := Compile(t.Context(), "(type a"); err == nil || !strings.Contains(err.Error(), "the SELinux policy") {
		t.Errorf("a policy that is none: %v", err)
	}
}

// The environment of a process that confines itself, and of the worker that it becomes.
const (
	domainVariable  = "TARE_TEST_DOMAIN"
	attemptVariable = "TARE_TEST_ATTEMPTS"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(domainVariable); name != "" {
		fmt.Fprintln(os.Stderr, enterAndExecute(name))
		os.Exit(1)
	}
	if list := os.Getenv(attemptVariable); list != "" {
		attemptAll(strings.Split(list, "\n"))
		os.Exit(0)
	}
	hosttest.Main(m)
}

func enterAndExecute(name string) error {
	runtime.LockOSThread()
	err := errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), Enter(Domain{Name: name}),
		os.Unsetenv(domainVariable))
	if err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", []string{"worker"}, os.Environ())
}

func attemptAll(list []string) {
	results := make([]string, len(list))
	for i, a := range list {
		results[i] = "ok"
		if err := try(strings.Fields(a)); err != nil {
			results[i] = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(results)
	_, _ = io.ReadAll(os.Stdin) // stay until the context has been read
}

func try(words []string) (err error) {
	switch words[0] {
	case "fifo":
		return unix.Mkfifo(words[1], 0o600)
	case "create":
		return os.WriteFile(words[1], nil, 0o600)
	case "read", "write":
		flags := map[string]int{"read": os.O_RDONLY, "write": os.O_WRONLY}[words[0]]
		f, err := os.OpenFile(words[1], flags, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case "list":
		_, err = os.ReadDir(words[1])
	case "mount":
		return unix.Mount("x", words[1], "tmpfs", 0, "")
	case "umount":
		return unix.Unmount(words[1], 0)
	case "hostname":
		return unix.Sethostname([]byte("x"))
	case "chroot":
		return unix.Chroot("/")
	case "parent":
		_, err = os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	case "permissive":
		return files.SetKernel(selinuxFS+"/enforce", "0")
	default:
		return fmt.Errorf("there is no attempt %q", words)
	}
	return err
}

// loadPolicy loads the domains of the tests, or skips the test outside of a disposable machine.
func loadPolicy(t *testing.T, domains []Domain) {
	t.Helper()
	if os.Getenv("TARE_IN_VM") == "" {
		hosttest.Missing(t, "a policy cannot be unloaded: it is loaded in a virtual machine only",
			"boot the lab VM: TestSELinuxInLab")
	}
	if err := Probe(); err != nil {
		hosttest.Missing(t, err.Error(), "boot the lab VM: TestSELinuxInLab")
	}
	text, unsupported := Source(domains)
	t.Logf("not expressible: %q", unsupported)
	binary, err := Compile(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(binary, false); err == nil || !strings.Contains(err.Error(), "cannot be undone") {
		t.Errorf("loaded though nobody said that the machine is disposable: %v", err)
	}
	if err := Load(binary, true); err != nil {
		t.Fatal(err)
	}
	if on, err := Enforces(); err != nil || !on {
		t.Errorf("enforced: %t, %v", on, err)
	}
}

func runConfined(t *testing.T, d Domain, attempts []string) (results []string, label string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Env = []string{attemptVariable + "=" + strings.Join(attempts, "\n"), domainVariable + "=" + d.Name}
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
	if err := json.NewDecoder(out).Decode(&results); err != nil {
		t.Fatalf("in %s: %v (%v)", d.Name, err, c.Wait())
	}
	if label, err = Current(c.Process.Pid); err != nil {
		t.Error(err)
	}
	if err := errors.Join(in.Close(), c.Wait()); err != nil {
		t.Error(err)
	}
	return results, label
}

// TestEveryRule proves each kind of rule: what it refuses and what it allows, under no_new_privs.
func TestEveryRule(t *testing.T) {
	dir := t.TempDir()
	mnt := filepath.Join(dir, "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	runtimeDefault, all := builtin()
	file := func(path policy.Path, access ...policy.Access) policy.Policy {
		return policy.Policy{Files: []policy.File{{Path: path, Access: access}}}
	}
	cases := []struct {
		domain           Domain
		refused, allowed []string
	}{
		{Domain{"allow", policy.Policy{}}, []string{"fifo " + dir + "/fifo", "permissive"}, []string{
			"create " + dir + "/a", "read /proc/kcore", "read /proc/partitions", "mount " + mnt, "umount " + mnt, "hostname",
			"chroot", "parent", "list /sys/kernel/security",
		}},
		{
			Domain{"read", file("/proc/partitions", policy.Read)},
			[]string{"read /proc/partitions"},
			[]string{"read /proc/stat", "read /proc/self/mounts"},
		},
		{
			Domain{"write", file("/proc/sysrq-trigger", policy.Write)},
			[]string{"write /proc/sysrq-trigger"},
			[]string{"read /proc/stat", "create " + dir + "/b"},
		},
		{
			Domain{"tree", file("/sys/kernel/security/**", policy.Read)},
			[]string{"list /sys/kernel/security", "read /sys/kernel/security/lsm"},
			[]string{"list /sys/kernel"},
		},
		{Domain{"mount", policy.Policy{Mounts: []policy.Mount{{}}}}, []string{"mount " + mnt}, []string{"hostname"}},
		{Domain{"umount", policy.Policy{Umount: true}}, []string{"umount /dev"}, []string{"hostname"}},
		{Domain{"capability", policy.Policy{Capabilities: []string{"sys_chroot"}}}, []string{"chroot"}, []string{"hostname"}},
		{
			Domain{"ptrace", policy.Policy{Ptrace: true}},
			[]string{"parent"},
			[]string{"read /proc/self/stat", "read /proc/stat"},
		},
		{Domain{"default", runtimeDefault}, []string{
			"read /proc/kcore", "write /proc/sysrq-trigger", "mount " + mnt, "parent",
			fmt.Sprintf("read /proc/%d/mem", os.Getpid()),
		}, []string{"read /proc/partitions", "hostname"}},
		{
			Domain{"all", all},
			[]string{"read /proc/kcore", "read /proc/partitions", "read /proc/self/net/arp", "hostname", "umount /dev"},
			[]string{"chroot", "create " + dir + "/c", "read /proc/self/net/dev"},
		},
	}
	var domains []Domain
	for _, c := range cases {
		domains = append(domains, c.domain)
	}
	loadPolicy(t, domains)
	for _, c := range cases {
		results, label := runConfined(t, c.domain, slices.Concat(c.refused, c.allowed))
		if label != c.domain.Context() {
			t.Errorf("%s: the kernel says %s", c.domain.Name, label)
		}
		for i, got := range results {
			switch {
			case i >= len(c.refused):
				if got != "ok" {
					t.Errorf("%s: %q must be allowed, and gave: %s", c.domain.Name, c.allowed[i-len(c.refused)], got)
				}
			case !strings.HasSuffix(got, unix.EACCES.Error()) && !strings.HasSuffix(got, unix.EPERM.Error()):
				t.Errorf("%s: %q must be refused, and gave: %s", c.domain.Name, c.refused[i], got)
			}
		}
	}
	if err := Enter(Domain{Name: "absent"}); err == nil || !strings.Contains(err.Error(), "has no such domain") {
		t.Errorf("enter a domain that is not in the policy: %v", err)
	}
}

func TestProbeSaysWhatIsMissing(t *testing.T) {
	if _, err := os.Stat(selinuxFS); err == nil {
		hosttest.Missing(t, "this kernel has SELinux", "run on one that has not")
	}
	if err := Probe(); err == nil || !strings.Contains(err.Error(), "has no SELinux") {
		t.Errorf("got %v", err)
	}
}

// TestLoadReplacesNoPolicyOfOthers loads a policy that is not tare's. It is the last test: no other could run after it.
func TestLoadReplacesNoPolicyOfOthers(t *testing.T) {
	loadPolicy(t, []Domain{{"allow", policy.Policy{}}})
	text, _ := Source(nil)
	binary, err := Compile(t.Context(), strings.ReplaceAll(text, user, "other_u"))
	if err != nil {
		t.Fatal(err)
	}
	if err := files.SetKernel(selinuxFS+"/load", string(binary)); err != nil {
		t.Fatal(err)
	}
	if own, err := Current(os.Getpid()); err != nil || !strings.HasPrefix(own, "other_u:") {
		t.Fatalf("the policy of others is not in force: %s, %v", own, err)
	}
	for what, err := range map[string]error{"probe": Probe(), "load": Load(binary, true)} {
		if err == nil || !strings.Contains(err.Error(), "does not replace it") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
