package bpflsm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"tare/areas/sandbox/policy"
)

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
