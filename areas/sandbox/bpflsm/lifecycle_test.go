package bpflsm

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
	"tare/rigs/hosttest"
)

// TestAttachAndDetachManyTimes: what is attached refuses, what is detached does not.
func TestAttachAndDetachManyTimes(t *testing.T) {
	times := 3
	if os.Getenv("TARE_IN_VM") != "" {
		times = 200
	}
	start := time.Now()
	p := load(t, ByMountNamespace)
	t.Logf("loading took %v", time.Since(start))
	secret := filepath.Join(hookFiles(t), "secret")
	if err := p.SetRules(0, fileRule(secret, policy.Read)); err != nil {
		t.Fatal(err)
	}
	w := confined(t, p, 0)
	var attaching, detaching time.Duration
	for i := range times {
		start := time.Now()
		if err := p.Attach(); err != nil {
			t.Fatalf("attaching for the %dth time: %v", i+1, err)
		}
		attaching += time.Since(start)
		w.wantRefused("read", secret)
		start = time.Now()
		if err := errors.Join(p.Detach(), p.Detach()); err != nil {
			t.Fatalf("detaching for the %dth time: %v", i+1, err)
		}
		detaching += time.Since(start)
		w.wantAllowed("read", secret)
	}
	t.Logf("attaching took %v, detaching %v, the means of %d", attaching/time.Duration(times),
		detaching/time.Duration(times), times)
	if n := len(ours(t)); n != len(hooks) {
		t.Errorf("%d programs and links are in the kernel, want the %d programs", n, len(hooks))
	}
}

