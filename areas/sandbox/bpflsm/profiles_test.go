package bpflsm

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
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

// TestObjectIsBuiltFromItsSource builds the object by the lines of "go generate" and compares programs and maps.
func TestObjectIsBuiltFromItsSource(t *testing.T) {
	requireClang(t)
	dir := t.TempDir()
	for _, name := range []string{"enforcer.bpf.c", "kernel.h", "rules.h"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), source, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("bpflsm.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^//go:generate (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 2 {
		t.Fatalf("there are %d lines of go:generate, want 2", len(commands))
	}
	for _, c := range commands {
		args := strings.Fields(c[1])
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c[1], err, out)
		}
	}
	built, err := ebpf.LoadCollectionSpec(filepath.Join(dir, "enforcer.bpf.o"))
	if err != nil {
		t.Fatal(err)
	}
	committed, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describe(built), describe(committed)); diff != "" {
		t.Errorf("the object is not built from its source: run go generate (-built +committed)\n%s", diff)
	}
}

func requireClang(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"clang", "llvm-strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			hosttest.Missing(t, fmt.Sprintf("the BPF programs cannot be compiled: %v", err), "apt-get install clang")
		}
	}
	version, err := exec.CommandContext(t.Context(), "clang", "-dumpversion").Output()
	if err != nil {
		t.Fatal(err)
	}
	if major, _, _ := strings.Cut(strings.TrimSpace(string(version)), "."); major != ClangVersion {
		hosttest.Missing(t, fmt.Sprintf("clang is of version %s", major), "have version "+ClangVersion)
	}
}

// describe returns what of an object does not depend on the folder and the patch version of clang.
func describe(spec *ebpf.CollectionSpec) map[string]any {
	all := map[string]any{}
	for name, p := range spec.Programs {
		var lines []string
		for _, i := range p.Instructions {
			line := fmt.Sprintf("%s: op %d dst %s src %s offset %d constant %d ref %s", i.Symbol(), i.OpCode, i.Dst, i.Src,
				i.Offset, i.Constant, i.Reference())
			if r := btf.CORERelocationMetadata(&i); r != nil {
				line += " " + r.String()
			}
			lines = append(lines, line)
		}
		all[name] = append(lines, p.SectionName, p.License)
	}
	for name, m := range spec.Maps {
		content := ""
		if len(m.Contents) > 0 && name == ".rodata" {
			content = fmt.Sprint(m.Contents)
		}
		all[name] = fmt.Sprint(m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags, content)
	}
	return all
}

// TestLayoutIsThatOfTheObject compares the values of Go with those of C.
func TestLayoutIsThatOfTheObject(t *testing.T) {
	spec, err := loadSpec()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{
		profilesMap: uint32(0), filesMap: pathRules{}, execsMap: pathRules{}, connectsMap: addressRules{},
		mountsMap: mountRules{}, switchesMap: switches{}, refusedMap: uint64(0),
	} {
		if got, want := int(spec.Maps[name].ValueSize), binary.Size(value); got != want {
			t.Errorf("%s has values of %d bytes, want %d", name, got, want)
		}
	}
	for name, want := range map[string]int{
		profilesMap: MaxProfiles, filesMap: Slots, execsMap: Slots, connectsMap: Slots, mountsMap: Slots,
		switchesMap: Slots, refusedMap: lostCounter + 1,
	} {
		if got := int(spec.Maps[name].MaxEntries); got != want {
			t.Errorf("%s has %d entries, want %d", name, got, want)
		}
	}
	for _, h := range hooks {
		if s := spec.Programs[h.program]; s == nil || s.AttachTo != string(h.hook) {
			t.Errorf("there is no program %s of %s", h.program, h.hook)
		}
	}
	if len(hooks) != lostCounter || binary.Size(event{}) != 4+4+16+maxType+4096 {
		t.Errorf("%d hooks, and events of %d bytes", len(hooks), binary.Size(event{}))
	}
	if len(spec.Programs) != len(hooks) {
		t.Errorf("the object has %d programs, want %d", len(spec.Programs), len(hooks))
	}
}

