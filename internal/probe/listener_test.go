package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

// refusing is a file system in which one directory may not be read.
type refusing struct {
	fstest.MapFS
	dir string
}

func (r refusing) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == r.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return r.MapFS.ReadDir(name)
}

// tcpText is a table of sockets: "address:port state inode" each.
func tcpText(sockets ...string) *fstest.MapFile {
	var b strings.Builder
	b.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	for i, s := range sockets {
		f := strings.Fields(s)
		fmt.Fprintf(&b, "%4d: %s 00000000:0000 %s 00000000:00000000 00:00000000 00000000  1000        0 %s 2 "+
			"000000009eb7eacc 100 0 0 10 0\n", i, f[0], f[1], f[2])
	}
	return text(b.String())
}

func addProcess(m fstest.MapFS, pid, parent int, name string, sockets ...string) {
	dir := fmt.Sprintf("proc/%d/", pid)
	m[dir+"stat"] = text(statText(fmt.Sprint(parent), fmt.Sprint(1000+pid)))
	m[dir+"comm"] = text(name + "\n")
	m[dir+"fd/0"] = &fstest.MapFile{Data: []byte("/dev/null"), Mode: fs.ModeSymlink}
	for i, s := range sockets {
		m[fmt.Sprintf("%sfd/%d", dir, i+3)] = &fstest.MapFile{Data: []byte("socket:[" + s + "]"), Mode: fs.ModeSymlink}
	}
}

// Port 6969 is 1B39.
const (
	v4 = "0100007F:1B39"
	v6 = "00000000000000000000000001000000:1B39"
)

var listeners = []struct {
	name  string
	build func(fstest.MapFS) fs.FS
	pid   int
	want  error
	says  string
}{
	{"IPv4", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText("0100007F:1B38 0A 70", v4+" 01 71", v4+" 0A 72", "0100007F:0000 06 0")
		addProcess(m, 40, 1, "other", "70")
		addProcess(m, 41, 1, "client", "71")
		addProcess(m, 42, 1, "java", "69", "72")
		return m
	}, 42, nil, ""},
	{"IPv6", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp6"] = tcpText(v6 + " 0A 72")
		addProcess(m, 42, 1, "java", "72")
		return m
	}, 42, nil, ""},
	{"both, one process", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"], m["proc/self/net/tcp6"] = tcpText(v4+" 0A 71"), tcpText(v6+" 0A 72")
		addProcess(m, 42, 1, "java", "72", "71")
		return m
	}, 42, nil, ""},
	{"master and workers", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 52, 1, "nginx", "72")
		addProcess(m, 50, 52, "nginx", "72")
		addProcess(m, 51, 50, "nginx", "72")
		return m
	}, 52, nil, ""},
	{"a service manager keeps the socket", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 1, 0, "systemd", "72")
		addProcess(m, 50, 1, "pdp", "72")
		return m
	}, 50, nil, ""},
	{"the first process of a container", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 1, 0, "pdp", "72")
		return m
	}, 1, nil, ""},
	{"not started yet", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 1, 0, "systemd", "72")
		return m
	}, 0, ErrGone, "systemd"},
	{"two strangers", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4+" 0A 72", "0200007F:1B39 0A 73")
		addProcess(m, 50, 1, "pdp", "72")
		addProcess(m, 51, 1, "opa", "73")
		return m
	}, 0, ErrSeveral, "50 (pdp), 51 (opa)"},
	{"a stranger forwards", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4+" 0A 72", "0200007F:1B39 0A 73")
		addProcess(m, 50, 1, "pdp", "72")
		addProcess(m, 51, 1, "socat", "73")
		return m
	}, 0, ErrForwarder, "socat"},
	{"nobody", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 01 72")
		addProcess(m, 50, 1, "pdp", "72")
		return m
	}, 0, ErrGone, "nobody"},
	{"in another network", func(m fstest.MapFS) fs.FS {
		m["proc/self/ns/net"] = &fstest.MapFile{Data: []byte("net:[1]"), Mode: fs.ModeSymlink}
		addProcess(m, 49, 1, "shim")
		addProcess(m, 50, 1, "pdp", "72")
		m["proc/49/ns/net"] = m["proc/self/ns/net"]
		m["proc/50/ns/net"] = &fstest.MapFile{Data: []byte("net:[2]"), Mode: fs.ModeSymlink}
		m["proc/50/net/tcp"] = tcpText(v4 + " 0A 72")
		return m
	}, 0, ErrGone, "process 50 (pdp)"},
	{"behind a proxy", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 50, 1, "docker-proxy", "72")
		return m
	}, 0, ErrForwarder, "docker-proxy"},
	{"not visible", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 50, 1, "pdp", "73")
		return m
	}, 0, ErrHidden, "another container"},
	{"not permitted", func(m fstest.MapFS) fs.FS {
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 50, 1, "pdp", "72")
		return refusing{m, "proc/50/fd"}
	}, 0, fs.ErrPermission, "root"},
}