// ours lists the programs in the kernel that have our names, and their links.
func ours(t testing.TB) (all []string) {
	t.Helper()
	names := map[ebpf.ProgramID]string{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was removed since
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := p.Info()
		if err := errors.Join(err, p.Close()); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(info.Name, "tare_") {
			names[id] = info.Name
			all = append(all, info.Name)
		}
	}
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		if info, err := it.Link.Info(); err == nil && names[info.Program] != "" {
			all = append(all, "link of "+names[info.Program])
		}
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestKernelFreesAllWhenTheHolderIsKilled enumerates programs and links after kill -9.
func TestKernelFreesAllWhenTheHolderIsKilled(t *testing.T) {
	if err := load(t, ByMountNamespace).Close(); err != nil {
		t.Fatal(err)
	}
	before := len(ours(t))
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + roleHolder}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	if n := len(ours(t)) - before; n != 2*len(hooks) {
		t.Fatalf("the holder holds %d programs and links, want %d", n, 2*len(hooks))
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(30 * time.Second)
	for len(ours(t)) > before && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if left := ours(t); len(left) > before {
		t.Errorf("left after kill -9: %v", left)
	}
}

// TestTwoEnforcers: what one set of programs refuses, another cannot allow.
func TestTwoEnforcers(t *testing.T) {
	secret := filepath.Join(hookFiles(t), "secret")
	both := []*Programs{attached(t, ByMountNamespace), attached(t, ByMountNamespace)}
	w := confined(t, both[0], 0)
	key, err := namespaceKey(fmt.Sprintf("/proc/%d/ns/mnt", w.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := putProfile(both[1].collection.Maps[profilesMap], key, 0); err != nil {
		t.Fatal(err)
	}
	for i, rules := range []policy.Policy{fileRule(secret, policy.Read), {}} {
		for _, swap := range []int{0, 1} {
			if err := errors.Join(
				both[swap].SetRules(0, fileRule(secret, policy.Read)), both[1-swap].SetRules(0, rules),
			); err != nil {
				t.Fatal(err)
			}
			before := refused(t, both[0])[FileOpen] + refused(t, both[1])[FileOpen]
			w.wantRefused("read", secret)
			if n := refused(t, both[0])[FileOpen] + refused(t, both[1])[FileOpen] - before; n != 1 {
				t.Errorf("case %d: the two counted %d refusals of one access, want 1", i, n)
			}
		}
	}
}

// TestStats: runs are counted only while they are wanted.
func TestStats(t *testing.T) {
	p := attached(t, ByMountNamespace)
	secret := filepath.Join(hookFiles(t), "secret")
	w := confined(t, p, 0)
	runs := func() ProgramStats {
		t.Helper()
		w.wantAllowed("read", secret)
		all, err := p.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	idle := runs()
	counting, err := CountRuns()
	if err != nil {
		t.Fatal(err)
	}
	counted := runs()
	if err := counting.Close(); err != nil {
		t.Fatal(err)
	}
	after := runs()
	if idle.Hook != FileOpen || counted.Runs <= idle.Runs || counted.Time <= idle.Time {
		t.Errorf("got %+v, then while runs were counted %+v", idle, counted)
	}
	if again := runs(); again.Runs != after.Runs {
		t.Errorf("runs are still counted: %+v, then %+v", after, again)
	}
}

func TestMemory(t *testing.T) {
	p := load(t, ByMountNamespace)
	m, err := p.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("programs %d B, maps %d B", m.Programs, m.Maps)
	if least := uint64(Slots * (2*16_900 + 128*40)); m.Maps < least || m.Maps > 4*least || m.Programs < 8*1024 {
		t.Errorf("got %+v: want more than %d B of maps and 8 KiB of programs", m, least)
	}
}

func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

func TestListOfLSMs(t *testing.T) {
	err := checkList("lockdown,capability,landlock\n")
	if err == nil || !strings.Contains(err.Error(), "lists lockdown,capability,landlock") ||
		!strings.Contains(hintOf(err), "lsm=lockdown,capability,landlock,bpf,") {
		t.Errorf("got %v: %s", err, hintOf(err))
	}
	if err := checkList("lockdown,capability,bpf,landlock"); err != nil {
		t.Error(err)
	}
}

func TestCauses(t *testing.T) {
	hosttest.NeedsRoot(t)
	advice := fmt.Errorf("program x: load program: %w (MEMLOCK may be too low)", unix.EPERM)
	for _, c := range []struct {
		err                error
		want, hint, hideme string
	}{
		{noPrograms(advice), "does not let root load BPF programs for the LSM: oper", "container", "MEMLOCK"},
		{noPrograms(unix.ENOSYS), "no bpf(2)", "CONFIG_BPF_SYSCALL", "-"},
		{noPrograms(unix.ENOMEM), "no memory", "memory.max", "-"},
		{noPrograms(ebpf.ErrNotSupported), "cannot run our BPF programs", "Linux " + oldest, "-"},
		{noPrograms(&ebpf.VerifierError{Cause: unix.EACCES}), "cannot run our BPF programs", "CONFIG_BPF_LSM", "-"},
		{noPrograms(unix.EINVAL), "invalid argument", "Linux " + oldest, "-"},
		{noMemlock(unix.EPERM), "RLIMIT_MEMLOCK", "ulimit -l", "-"},
		{noAttachment(Mount, unix.EPERM), "attach a BPF program to sb_mount", "as root", "-"},
		{noAttachment(Mount, unix.E2BIG), "too long", "other software", "-"},
		{noAttachment(Mount, unix.EBUSY), "busy", "trampolines", "-"},
	} {
		if !strings.Contains(c.err.Error(), c.want) || !strings.Contains(hintOf(c.err), c.hint) ||
			strings.Contains(c.err.Error(), c.hideme) {
			t.Errorf("got %q with the hint %q, want %q with %q", c.err, hintOf(c.err), c.want, c.hint)
		}
	}
}

// TestLoadWithoutRoot: another user is told to run tare as root.
func TestLoadWithoutRoot(t *testing.T) {
	hosttest.NeedsRoot(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + roleLoader}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		hosttest.Missing(t, fmt.Sprintf("another user may not execute this program: %v", err),
			"have TMPDIR in a folder that all users may enter")
	}
	if want := "load BPF programs for the LSM without root: operation not permitted: run tare as root\n"; err != nil ||
		!strings.HasSuffix(string(out), want) {
		t.Errorf("got %v, %q, want %q", err, out, want)
	}
}

// TestLoadSaysWhatTheKernelLacks shows, where the kernel refuses, that the error says why.
func TestLoadSaysWhatTheKernelLacks(t *testing.T) {
	p, err := Load(Options{})
	if err == nil {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	t.Logf("%v: %s", err, hintOf(err))
	if hintOf(err) == "" {
		t.Errorf("no hint says what to do: %v", err)
	}
}
