package bpflsm

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
	"tare/internal/files"
)

// access is what a worker tries.
type access []string

// A hookCase proves a policy: accesses that it must refuse to a confined worker only, and some that it must not refuse.
type hookCase struct {
	name             string
	policy           policy.Policy
	hook             Hook
	refused, allowed []access
}

// hookFiles makes the files and folders of the hook tests.
func hookFiles(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"secret": nil, "secret2": nil, "secre": nil, "a/runc": nil, "b/c/runc": nil, "b/runcx": nil, "prog": self,
		"prog2": self,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := files.WriteProgram(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fileRule(path string, access ...policy.Access) policy.Policy {
	return policy.Policy{Files: []policy.File{{Path: policy.Path(path), Access: access}}}
}

func hookCases(dir, pid string) []hookCase {
	at := func(name string) string { return filepath.Join(dir, name) }
	mount := func(m policy.Mount) policy.Policy { return policy.Policy{Mounts: []policy.Mount{m}} }
	connect := func(a ...policy.Address) policy.Policy { return policy.Policy{Connects: a} }
	return []hookCase{
		{
			"read", fileRule(at("secret"), policy.Read), FileOpen,
			[]access{{"read", at("secret")}, {"append", at("secret")}, {"read", at("a/../secret")}},
			[]access{{"write", at("secret")}, {"read", at("secret2")}, {"read", at("secre")}},
		},
		{
			"write", fileRule(at("**"), policy.Write), FileOpen,
			[]access{{"write", at("secret")}, {"append", at("a/runc")}},
			[]access{{"read", at("secret")}},
		},
		{
			"suffix", fileRule("/**/runc", policy.Read, policy.Write), FileOpen,
			[]access{{"read", at("a/runc")}, {"write", at("b/c/runc")}},
			[]access{{"read", at("b/runcx")}, {"read", at("secret")}},
		},
		{
			"executing is not reading", fileRule(at("prog"), policy.Read), FileOpen,
			[]access{{"read", at("prog")}},
			[]access{{"exec", at("prog")}},
		},
		{
			"exec",
			policy.Policy{Execs: []policy.Path{policy.Path(at("prog"))}},
			Exec,
			[]access{{"exec", at("prog")}},
			[]access{{"exec", at("prog2")}, {"read", at("prog")}},
		},
		{
			"connect", connect("127.0.0.2", "127.1.0.0/16:53"), Connect,
			[]access{
				{"connect", "127.0.0.2:1"}, {"connect", "127.1.2.3:53"}, {"connect", "[::ffff:127.0.0.2]:1"},
			},
			[]access{
				{"connect", "127.0.0.3:1"}, {"connect", "127.1.2.3:54"}, {"connect", "127.2.2.3:53"}, {"connect", "[::1]:53"},
			},
		},
		{
			"connect by IPv6", connect("::1", "[::ffff:127.9.0.0/112]:7"), Connect,
			[]access{{"connect", "[::1]:9"}, {"connect", "127.9.0.1:7"}},
			[]access{{"connect", "127.0.0.1:9"}, {"connect", "127.9.0.1:8"}},
		},
		{
			"connect by any IPv6", connect("[::/0]:9"), Connect,
			[]access{{"connect", "[::1]:9"}},
			[]access{{"connect", "127.0.0.1:9"}, {"connect", "[::1]:8"}},
		},
		{
			"capability",
			policy.Policy{Capabilities: []string{"sys_chroot"}},
			Capable,
			[]access{{"chroot"}},
			[]access{{"mount", "m", "tmpfs", at("a")}},
		},
		{
			"another capability",
			policy.Policy{Capabilities: []string{"sys_ptrace", "checkpoint_restore"}},
			"",
			nil,
			[]access{{"chroot"}},
		},
		{
			"any mount", mount(policy.Mount{}), Mount,
			[]access{{"mount", "m", "tmpfs", at("a")}, {"mount", "", "proc", at("b")}},
			nil,
		},
		{
			"mount source", mount(policy.Mount{Source: "xdev**1"}), Mount,
			[]access{{"mount", "xdev1", "tmpfs", at("a")}, {"mount", "xdev21", "tmpfs", at("a")}},
			[]access{{"mount", "xde1", "tmpfs", at("a")}, {"mount", "xdev2", "tmpfs", at("a")}},
		},
		{
			"mount type", mount(policy.Mount{Type: "tmpfs"}), Mount,
			[]access{{"mount", "m", "tmpfs", at("a")}},
			[]access{{"mount", "m", "proc", at("a")}},
		},
		{
			"mount source and type", mount(policy.Mount{Source: "m", Type: "tmpfs"}), Mount,
			[]access{{"mount", "m", "tmpfs", at("a")}},
			[]access{{"mount", "m", "proc", at("a")}, {"mount", "n", "tmpfs", at("a")}},
		},
		{"umount", policy.Policy{Umount: true}, Umount, []access{{"mount", "m", "tmpfs", at("b")}}, nil},
		{
			"ptrace",
			policy.Policy{Ptrace: true},
			PtraceAccess,
			[]access{{"seize", pid}},
			[]access{{"read", "/proc/self/mem"}, {"read", at("secret")}},
		},
		{"ptrace of itself by its parent", policy.Policy{Ptrace: true}, PtraceTraced, []access{{"traced"}}, nil},
	}
}

// TestHooks proves for each hook that it refuses what the rules name to a confined process, and only that, and that
// it refuses nothing to others.
func TestHooks(t *testing.T) {
	p := attached(t, ByMountNamespace)
	loopback(t)
	dir := hookFiles(t)
	free, victim := unconfined(t), unconfined(t)
	for _, c := range hookCases(dir, strconv.Itoa(victim.cmd.Process.Pid)) {
		t.Run(c.name, func(t *testing.T) {
			if err := p.SetRules(3, c.policy); err != nil {
				t.Fatal(err)
			}
			w := confined(t, p, 3)
			before := refused(t, p)
			for _, a := range c.refused {
				w.wantRefused(a...)
			}
			if n := refused(t, p)[c.hook] - before[c.hook]; c.hook != "" && int(n) != len(c.refused) {
				t.Errorf("%s counted %d refusals, want %d", c.hook, n, len(c.refused))
			}
			for _, a := range c.allowed {
				w.wantAllowed(a...)
			}
			free.t = t
			for _, a := range append(c.refused, c.allowed...) {
				free.wantAllowed(a...)
			}
		})
	}
}

func refused(t testing.TB, p *Programs) map[Hook]uint64 {
	t.Helper()
	n, err := p.Refused()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// loopback brings the loopback interface up, which it is on all hosts but a new machine.
func loopback(t testing.TB) {
	t.Helper()
	if os.Getenv("TARE_IN_VM") == "" {
		return
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	request, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
}

// TestEventsAreActs: what the programs report is told in terms of rules.
func TestEventsAreActs(t *testing.T) {
	number := uint32(2)<<16 | uint32(binary.NativeEndian.Uint16([]byte{0, 80})) // the port as in a packet
	event4 := event{Hook: 2, Number: number, Address: [16]byte{10, 0, 0, 1}}
	if a := event4.act(); a.Kind != policy.Connect || a.Address != netip.MustParseAddrPort("10.0.0.1:80") {
		t.Errorf("got %+v", a)
	}
	event6 := event{Hook: 2, Number: 10 << 16, Address: netip.MustParseAddr("fd00::1").As16()}
	if a := event6.act(); a.Address.Addr() != netip.MustParseAddr("fd00::1") {
		t.Errorf("got %+v", a)
	}
	file := event{Number: fmodeRead | fmodeWrite}
	copy(file.Path[:], "/etc/x\x00left over")
	mount := event{Hook: 4}
	copy(mount.Path[:], "none")
	copy(mount.Type[:], "tmpfs\x00left")
	for _, c := range []struct {
		e    event
		want policy.Act
	}{
		{file, policy.Act{Path: "/etc/x", Access: []policy.Access{policy.Read, policy.Write}}},
		{event{Hook: 1, Path: file.Path}, policy.Act{Kind: policy.Execute, Path: "/etc/x"}},
		{event{Hook: 3, Number: 21}, policy.Act{Kind: policy.UseCapability, Name: "sys_admin"}},
		{mount, policy.Act{Kind: policy.MountIt, Path: "none", Name: "tmpfs"}},
		{event{Hook: 5}, policy.Act{Kind: policy.Unmount}},
		{event{Hook: 6}, policy.Act{Kind: policy.Trace}},
		{event{Hook: 7}, policy.Act{Kind: policy.Trace}},
	} {
		if got := c.e.act(); !got.Same(c.want) {
			t.Errorf("hook %d: got %+v, want %+v", c.e.Hook, got, c.want)
		}
	}
}
