package run

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/load"
)

// serveUse makes this test binary a server that is busy with one thread and accepts no connection.
const serveUse = "TARE_TEST_SERVE_USE"

// TestServeUse is the server of TestWatchUse; by itself it tests nothing.
func TestServeUse(t *testing.T) {
	if os.Getenv(serveUse) == "" {
		return // it is started by TestWatchUse
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(l.Addr())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }() // it ends with its parent
	for n := 0; ; n++ {
	}
}

// A placedTarget is a target at an address.
type placedTarget struct {
	area.Target
	at netip.AddrPort
}

func (p placedTarget) Can() area.Can {
	return area.Can{Endpoint: func(design.Treatment) (*load.Endpoint, error) { return &load.Endpoint{Addr: p.at}, nil }}
}

// TestWatchUse: the account of a server on this host, and that there is none of others.
func TestWatchUse(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServeUse$")
	c.Env = append(os.Environ(), serveUse+"=1")
	out, err1 := c.StdoutPipe()
	in, err2 := c.StdinPipe()
	if err1 != nil || err2 != nil || c.Start() != nil {
		t.Fatal(err1, err2)
	}
	t.Cleanup(func() { _ = in.Close(); _ = c.Process.Kill(); _ = c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(strings.TrimSpace(line))
	caller, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = caller.Close() }()
	watch := func(at netip.AddrPort) func() *limit.Account {
		a := &Arm{Stage: &Stage{Target: placedTarget{at: at}}}
		a.Env.Clock = clock.System{}
		return a.WatchUse(t.Context())
	}
	watchCPU := func(at netip.AddrPort) func() *float64 {
		a := &Arm{Stage: &Stage{Target: placedTarget{at: at}}}
		a.Env.Clock = clock.System{}
		return a.WatchCPU(t.Context())
	}
	end, cpu := watch(addr), watchCPU(addr)
	time.Sleep(300 * time.Millisecond)
	used, got := cpu(), end()
	if used == nil || *used <= 0 {
		t.Errorf("a server with one busy thread used %v s", used)
	}
	if used = watchCPU(netip.MustParseAddrPort("192.0.2.1:80"))(); used == nil || *used != 0 {
		t.Errorf("a server on another host used %v s of this one", used)
	}
	if got == nil {
		t.Fatal("no account of a child process")
	}
	if got.Seconds < 0.3 || got.CPU == nil || got.Busiest == nil || *got.CPU <= 0 || *got.Busiest < *got.CPU/2 {
		t.Errorf("of a server with one busy thread: %+v", got)
	}
	if got.ListenQueue == nil || *got.ListenQueue != 1 || got.Descriptors < 4 || got.DiskWait == nil {
		t.Errorf("of its connections and looks: %+v", got)
	}
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	for name, at := range map[string]netip.AddrPort{
		"this process": netip.MustParseAddrPort(own.Addr().String()), "another host": netip.MustParseAddrPort("192.0.2.1:80"),
		"nobody": netip.MustParseAddrPort("127.0.0.1:1"), "no address": {},
	} {
		if got := watch(at)(); got != nil {
			t.Errorf("an account of %s: %+v", name, got)
		}
		if got := watchCPU(at)(); got != nil && *got != 0 {
			t.Errorf("the processor time of %s: %v s", name, *got)
		}
	}
	a := &Arm{Stage: &Stage{Target: placedTarget{at: addr}}}
	a.Env.Clock = clock.System{}
	ctx, cancel := context.WithCancel(t.Context())
	after := a.WatchUse(ctx)
	cancel()
	_ = c.Process.Kill()
	_ = c.Wait()
	if got := after(); got != nil {
		t.Errorf("an account of a process that has ended: %+v", got)
	}
}
