package kit

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/ratelimit"
	"tare/rigs/hosttest"
)

// TestForwardedPortsNeedMaxRate: a listener that belongs to kubectl forwards to another host.
func TestForwardedPortsNeedMaxRate(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing to lose
	own := netip.MustParseAddrPort(l.Addr().String())
	if found := Unseen(own, area.Env{}); len(found) > 0 {
		t.Errorf("a listener of this process: %+v", found)
	}
	forwarded := forward(t)
	found := Unseen(forwarded, area.Env{})
	if len(found) != 1 || found[0].Severity != area.Error || !strings.Contains(found[0].Message, "kubectl") ||
		!strings.Contains(found[0].Hint, "load.max_rate") {
		t.Errorf("a port-forward without max_rate: %+v", found)
	}
	if found[0].Hint != "set load.max_rate (--max-rate) to the most that may be sent there" {
		t.Errorf("who listens is known, and root would see no more: %s", found[0].Hint)
	}
	if found := Unseen(forwarded, area.Env{Limit: ratelimit.New(clock.System{}, 5)}); len(found) > 0 {
		t.Errorf("a port-forward with max_rate: %+v", found)
	}
	if found := Unseen(netip.MustParseAddrPort("192.0.2.1:80"), area.Env{}); len(found) > 0 {
		t.Errorf("an address elsewhere, of which the file's check speaks: %+v", found)
	}
}

// ordinary is a /proc in which this user may not read the descriptors of process 50.
type ordinary struct{ fstest.MapFS }

func (o ordinary) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "proc/50/fd" {
		return nil, fs.ErrPermission
	}
	return o.MapFS.ReadDir(name)
}

// TestPortOfAnotherUser: an ordinary user may measure a server of another user, unless that user runs a forwarder.
func TestPortOfAnotherUser(t *testing.T) {
	const unnamed = 4200000001
	addr := netip.MustParseAddrPort("127.0.0.1:6969")
	file := func(format string, args ...any) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
	}
	for _, c := range []struct {
		command  string
		severity area.Severity
		says     string
	}{
		{"java", area.Warning, "127.0.0.1:6969 belongs to user 4200000001, so tare cannot see which process listens there; " +
			"it sees no program of that user that is known to forward to another machine, and max_rate is not set"},
		{"ssh", area.Error, "may lead to another machine, and max_rate is not set: user 4200000001 listens there, and runs " +
			"ssh (process 50), which forwards connections"},
	} {
		proc := ordinary{fstest.MapFS{
			"proc/self/net/tcp": file("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "+
				"timeout inode\n 0: 0100007F:1B39 00000000:0000 0A 00000000:00000000 00:00000000 00000000 %d 0 72 1\n", unnamed),
			"proc/50/comm":   file("%s\n", c.command),
			"proc/50/status": file("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", unnamed),
			"proc/50/fd/3":   {},
		}}
		found := unseen(proc, addr, area.Env{})
		if len(found) != 1 || found[0].Severity != c.severity || !strings.Contains(found[0].Message, c.says) ||
			!strings.Contains(found[0].Hint, "--max-rate") {
			t.Errorf("%s: %+v; want %v and %q", c.command, found, c.severity, c.says)
		}
		if found := unseen(proc, addr, area.Env{Limit: ratelimit.New(clock.System{}, 5)}); len(found) > 0 {
			t.Errorf("%s with max_rate: %+v", c.command, found)
		}
	}
}

// forward starts a copy of this program that is named kubectl, and returns the address on which it listens.
func forward(t *testing.T) netip.AddrPort {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubectl")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(self, name); err != nil {
		copyFile(t, self, name)
	}
	c := exec.Command(name)
	c.Env = append(os.Environ(), "TARE_TEST_LISTEN=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
	})
	b := make([]byte, 64)
	n, err := out.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddrPort(strings.TrimSpace(string(b[:n])))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteProgram(to, b); err != nil {
		t.Fatal(err)
	}
}

// TestMain is also the program that forward starts: it listens until its input ends. At an address of its own it
// listens until it is killed.
func TestMain(m *testing.M) {
	at := os.Getenv("TARE_TEST_LISTEN")
	if at == "" {
		hosttest.Main(m)
	}
	isForwarder := at == "1"
	if isForwarder {
		at = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", at)
	for !isForwarder { // also where another process listens
		if err == nil {
			_, _ = l.Accept()
		} else {
			time.Sleep(time.Second)
		}
	}
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(l.Addr().String() + "\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = l.Close()
}
