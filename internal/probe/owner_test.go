package probe

import (
	"io/fs"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// ordinary is a file system in which an ordinary user may not read the descriptors of other users' processes.
type ordinary struct {
	fstest.MapFS
	own map[int]bool // processes of the user
}

func (o ordinary) ReadDir(name string) ([]fs.DirEntry, error) {
	if pid, ok := strings.CutSuffix(strings.TrimPrefix(name, "proc/"), "/fd"); ok {
		if n, err := strconv.Atoi(pid); err == nil && !o.own[n] {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
	}
	return o.MapFS.ReadDir(name)
}

// TestOwnerOf: of the programs that forward, those may listen on the port that run as the user who listens there, whose
// sockets cannot be seen, and whose arguments do not rule it out. Port 6969 is 1B39; its socket is user 1000's.
func TestOwnerOf(t *testing.T) {
	const socketOwner = 1000
	for _, c := range []struct {
		name, command, arguments string
		uid                      int
		visible, suspect         bool
	}{
		{"a server", "pdp", "pdp -port 6969", socketOwner, false, false},
		{"ssh of the owner", "ssh", "ssh -N -L 6969:db:80 jump", socketOwner, false, true},
		{"ssh whose configuration may forward", "ssh", "ssh jump", socketOwner, false, true},
		{"ssh of another user", "ssh", "ssh jump", 1001, false, false},
		{"ssh that can be looked into", "ssh", "ssh jump", socketOwner, true, false},
		{"kubectl that forwards", "kubectl", "kubectl port-forward svc/a 6969:80", socketOwner, false, true},
		{"kubectl that does not", "kubectl", "kubectl get pods -w", socketOwner, false, false},
		{"docker-proxy of the port", "docker-proxy", "docker-proxy -proto tcp -host-port 6969", socketOwner, false, true},
		{"docker-proxy of another", "docker-proxy", "docker-proxy -host-port 80 -x 6969", socketOwner, false, false},
		{"a session of sshd", "sshd", "sshd: bob@pts/0", socketOwner, false, true},
		{"a session of a later sshd", "sshd-session", "sshd-session: bob@notty", socketOwner, false, true},
		{"its monitor", "sshd", "sshd: bob [priv]", socketOwner, false, false},
		{"its listener", "sshd", "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", socketOwner, false, false},
		{"an older listener", "sshd", "/usr/sbin/sshd -D", socketOwner, false, false},
		{"stunnel of a user of its own", "stunnel4", "stunnel4", 107, false, false},
	} {
		m := fstest.MapFS{"proc/self/net/tcp": tcpText(v4 + " 0A 72")}
		addProcess(m, 50, 1, c.command, "72")
		uid := strconv.Itoa(c.uid)
		m["proc/50/status"] = text("Name:\tx\nUid:\t" + strings.Join([]string{uid, uid, uid, uid}, "\t") + "\n")
		m["proc/50/cmdline"] = text(strings.ReplaceAll(c.arguments, " ", "\x00") + "\x00")
		o := OwnerOf(ordinary{m, map[int]bool{50: c.visible}}, netip.AddrPortFrom(netip.Addr{}, 6969))
		if len(o.UIDs) != 1 || o.UIDs[0] != socketOwner {
			t.Errorf("%s: users %v", c.name, o.UIDs)
		}
		if got := len(o.Forwarders) == 1 && o.Forwarders[0].PID == 50; got != c.suspect {
			t.Errorf("%s: forwarders %+v, want suspect %t", c.name, o.Forwarders, c.suspect)
		}
	}
}

// TestOwnerIsRoot: some programs are started by root and then run as a user of their own.
func TestOwnerIsRoot(t *testing.T) {
	table := strings.ReplaceAll(string(tcpText(v6+" 0A 72").Data), "  1000  ", "     0  ")
	m := fstest.MapFS{"proc/self/net/tcp6": text(table)}
	addProcess(m, 50, 1, "stunnel4")
	addProcess(m, 51, 1, "ssh")
	for _, pid := range []string{"50", "51"} {
		m["proc/"+pid+"/status"] = text("Uid:\t107\t107\t107\t107\n")
	}
	o := OwnerOf(ordinary{MapFS: m}, netip.AddrPortFrom(netip.Addr{}, 6969))
	if len(o.UIDs) != 1 || o.UIDs[0] != 0 || len(o.Forwarders) != 1 || o.Forwarders[0].PID != 50 {
		t.Errorf("%+v, want root and stunnel4", o)
	}
	if o := OwnerOf(ordinary{MapFS: m}, netip.AddrPortFrom(netip.Addr{}, 6970)); len(o.UIDs) != 0 {
		t.Errorf("nobody listens there: %+v", o)
	}
}
