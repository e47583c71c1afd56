package kit

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

// TestProgramListensItself: what answers at a program's address may be another process that has taken the port, and
// then the program is not ready.
func TestProgramListensItself(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // nothing to lose
	free, err := FreePort(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, at, says string }{
		{"it listens", free, ""},
		{"another process listens", other.Addr().String(), "it then gets another port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			isReady := false
			p := Program{
				Name: "program", Path: os.Args[0], Env: []string{"TARE_TEST_LISTEN=" + c.at}, Within: time.Minute,
				At: []netip.AddrPort{netip.MustParseAddrPort(c.at)},
			}
			err := p.Run(ctx, func(ctx context.Context) error {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.at)
				if err != nil {
					return err
				}
				return conn.Close()
			}, func(time.Duration) error {
				isReady = true
				stop()
				return nil
			})
			if isReady != (c.says == "") || !strings.Contains(err.Error(), c.says) ||
				isReady && !errors.Is(err, context.Canceled) {
				t.Errorf("ready: %t, %v; want an error that says %q", isReady, err, c.says)
			}
		})
	}
}
