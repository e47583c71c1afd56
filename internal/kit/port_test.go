package kit

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestFreePorts(t *testing.T) {
	const n = 40
	ports, err := FreePorts(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint16]bool{}
	for _, p := range ports {
		if seen[p] || p < lowestPort {
			t.Errorf("port %d twice, or reserved", p)
		}
		if below := ephemeral(); below > 2*lowestPort && int(p) >= below {
			t.Errorf("port %d is the clients'", p)
		}
		seen[p] = true
	}
	if len(ports) != n {
		t.Errorf("%d ports", len(ports))
	}
	for _, p := range ports {
		l, err := net.Listen("tcp", fmt.Sprint(loopback, ":", p))
		if err != nil {
			t.Fatalf("not free: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPortsOfTheKernel leaves the choice to the kernel, as where clients have all ports from 1024 on.
func TestPortsOfTheKernel(t *testing.T) {
	l, err := holdPort(t.Context(), loopback, 1024)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it never accepted anything
	if l.Addr().(*net.TCPAddr).Port == 0 {
		t.Error("no port")
	}
}

// TestFreePort: only port 0 is replaced.
func TestFreePort(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "[::1]:7": "[::1]:7", "127.0.0.1:0": "127.0.0.1:", "nonsense": "",
	} {
		got, err := FreePort(t.Context(), addr)
		if (err != nil) != (want == "") || err == nil && (!strings.HasPrefix(got, want) || strings.HasSuffix(got, ":0")) {
			t.Errorf("%s became %s, %v", addr, got, err)
		}
		if below := ephemeral(); strings.HasSuffix(addr, ":0") && below > 2*lowestPort {
			if at, err := netip.ParseAddrPort(got); err != nil || int(at.Port()) >= below {
				t.Errorf("%s became %s, a client's port: %v", addr, got, err)
			}
		}
	}
}
