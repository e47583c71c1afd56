package design

import (
	"slices"
	"testing"
)

func TestFewer(t *testing.T) {
	with := func(id, enforcer, mode string) Treatment {
		return Treatment{ID: id, Levels: map[string]string{"enforcer": enforcer, "mode": mode}}
	}
	repeated := with("aa", "seccomp", "A")
	repeated.Control = AA
	all := []Treatment{
		with("a", "apparmor", "A"), with("s", "seccomp", "A"), with("l", "landlock", "A"), repeated,
		with("sa", "seccomp+apparmor", "A"), with("a in B", "apparmor", "B"), with("bare", "none", "A"),
		{ID: "no mode", Levels: map[string]string{"enforcer": "apparmor"}},
	}
	for level, want := range map[string][]string{
		"apparmor": nil, "apparmor+seccomp": {"a", "s"}, "apparmor+landlock+seccomp": {"sa"}, "bpf+landlock+selinux": nil,
	} {
		var got []string
		for _, x := range Fewer(with("t", level, "A"), all) {
			got = append(got, x.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("fewer than %s: %q, want %q", level, got, want)
		}
	}
}