func TestListenerFixtures(t *testing.T) {
	for _, c := range listeners {
		pid, start, err := Listener(c.build(fstest.MapFS{}), netip.AddrPortFrom(netip.Addr{}, 6969))
		if c.pid != 0 {
			if err != nil || pid != c.pid || start != uint64(1000+pid) {
				t.Errorf("%s: %d, %d, %v; want %d", c.name, pid, start, err, c.pid)
			}
			continue
		}
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d, %v; want %v that says %q", c.name, pid, err, c.want, c.says)
		}
	}
}

// TestListenerOfAnAddress: a process that listens on the same port of another address is not the one that a connection
// reaches, and where one of those that may be reached is hidden, none is named.
func TestListenerOfAnAddress(t *testing.T) {
	const other, all4, all6 = "0200007F:1B39", "00000000:1B39", "00000000000000000000000000000000:1B39"
	for _, c := range []struct {
		name, tcp, tcp6, at string
		seen                string // the socket that process 50, pdp, has
		pid                 int
		want                error
	}{
		{"the other is a stranger's", other + " 0A 72\n" + v4 + " 0A 73", "", "127.0.0.1:6969", "72", 0, fs.ErrPermission},
		{"the other is asked", other + " 0A 72\n" + v4 + " 0A 73", "", "127.0.0.2:6969", "72", 50, nil},
		{"exact before all", all4 + " 0A 72\n" + v4 + " 0A 73", "", "127.0.0.1:6969", "72", 0, fs.ErrPermission},
		{"all addresses", all4 + " 0A 72\n" + v4 + " 0A 73", "", "127.0.0.2:6969", "72", 50, nil},
		{"all of both families", "", all6 + " 0A 72", "127.0.0.1:6969", "72", 50, nil},
		{"IPv6", other + " 0A 73", v6 + " 0A 72", "[::1]:6969", "72", 50, nil},
		{"one of two is hidden", v4 + " 0A 72\n" + v4 + " 0A 73", "", "127.0.0.1:6969", "72", 0, fs.ErrPermission},
		{"without an address", other + " 0A 72\n" + v4 + " 0A 73", "", "", "72", 0, fs.ErrPermission},
		{"nobody", other + " 0A 72", "", "127.0.0.1:6969", "72", 0, ErrGone},
	} {
		m := fstest.MapFS{}
		m["proc/self/net/tcp"] = tcpText(strings.FieldsFunc(c.tcp, func(r rune) bool { return r == '\n' })...)
		m["proc/self/net/tcp6"] = tcpText(strings.FieldsFunc(c.tcp6, func(r rune) bool { return r == '\n' })...)
		addProcess(m, 50, 1, "pdp", c.seen)
		addProcess(m, 51, 1, "kubectl", "73")
		at := netip.AddrPortFrom(netip.Addr{}, 6969)
		if c.at != "" {
			at = netip.MustParseAddrPort(c.at)
		}
		pid, _, err := Listener(refusing{m, "proc/51/fd"}, at)
		if pid != c.pid || !errors.Is(err, c.want) {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, pid, err, c.pid, c.want)
		}
	}
}

