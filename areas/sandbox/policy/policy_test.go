package policy

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPathMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/proc/**/mounts", "/proc/1/mounts", true},
		{"/proc/**/mounts", "/proc/1/task/2/mounts", true},
		{"/proc/**/mounts", "/proc/mounts", false}, // the slashes of prefix and suffix are two
		{"/proc/**/mounts", "/proc/1/mountsx", false},
		{"/etc/shadow", "/etc/shadow", true},
		{"/etc/shadow", "/etc/shadow-", false},
		{"/sys/firmware/**", "/sys/firmware/efi", true},
		{"/sys/firmware/**", "/sys/firmware", false},
		{"/**/runc", "/usr/bin/runc", true},
		{"/**/runc", "/runc", false},
	} {
		if got := Path(c.pattern).Matches(c.path); got != c.want {
			t.Errorf("%s matches %s: %t, want %t", c.pattern, c.path, got, c.want)
		}
	}
}

func TestAddressParse(t *testing.T) {
	for _, c := range []struct {
		text, prefix string
		port         uint16
	}{
		{"169.254.169.254", "169.254.169.254/32", 0},
		{"10.0.0.0/8", "10.0.0.0/8", 0},
		{"10.0.0.0/8:22", "10.0.0.0/8", 22},
		{"1.2.3.4:65535", "1.2.3.4/32", 65535},
		{"::1", "::1/128", 0},
		{"[fd00::/8]:443", "fd00::/8", 443},
		{"[::1]", "::1/128", 0},
		{"1.2.3.4:0", "", 0},
		{"1.2.3.4:65536", "", 0},
		{"1.2.3.4:", "", 0},
		{"1.2.3.4:2x", "", 0},
		{"host", "", 0},
		{"", "", 0},
		{"10.0.0.1/8", "", 0},
		{"fe80::1%eth0", "", 0},
		{"[::1", "", 0},
		{"[::1]443", "", 0},
	} {
		prefix, port, err := Address(c.text).Parse()
		if c.prefix == "" {
			if err == nil {
				t.Errorf("%q: got %s port %d, want an error", c.text, prefix, port)
			}
			continue
		}
		if err != nil || prefix != netip.MustParsePrefix(c.prefix) || port != c.port {
			t.Errorf("%q: got %s port %d, %v, want %s port %d", c.text, prefix, port, err, c.prefix, c.port)
		}
	}
}

func TestBuiltinPoliciesAreValid(t *testing.T) {
	rules := EnhanceProtect()
	if len(rules) != 10 {
		t.Errorf("there are %d rules, want 10", len(rules))
	}
	all := RuntimeDefault()
	for _, r := range rules {
		if r.Policy.Empty() {
			t.Errorf("%s refuses nothing", r.Name)
		}
		all = all.And(r.Policy)
	}
	if wrong := all.Validate(); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	if n := len(all.Capabilities); n != len(capabilities)-14 {
		t.Errorf("%d capabilities are refused, want all but the 14 of Docker's default", n)
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "it is empty",
		"{}":                               "it refuses nothing",
		"file: []":                         "field file not found",
		"execs: [nc]":                      `execs[0]: "nc" is not an absolute path`,
		"execs: [/a/*/b]":                  "no other wildcard",
		"files: [{path: /a}]":              "access is missing",
		"capabilities: [cap_sysadmin]":     "there is no capability",
		"mounts: [{source: /dev/**/a/**}]": "at most one **",
		"mounts: [{type: a b}]":            "not the name of a file system",
		"connects: [10.0.0.1/8]":           "write 10.0.0.0/8",
		"umount: true\n---\n{}":            "one YAML document",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
	p, err := Parse([]byte("files:\n- {path: /etc/shadow, access: [read]}\nptrace: true\n"))
	if err != nil || len(p.Files) != 1 || !p.Ptrace {
		t.Errorf("got %+v, %v", p, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("files:\n- {path: /proc/**/mem, access: [read, write]}\nconnects: ['[fd00::/8]:443']\n")
	f.Add("capabilities: [sys_admin]\numount: true\nmounts: [{type: proc}]")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if wrong := p.Validate(); len(wrong) > 0 || p.Empty() {
			t.Errorf("accepted %q: %v", text, wrong)
		}
	})
}
