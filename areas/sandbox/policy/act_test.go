package policy

import (
	"net/netip"
	"testing"
)

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
