package apparmor

import (
	"strings"
	"testing"

	"tare/areas/sandbox/policy"
)

func TestProfileOfEachRule(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy policy.Policy
		want   string
	}{
		{
			"read",
			policy.Policy{Files: []policy.File{{Path: "/a b", Access: []policy.Access{policy.Read}}}},
			`deny "/a b{,/}" r,`,
		},
		{
			"write",
			policy.Policy{Files: []policy.File{{Path: "/**/runc", Access: []policy.Access{policy.Write}}}},
			`deny "/**/runc{,/}" wl,`,
		},
		{
			"both",
			policy.Policy{Files: []policy.File{{Path: "/a/**", Access: []policy.Access{policy.Write, policy.Read}}}},
			`deny "/a/**" rwl,`,
		},
		{"exec", policy.Policy{Execs: []policy.Path{"/bin/nc"}}, `deny "/bin/nc" x,`},
		{"mount", policy.Policy{Mounts: []policy.Mount{{}}}, "deny mount,"},
		{"mount type", policy.Policy{Mounts: []policy.Mount{{Type: "ext4"}}}, "deny mount fstype=ext4,"},
		{
			"mount source",
			policy.Policy{Mounts: []policy.Mount{{Type: "xfs", Source: "/dev/sd**"}}},
			`deny mount fstype=xfs "/dev/sd**",`,
		},
		{"umount", policy.Policy{Umount: true}, "deny umount,"},
		{"capability", policy.Policy{Capabilities: []string{"sys_admin"}}, "deny capability sys_admin,"},
		{"ptrace", policy.Policy{Ptrace: true}, `ptrace (trace, read) peer="p",`},
		{"nothing", policy.Policy{}, "  ptrace,\n"},
	} {
		text, unsupported := Profile("p", c.policy)
		if !strings.Contains(text, c.want) || len(unsupported) > 0 {
			t.Errorf("%s: want %q in:\n%s%q", c.name, c.want, text, unsupported)
		}
		if c.policy.Ptrace == strings.Contains(text, "  ptrace,\n") {
			t.Errorf("%s: tracing is allowed and refused:\n%s", c.name, text)
		}
	}
}

func TestProfileListsWhatItCannotExpress(t *testing.T) {
	text, unsupported := Profile("p", policy.Policy{
		Connects: []policy.Address{"169.254.169.254"},
		Files:    []policy.File{{Path: "/a[b", Access: []policy.Access{policy.Read}}, {Path: "/a\tb"}},
		Execs:    []policy.Path{"/*/x"},
		Mounts:   []policy.Mount{{Type: "ext4) options=(rw"}, {Source: `a"b`}},
	})
	for i, want := range []string{
		`files[0] ("/a[b"): it has one of`, `files[1] ("/a\tb"): the control character`, `execs[0] ("/*/x"): the only wildcard`,
		"connects[0] (169.254.169.254): AppArmor mediates", `mounts[0]: type "ext4) options=(rw"`, `mounts[1] (source "a\"b")`,
	} {
		if i >= len(unsupported) || !strings.HasPrefix(unsupported[i], want) {
			t.Errorf("want %q at %d of %q", want, i, unsupported)
		}
	}
	if allowed, _ := Profile("p", policy.Policy{}); text != allowed {
		t.Errorf("what cannot be expressed is in the profile:\n%s", text)
	}
}