func TestExpress(t *testing.T) {
	long := "/" + strings.Repeat("x", MaxPart)
	many := policy.Policy{}
	for i := range MaxRules + 1 {
		many.Connects = append(many.Connects, policy.Address(fmt.Sprintf("10.0.0.%d", i)))
		many.Execs = append(many.Execs, policy.Path(fmt.Sprintf("/bin/%d", i)))
		many.Files = append(many.Files, policy.File{Path: "/a", Access: []policy.Access{policy.Read}})
		many.Mounts = append(many.Mounts, policy.Mount{})
	}
	for _, c := range []struct {
		policy policy.Policy
		want   string
	}{
		{fileRule(long, policy.Read), "files[0]: \"" + long + "\": bpf compares at most 64 bytes before **, not 65"},
		{fileRule("/**"+long, policy.Read), "bpf compares at most 64 bytes after **, not 65"},
		{policy.Policy{Execs: []policy.Path{"/a", policy.Path(long)}}, "execs[1]: "},
		{policy.Policy{Mounts: []policy.Mount{{Source: policy.Path(long)}}}, "mounts[0]: source "},
		{policy.Policy{Mounts: []policy.Mount{{Type: strings.Repeat("t", 32)}}}, "bpf compares at most 31 bytes, not 32"},
		{policy.Policy{Connects: []policy.Address{"host"}}, "connects[0]: \"host\" is not an IP address"},
		{policy.Policy{Capabilities: []string{"cap_x"}}, "capabilities[0]: there is no capability"},
		{policy.Policy{Connects: many.Connects}, "connects: bpf takes at most 128 rules of a kind, not 129"},
		{policy.Policy{Execs: many.Execs}, "execs: bpf takes at most 128"},
		{policy.Policy{Files: many.Files}, "files: bpf takes at most 128"},
		{policy.Policy{Mounts: many.Mounts}, "mounts: bpf takes at most 128"},
		{fileRule(long[:MaxPart]+"**"+long[:MaxPart], policy.Read), ""},
		{policy.Policy{Connects: many.Connects[1:], Execs: many.Execs[1:], Files: many.Files[1:]}, ""},
		{policy.Policy{}, ""},
	} {
		err := Express(c.policy)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestExpressBuiltinPolicies(t *testing.T) {
	all := policy.RuntimeDefault()
	for _, r := range policy.EnhanceProtect() {
		all = all.And(r.Policy)
	}
	r, err := compile(all)
	if err != nil {
		t.Fatal(err)
	}
	if r.files.Count != 21 || r.connects.Count != 2 || r.mounts.Count != 1 || r.switches.Umount != 1 {
		t.Errorf("got %d files, %d connects, %d mounts, umount %d, want 21, 2, 1, 1", r.files.Count, r.connects.Count,
			r.mounts.Count, r.switches.Umount)
	}
	for _, c := range []struct {
		name string
		want bool
	}{{"sys_admin", true}, {"checkpoint_restore", true}, {"chown", false}} {
		n, err := policy.CapabilityNumber(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.switches.Capabilities>>n&1 == 1; got != c.want {
			t.Errorf("%s is refused: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestSetRulesChecksTheSlot(t *testing.T) {
	for _, slot := range []uint32{Slots, 1 << 31} {
		err := new(Programs).SetRules(slot, policy.Policy{})
		if err == nil || !strings.Contains(err.Error(), "bpf has 32 sets of rules") {
			t.Errorf("slot %d: got %v", slot, err)
		}
	}
}

// matches is begins_alike and rest_matches of enforcer.bpf.c.
func (r pathRule) matches(path string) bool {
	n, m := int(r.PrefixLength), int(r.SuffixLength)
	for i := 0; i < MaxPart && i < n; i++ {
		if i >= len(path) || r.Prefix[i] != path[i] {
			return false
		}
	}
	if r.Exact == 1 {
		return len(path) == n
	}
	if len(path) < n+m {
		return false
	}
	for i := 0; i < MaxPart && i < m; i++ {
		if r.Suffix[i] != path[len(path)-m+i] {
			return false
		}
	}
	return true
}

// FuzzCompiledPathMatches compares compiled rules with the patterns that they come from.
func FuzzCompiledPathMatches(f *testing.F) {
	f.Add("/proc/**/mounts", "/proc/1/mounts")
	f.Add("/proc/**/mounts", "/proc/mounts")
	f.Add("/etc/shadow", "/etc/shadow-")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		r, err := compilePath(policy.Path(pattern))
		if err != nil {
			prefix, suffix, _ := policy.Path(pattern).Parts()
			if len(prefix) <= MaxPart && len(suffix) <= MaxPart {
				t.Errorf("%q: %v", pattern, err)
			}
			return
		}
		if got, want := r.matches(path), policy.Path(pattern).Matches(path); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, path, got, want)
		}
	})
}
