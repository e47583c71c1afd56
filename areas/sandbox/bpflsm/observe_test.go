package bpflsm

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"tare/areas/sandbox/policy"
)

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
