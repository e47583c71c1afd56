package bpflsm

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
	"tare/rigs/hosttest"
)

// TestSlotsDoNotMix: each process has the rules of its own slot, the last one too.
func TestSlotsDoNotMix(t *testing.T) {
	p := attached(t, ByMountNamespace)
	dir := hookFiles(t)
	secret, runc := filepath.Join(dir, "secret"), filepath.Join(dir, "a/runc")
	if err := p.SetRules(0, fileRule(secret, policy.Read)); err != nil {
		t.Fatal(err)
	}
	if err := p.SetRules(Slots-1, fileRule(runc, policy.Read)); err != nil {
		t.Fatal(err)
	}
	first, last := confined(t, p, 0), confined(t, p, Slots-1)
	first.wantRefused("read", secret)
	first.wantAllowed("read", runc)
	last.wantRefused("read", runc)
	last.wantAllowed("read", secret)
	if err := p.SetRules(0, policy.Policy{}); err != nil {
		t.Fatal(err)
	}
	first.wantAllowed("read", secret)
	last.wantRefused("read", runc)
}

// TestFullSlot: the last of 64 and of 128 rules of each kind refuses, after near misses.
func TestFullSlot(t *testing.T) {
	p := attached(t, ByMountNamespace)
	loopback(t)
	dir := hookFiles(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, n := range []int{64, MaxRules} {
		var pol policy.Policy
		for i := range n - 1 {
			pol = pol.And(fileRule(fmt.Sprintf("%s%03d", at("secret"), i), policy.Read, policy.Write)).And(policy.Policy{
				Execs:    []policy.Path{policy.Path(fmt.Sprintf("%s%03d", at("prog"), i))},
				Connects: []policy.Address{policy.Address(fmt.Sprintf("127.0.0.2:%d", 1000+i))},
				Mounts:   []policy.Mount{{Source: policy.Path(fmt.Sprintf("xdev%03d", i))}},
			})
		}
		pol = pol.And(fileRule(at("secret"), policy.Read, policy.Write)).And(policy.Policy{
			Execs: []policy.Path{policy.Path(at("prog"))}, Connects: []policy.Address{"127.0.0.2:9"},
			Mounts: []policy.Mount{{Source: "xdev"}},
		})
		if err := p.SetRules(2, pol); err != nil {
			t.Fatal(err)
		}
		w := confined(t, p, 2)
		for _, a := range []access{
			{"read", at("secret")}, {"exec", at("prog")}, {"connect", "127.0.0.2:9"}, {"mount", "xdev", "tmpfs", at("a")},
		} {
			w.wantRefused(a...)
		}
		for _, a := range []access{
			{"read", at("secret2")}, {"exec", at("prog2")}, {"connect", "127.0.0.2:10"}, {"mount", "xde", "tmpfs", at("a")},
		} {
			w.wantAllowed(a...)
		}
	}
}

// TestRejectedRulesChangeNothing: the rules before a policy that cannot be enforced remain.
func TestRejectedRulesChangeNothing(t *testing.T) {
	p := attached(t, ByMountNamespace)
	secret := filepath.Join(hookFiles(t), "secret")
	if err := p.SetRules(0, fileRule(secret, policy.Read)); err != nil {
		t.Fatal(err)
	}
	bad := policy.Policy{Mounts: []policy.Mount{{Type: strings.Repeat("t", maxType)}}}
	if err := p.SetRules(0, bad); err == nil || err.Error() != Express(bad).Error() {
		t.Errorf("got %v, want %v", err, Express(bad))
	}
	confined(t, p, 0).wantRefused("read", secret)
}

// TestByCgroup: the processes of a control group are confined until its profile is forgotten.
func TestByCgroup(t *testing.T) {
	p := attached(t, ByCgroup)
	secret := filepath.Join(hookFiles(t), "secret")
	dir := fmt.Sprintf("/sys/fs/cgroup/tare-bpflsm-test-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		hosttest.Missing(t, fmt.Sprintf("no control group can be made: %v", err), hosttest.Root)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // nothing to lose
	t.Run("", func(t *testing.T) {
		var s unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &s); err != nil {
			t.Fatal(err)
		}
		attr := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
		w := start(t, attr, roleEnv+"="+roleWorker)
		free := unconfined(t)
		if err := p.SetRules(4, fileRule(secret, policy.Read)); err != nil {
			t.Fatal(err)
		}
		w.wantAllowed("read", secret)
		if err := enrollCgroup(profilesID(t, p), 4, s.Ino); err != nil {
			t.Fatal(err)
		}
		w.wantRefused("read", secret)
		free.wantAllowed("read", secret)
		if err := p.Forget(s.Ino); err != nil {
			t.Fatal(err)
		}
		w.wantAllowed("read", secret)
		for _, err := range []error{second(p.ForgetEnded()), second(p.Confined(w.cmd.Process.Pid))} {
			if err == nil || !strings.Contains(err.Error(), "control groups") {
				t.Errorf("got %v, want an error that names control groups", err)
			}
		}
	})
}

// enrollCgroup confines the processes of a control group by the rules of a slot. The id is the inode number of the
// control group's folder. The programs must have been loaded with ByCgroup.
func enrollCgroup(profilesID, slot uint32, cgroup uint64) error {
	m, err := openProfiles(profilesID, slot)
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // nothing to lose
	return putProfile(m, cgroup, slot)
}

func second[T any](_ T, err error) error { return err }

// TestForgetEnded: the profiles of ended processes go, those of others stay.
func TestForgetEnded(t *testing.T) {
	p := attached(t, ByMountNamespace)
	secret := filepath.Join(hookFiles(t), "secret")
	if err := p.SetRules(0, fileRule(secret, policy.Read)); err != nil {
		t.Fatal(err)
	}
	w := confined(t, p, 0)
	ended := start(t, nil, roleEnv+"="+roleShim, fmt.Sprintf("%s=%d 0", enrollEnv, profilesID(t, p)))
	ended.wantRefused("read", secret)
	if n, err := p.ForgetEnded(); n != 0 || err != nil {
		t.Errorf("while both live: %d, %v, want 0", n, err)
	}
	if err := ended.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = ended.cmd.Wait()
	if n, err := p.ForgetEnded(); n != 1 || err != nil {
		t.Errorf("after the end of one: %d, %v, want 1", n, err)
	}
	w.wantRefused("read", secret)
	if err := second(p.Confined(ended.cmd.Process.Pid)); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v of an ended process", err)
	}
	if err := second(p.Confined(os.Getpid())); err == nil || !strings.Contains(err.Error(), "has no BPF profile") {
		t.Errorf("got %v of an unconfined process", err)
	}
}

