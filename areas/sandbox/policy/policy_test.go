package policy

import (
	"net/netip"
	"strings"
	"testing"

	"tare/rigs/hosttest"
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

// TestRulesOfActs: of each act the first rule is named that refuses it.
func TestRulesOfActs(t *testing.T) {
	p := Policy{
		Files: []File{
			{"/a", []Access{Read}}, {"/a", readWrite}, {"/b/**/c", []Access{Write}},
		},
		Execs:        []Path{"/bin/x", "/opt/**"},
		Connects:     []Address{"10.0.0.0/8:22", "::ffff:192.0.2.0/120", "[fd00::/8]:443"},
		Mounts:       []Mount{{Type: "overlay"}, {Source: "/dev/**"}},
		Capabilities: []string{"syslog", "net_raw"}, Umount: true, Ptrace: true,
	}
	to := func(text string) Act { return Act{Kind: Connect, Address: netip.MustParseAddrPort(text)} }
	for _, c := range []struct {
		act        Act
		text, rule string
	}{
		{Act{Path: "/a", Access: []Access{Read}}, "open /a (read)", "files[0]"},
		{Act{Path: "/a", Access: []Access{Write}}, "open /a (write)", "files[1]"},
		{Act{Path: "/b/d/c", Access: []Access{Read}}, "open /b/d/c (read)", ""},
		{Act{Path: "/b/d/c", Access: readWrite}, "open /b/d/c (read, write)", "files[2]"},
		{Act{Access: []Access{Read}}, "open a path that the kernel cannot write out (read)", ""},
		{Act{Kind: Execute, Path: "/opt/a/b"}, "execute /opt/a/b", "execs[1]"},
		{to("10.1.2.3:22"), "connect to 10.1.2.3:22", "connects[0]"},
		{to("10.1.2.3:23"), "connect to 10.1.2.3:23", ""},
		{to("192.0.2.9:80"), "connect to 192.0.2.9:80", "connects[1]"},
		{to("[::ffff:192.0.2.9]:80"), "connect to [::ffff:192.0.2.9]:80", "connects[1]"},
		{to("[fd12::1]:443"), "connect to [fd12::1]:443", "connects[2]"},
		{Act{Kind: MountIt, Path: "x", Name: "overlay"}, "mount x of type overlay", "mounts[0]"},
		{Act{Kind: MountIt, Path: "/dev/sda", Name: "ext4"}, "mount /dev/sda of type ext4", "mounts[1]"},
		{Act{Kind: UseCapability, Name: "net_raw"}, "use the capability net_raw", "capabilities[1]"},
		{Act{Kind: UseCapability, Name: CapabilityName(99)}, "use the capability 99", ""},
		{Act{Kind: Unmount}, "unmount", "umount"},
		{Act{Kind: Trace}, "trace a process", "ptrace"},
	} {
		if got := c.act.String(); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
		if got := p.Rule(c.act); got != c.rule {
			t.Errorf("%s: refused by %q, want %q", c.text, got, c.rule)
		}
	}
	if rule := (Policy{}).Rule(Act{Kind: Unmount}); rule != "" || CapabilityName(21) != "sys_admin" {
		t.Errorf("an empty policy refuses to unmount by %q; capability 21 is %s", rule, CapabilityName(21))
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
