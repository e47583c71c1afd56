package kit

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"tare/rigs/hosttest"
)

// TestHeldPort: servers of this user listen there, one at a time, and between them nobody does: no other user's socket,
// whatever it shares.
func TestHeldPort(t *testing.T) {
	h, err := HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(h.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	}()
	refused := func() {
		t.Helper()
		if c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Addr.String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("connected: %v, %v", c, err)
		}
	}
	for range 2 {
		refused()
		l, err := Listen(t.Context(), h.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if second, err := Listen(t.Context(), h.Addr.String()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("two servers share the calls: %v, %v", second, err)
		}
		asked, err := l.Accept()
		if err := errors.Join(err, asked.Close()); err != nil {
			t.Fatal(err)
		}
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		served, err := l.Accept()
		if err := errors.Join(err, l.Close(), served.Close(), c.Close()); err != nil { // the server's end waits (TIME_WAIT)
			t.Fatal(err)
		}
	}
	refused()
	hosttest.NoStrangerListens(t, h.Addr.Port())
}