// TestListensWithin: a listener is taken for a process's only if it is that process, or was started by it.
func TestListensWithin(t *testing.T) {
	for _, c := range []struct {
		name, holder string // the socket that process 42 has
		pid          int
		want         error
		says         string
	}{
		{"the process itself", "72", 42, nil, ""},
		{"a grandchild", "72", 40, nil, ""},
		{"a stranger's child", "72", 51, nil, "process 42 (opa) listens at 127.0.0.1:6969"},
		{"the child of the one that listens", "72", 43, nil, "in the place of process 43"},
		{"somebody who is not visible", "71", 40, fs.ErrPermission, "127.0.0.1:6969"},
	} {
		m := fstest.MapFS{}
		m["proc/self/net/tcp"] = tcpText(v4 + " 0A 72")
		addProcess(m, 40, 1, "tare")
		addProcess(m, 41, 40, "sh")
		addProcess(m, 42, 41, "opa", c.holder)
		addProcess(m, 43, 42, "worker")
		addProcess(m, 51, 1, "stranger")
		err := ListensWithin(refusing{m, "proc/51/fd"}, netip.MustParseAddrPort("127.0.0.1:6969"), c.pid)
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: got %v, want none", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v that says %q", c.name, err, c.want, c.says)
		}
	}
}

func TestByPIDFixtures(t *testing.T) {
	m := fstest.MapFS{}
	addProcess(m, 50, 1, "pdp")
	addProcess(m, 2, 0, "kthreadd")
	m["proc/50/cmdline"] = text("java\x00-jar\x00pdp.jar\x00" + strings.Repeat("é", 200))
	got, err := byPID(m, 50)
	if err != nil || got.StartTicks != 1050 || !strings.HasPrefix(got.Command, "java -jar pdp.jar é") ||
		len(got.Command) > 200 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := byPID(m, 2); err != nil || got.Command != "kthreadd" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := byPID(m, 3); !errors.Is(err, ErrGone) {
		t.Errorf("%v, want ErrGone", err)
	}
}

// counting counts the descriptor tables and the maps that are read: what makes a resolution dear.
type counting struct {
	fstest.MapFS
	listed *int
}

func (c counting) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, "/maps") {
		*c.listed++
	}
	return c.MapFS.ReadFile(name)
}

func (c counting) ReadDir(name string) ([]fs.DirEntry, error) {
	if strings.HasSuffix(name, "/fd") {
		*c.listed++
	}
	return c.MapFS.ReadDir(name)
}

// TestAttachedKeepsItsResolution: the descriptors of all processes are looked through when the process is new, and only
// then.
func TestAttachedKeepsItsResolution(t *testing.T) {
	m := fstest.MapFS{"proc/self/net/tcp": tcpText("0100007F:1B39 0A 72")}
	addProcess(m, 50, 1, "pdp", "72")
	addProcess(m, 51, 1, "other")
	listed := 0
	a := &Attached{Name: "pdp", Port: 6969, Light: true, Root: counting{m, &listed}}
	born := func() float64 {
		t.Helper()
		list, err := a.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v, _ := Find(list, "pdp", Started)
		return v
	}
	for range 3 {
		if v := born(); v != 1050 || listed != 2 {
			t.Fatalf("birth %v, %d tables listed; want 1050 and 2", v, listed)
		}
	}

	m["proc/50/stat"] = text(statText("1", "7777")) // the number was given to another process, which listens too
	if v := born(); v != 7777 || listed != 4 {
		t.Errorf("birth %v, %d tables listed; want 7777 and 4", v, listed)
	}

	m["proc/50/fd/3"] = m["proc/50/fd/0"] // it closes the socket and keeps running: another process takes its place
	addProcess(m, 51, 1, "other", "72")
	if v := born(); v != 1051 {
		t.Errorf("birth %v, want 1051", v)
	}

	delete(m, "proc/self/net/tcp")
	if born() != 1051 {
		t.Error("the socket is still there")
	}
	delete(m, "proc/51/fd/3")
	if _, err := a.Read(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("%v, want ErrGone", err)
	}
}

