package plane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/files"
	"tare/rigs/hosttest"
)

// nobody is the user and the group that attack.
const nobody = 65534

// knock is the attacker's program: it prints for each address, a line each, the result of a request there without a
// credential.
func knock(addresses []string) {
	client := &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
		}},
	} //nolint:gosec // so would an attacker
	for _, address := range addresses {
		var said string
		if file, ok := strings.CutPrefix(address, "unix:"); ok {
			conn, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(context.Background(), "unix", file)
			if said = "connected"; err != nil {
				said = err.Error()
			} else {
				_ = conn.Close()
			}
		} else if res, err := client.Get(address); err != nil {
			said = err.Error()
		} else {
			said = res.Status[:3]
			_ = res.Body.Close()
		}
		fmt.Println(strings.ReplaceAll(said, "\n", " "))
	}
}

// knocked runs knock as the user nobody, and returns the results by address.
func knocked(t *testing.T, addresses []string) map[string]string {
	t.Helper()
	hosttest.NeedsRoot(t)
	dir := t.TempDir()
	self, err := os.ReadFile("/proc/self/exe")
	program := filepath.Join(dir, "stranger")
	err = errors.Join(err, files.WriteProgram(program, self))
	for _, path := range []string{program, dir, filepath.Dir(dir)} { // where every user may run it
		err = errors.Join(err, os.Chmod(path, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"knock"}, addresses...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = "/", []string{"PATH=/bin"}, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != len(addresses) {
		t.Fatalf("the stranger: %v; it said %q about %q", err, lines, addresses)
	}
	said := map[string]string{}
	for i, address := range addresses {
		said[address] = lines[i]
	}
	return said
}

// etcdSocket is where etcd's socket lies.
func (p *Plane) etcdSocket() string {
	return filepath.Join(p.secrets.dir, strings.TrimPrefix(socket, "unix://"))
}

// TestOthersDoNotReachEtcd, and its owner does.
func TestOthersDoNotReachEtcd(t *testing.T) {
	p := begin(t, (&diary{}).config(t, fakeBinary(t, "well")))
	checkEtcdIsClosed(t, p)
}

func checkEtcdIsClosed(t *testing.T, p *Plane) {
	t.Helper()
	at := "unix:" + p.etcdSocket()
	if got := knocked(t, []string{at})[at]; !strings.Contains(got, "permission denied") {
		t.Errorf("another user at etcd: %s", got)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", p.etcdSocket())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for _, c := range p.Processes() {
		if c.Name != Etcd {
			continue
		}
		if got := listensAt(t, c.PID); !slices.Equal(got, []string{"unix etcd.sock"}) {
			t.Errorf("etcd listens at %q", got)
		}
	}
}

// TestRealPlaneIsClosed: of all that a plane listens at, another user gets nothing but "is it well?" of two components.
func TestRealPlaneIsClosed(t *testing.T) {
	for _, v := range Versions() {
		t.Run(string(v), func(t *testing.T) {
			c := (&diary{}).config(t, realBinary(t, v))
			c.Nodes = true
			p := begin(t, c)
			checkEtcdIsClosed(t, p)
			checkPorts(t, p)
			checkAnswers(t, p)
			checkQuota(t, p)
		})
	}
}

// checkQuota asks etcd itself how large its database may grow.
func checkQuota(t *testing.T, p *Plane) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
		_ string,
	) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.etcdSocket())
	}}}
	defer client.CloseIdleConnections()
	res, err := client.Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, said, _ := strings.Cut(string(text), "\netcd_server_quota_backend_bytes ")
	said, _, _ = strings.Cut(said, "\n")
	if got, err := strconv.ParseFloat(said, 64); err != nil || uint64(got) != p.quota || p.quota > mostData ||
		p.quota < leastData {
		t.Errorf("etcd has a quota of %q bytes (%v), want %d", said, err, p.quota)
	}
}

// checkPorts wants each of the other components to listen at one port of loopback.
func checkPorts(t *testing.T, p *Plane) {
	t.Helper()
	for _, c := range p.Processes() {
		if port := p.ports.of(c.Name); port != 0 {
			if got, want := listensAt(t, c.PID), []string{fmt.Sprintf("tcp 0100007F:%04X", port)}; !slices.Equal(got, want) {
				t.Errorf("%s listens at %q, want %q (127.0.0.1:%d)", c.Name, got, want, port)
			}
		}
	}
}

// checkAnswers asks without a credential, as another user.
func checkAnswers(t *testing.T, p *Plane) {
	t.Helper()
	var addresses []string
	want := map[string][]string{} // statuses
	expect := func(server, paths string, statuses ...string) {
		for path := range strings.FieldsSeq(paths) {
			addresses = append(addresses, server+path)
			want[server+path] = statuses
		}
	}
	expect(p.Server(), "/ /version /healthz /livez /readyz /metrics /api /apis /api/v1/secrets /openapi/v2 "+
		"/debug/pprof/ /logs/ /statusz /flagz", "401")
	for _, server := range []string{url(p.ports.scheduler), url(p.ports.controller)} {
		expect(server, "/healthz", "200")
		expect(server, "/ /metrics /configz /debug/pprof/ /debug/flags/v /statusz /flagz /metrics/resources /metrics/slis",
			"401", "403")
	}
	for address, got := range knocked(t, addresses) {
		if !slices.Contains(want[address], got) {
			t.Errorf("another user gets %s from %s, want %v", got, address, want[address])
		}
	}
}

// listensAt is where a process listens, as the kernel writes it: "tcp 0100007F:1F90" is port 8080 of 127.0.0.1; "unix
// NAME".
func listensAt(t *testing.T, pid int) []string {
	t.Helper()
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{} // inodes
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(fds, e.Name())); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	var at []string
	const state = 3 // a column
	for _, table := range []struct {
		name                string
		inode, address      int // columns
		listening, nameless string
	}{
		{"tcp", 9, 1, "0A", ""},
		{"tcp6", 9, 1, "0A", ""},
		{"udp", 9, 1, "07", ""},
		{"udp6", 9, 1, "07", ""},
		{"unix", 6, 7, "00010000", "(no name)"}, // __SO_ACCEPTCON
	} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table.name))
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > table.inode && own[f[table.inode]] && f[state] == table.listening {
				f = append(f, table.nameless)
				at = append(at, table.name+" "+f[table.address])
			}
		}
	}
	return at
}