// TestEnrollErrors: what a process may not enrol in is named.
func TestEnrollErrors(t *testing.T) {
	p := load(t, ByCgroup)
	id := profilesID(t, p)
	info, err := p.collection.Maps[filesMap].Info()
	if err != nil {
		t.Fatal(err)
	}
	other, _ := info.ID()
	for range 2 { // replacing a profile takes no room
		for i := range MaxProfiles {
			if err := enrollCgroup(id, 1, uint64(i)+1<<40); err != nil {
				t.Fatal(err)
			}
		}
	}
	for want, err := range map[string]error{
		"there is no BPF map 4294967295": enrollCgroup(1<<32-1, 0, 1),
		`it is "tare_files"`:             enrollCgroup(uint32(other), 0, 1),
		"bpf has 32 sets of rules":       enrollCgroup(id, Slots, 1),
		"all 1024 profiles are in use":   enrollCgroup(id, 0, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestDecisionsHoldUnderPreemption: processes that share a processor do not get each other's decisions, where the
// kernel may preempt programs (preempt=full).
func TestDecisionsHoldUnderPreemption(t *testing.T) {
	p := attached(t, ByMountNamespace)
	dir := hookFiles(t)
	if err := p.SetRules(0, fileRule(filepath.Join(dir, "secret"), policy.Read)); err != nil {
		t.Fatal(err)
	}
	const n = 50_000
	unlucky, lucky := confined(t, p, 0), confined(t, p, 0)
	unlucky.send("repeat", strconv.Itoa(n), "read", filepath.Join(dir, "secret"))
	lucky.send("repeat", strconv.Itoa(n), "read", filepath.Join(dir, "secret2"))
	if got := unlucky.receive(); got != n {
		t.Errorf("%d of %d forbidden accesses were refused", got, n)
	}
	if got := lucky.receive(); got != 0 {
		t.Errorf("%d of %d allowed accesses were refused", got, n)
	}
}