// TestAttachedBecomesAJVM: a start script has no performance data, until it is one by exec(2).
func TestAttachedBecomesAJVM(t *testing.T) {
	m := fstest.MapFS{}
	addProcess(m, 500, 1, "sh")
	maps := 0
	a := &Attached{PID: 500, Light: true, Root: counting{m, &maps}}
	collections := func() bool {
		list, err := a.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, ok := Find(list, "", GCCount)
		return ok
	}
	for range 100 {
		if collections() {
			t.Fatal("a shell has no collections")
		}
	}
	m["proc/500/maps"] = text("7f3-7f4 rw-s 00000000 fe:00 99 /tmp/hsperfdata_app/500\n")
	m["proc/500/root/tmp/hsperfdata_app/500"] = &fstest.MapFile{Data: perfBytes(binary.LittleEndian, zgc(0)...)}
	reads := 1
	for ; !collections(); reads++ {
		if reads == 100 {
			t.Fatal("the JVM is never seen")
		}
	}
	for range 3 {
		if !collections() || maps != 1 {
			t.Errorf("the JVM, once seen, is read each time; its maps were read %d times", maps)
		}
	}
	m["proc/500/stat"] = text(statText("1", "7777"))
	if _, err := a.Read(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("another process: %v, want ErrGone", err)
	}
}

// TestAttachedToAStartScript: the JVM below it speaks, unless there are two.
func TestAttachedToAStartScript(t *testing.T) {
	m := fstest.MapFS{}
	addJVM := func(pid int) {
		addProcess(m, pid, 500, "java")
		m[fmt.Sprintf("proc/%d/maps", pid)] = text(fmt.Sprintf("7f3-7f4 rw-s 00000000 fe:00 99 /tmp/hsperfdata_app/%d\n",
			pid))
		m[fmt.Sprintf("proc/%d/root/tmp/hsperfdata_app/%d", pid, pid)] = &fstest.MapFile{
			Data: perfBytes(binary.LittleEndian, zgc(0)...),
		}
	}
	addProcess(m, 500, 1, "sh")
	addProcess(m, 501, 500, "tee")
	addJVM(502)
	for n, want := range map[int]int{502: 1, 503: 0} {
		if n == 503 {
			addJVM(503)
		}
		list, err := (&Attached{PID: 500, Light: true, Root: m}).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, births := 0, 0
		for _, s := range list {
			switch s.Metric {
			case GCCount.Name:
				got++
			case Started.Name:
				births++
			}
		}
		if got != want || births != 1 {
			t.Errorf("up to process %d: %d collectors, want %d; %d births", n, got, want, births)
		}
		if n == 503 {
			delete(m, "proc/503/stat")
		}
	}
}

// TestOurParentWithoutUs: the generator's cost is not the target's, also when the target has started the generator.
func TestOurParentWithoutUs(t *testing.T) {
	parent, err := byPID(rootFS(nil), os.Getppid())
	if err != nil {
		hosttest.Missing(t, fmt.Sprintf("the parent of this test cannot be seen: %v", err),
			"run it without a namespace of processes")
	}
	list, pids, err := Process{PID: parent.PID, StartTicks: parent.StartTicks, Light: true}.readTree(t.Context())
	if err != nil || slices.Contains(pids, os.Getpid()) || pids[0] != parent.PID {
		t.Errorf("processes %v (this is %d), %v", pids, os.Getpid(), err)
	}
	if n, _ := Find(list, "", Processes); n != float64(len(pids)) {
		t.Errorf("%v processes of %d", n, len(pids))
	}
	if _, pids, err := (Process{PID: os.Getpid(), Light: true}).readTree(t.Context()); err != nil ||
		pids[0] != os.Getpid() {
		t.Errorf("ourselves: %v, %v", pids, err)
	}
}

func FuzzListeners(f *testing.F) {
	f.Add(string(tcpText("0100007F:1B39 0A 72", "00000000000000000000000001000000:1B39 0A 73").Data))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		defer memtest.Bound(t, len(s))()
		for _, l := range parseListeners(s, 6969) {
			if n, ok := parseNumber(l.inode); !ok || n <= 0 {
				t.Errorf("inode %q", l.inode)
			}
		}
	})
}
