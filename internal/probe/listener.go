package probe

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Why the process behind a port cannot be determined.
var (
	// ErrHidden means that a socket listens, and that its process is not visible: it runs in another container.
	ErrHidden = errors.New("the process is not visible from here")
	// ErrForwarder means that the process that listens only forwards to the one that serves.
	ErrForwarder = errors.New("the listener only forwards")
	// ErrSeveral means that processes that have nothing to do with each other listen there, and none is a forwarder.
	ErrSeveral = errors.New("several listen there")
)

// forwarders are programs that listen in place of a server in another network namespace or on another host. Their cost
// is not the server's.
var forwarders = []string{
	"docker-proxy", "rootlessport", "slirp4netns", "pasta", "gvproxy", "conmon", "kubectl", "ssh", "sshd",
	"sshd-session", "socat",
	"autossh", "chisel", "cloud-sql-proxy", "cloud_sql_proxy", "k9s", "session-manager", "stunnel", "stunnel4",
	"telepresence",
}

// Listener finds the process that a connection to the TCP address at reaches in tare's network namespace; without an
// address, the one that listens on the port, under any address. If processes share a socket, it is the ancestor of the
// others, except a service manager that also holds the socket, and except tare itself. startTicks is the process's
// start (proc_pid_stat(5), field 22): it differs for a later process with the same number. The error wraps ErrGone when
// nothing listens here (and names a process that listens in another network namespace, if one is visible), ErrHidden
// when the socket belongs to a process that is not visible, fs.ErrPermission when other users' processes may not be
// looked at, ErrForwarder when a proxy such as docker-proxy listens, and ErrSeveral.
func Listener(root fs.FS, at netip.AddrPort) (pid int, startTicks uint64, err error) {
	h, err := findListener(rootFS(root), at, root == nil)
	if err != nil {
		return 0, 0, fmt.Errorf("find the process that listens on port %d: %w", at.Port(), err)
	}
	return h.pid, h.start, nil
}

// ListensWithin returns an error unless the process that a connection to the address reaches is pid or descends from
// it. Whom this user may not see is taken for somebody else.
func ListensWithin(root fs.FS, at netip.AddrPort, pid int) error {
	in := rootFS(root)
	h, err := findListener(in, at, root == nil)
	if err != nil {
		return fmt.Errorf("find the process that listens at %s: %w", at, err)
	}
	if h.pid != pid && !descends(in, h.pid, map[int]bool{pid: true}) {
		return fmt.Errorf("process %d (%s) listens at %s, in the place of process %d and its children", h.pid,
			comm(in, h.pid), at, pid)
	}
	return nil
}

// A holder is a process that has a listening socket open: the link of its descriptor then says "socket:[inode]".
type holder struct {
	pid   int
	start uint64
	fd    string // "proc/123/fd/7"
	link  string // "socket:[4711]"
}

// stillHeld reports whether the process, which the caller has checked to be the same one, still has the socket open.
func (h holder) stillHeld(root fs.FS) bool {
	link, err := fs.ReadLink(root, h.fd)
	return err == nil && link == h.link
}

func findListener(root fs.FS, at netip.AddrPort, live bool) (holder, error) {
	links := listening(root, "proc/self/net/", at)
	if len(links) == 0 {
		return holder{}, nobodyListens(root, at)
	}
	found, refused := holders(root, links)
	seen := map[string]bool{}
	for _, h := range found {
		seen[h.link] = true
	}
	if len(seen) < len(links) { // what is not seen may be what a connection reaches
		if refused > 0 {
			return holder{}, fmt.Errorf("the descriptors of %d processes may not be read (run as root, or as the target's "+
				"user): %w", refused, fs.ErrPermission)
		}
		return holder{}, fmt.Errorf("it runs in another container or namespace of processes: %w: give its control group",
			ErrHidden)
	}
	// A process may have several of the sockets open.
	found = slices.CompactFunc(found, func(a, b holder) bool { return a.pid == b.pid })
	h, err := pickServer(root, found, live)
	if err != nil {
		return holder{}, err
	}
	if name := comm(root, h.pid); slices.Contains(forwarders, name) {
		return holder{}, forwarderError(name, h.pid)
	}
	return h, nil
}

func forwarderError(name string, pid int) error {
	return fmt.Errorf("%s (process %d): %w: give the server's own process", name, pid, ErrForwarder)
}

// listening returns the links "socket:[inode]" of the sockets that a connection to the address may reach, from the
// tables in a directory such as "proc/self/net/".
func listening(root fs.FS, dir string, at netip.AddrPort) map[string]bool {
	links := make(map[string]bool)
	for _, s := range reached(root, dir, at) {
		links["socket:["+s.inode+"]"] = true
	}
	return links
}

// reached returns the listening sockets that a connection to the address may reach: those with that address, or else
// those without one; without an address, all of the port.
func reached(root fs.FS, dir string, at netip.AddrPort) []listeningSocket {
	all := slices.Concat(parseListeners(readText(root, dir+"tcp"), at.Port()),
		parseListeners(readText(root, dir+"tcp6"), at.Port()))
	if !at.Addr().IsValid() {
		return all
	}
	with := func(is func(netip.Addr) bool) (some []listeningSocket) {
		for _, s := range all {
			if is(s.addr) {
				some = append(some, s)
			}
		}
		return some
	}
	if exact := with(func(a netip.Addr) bool { return a == at.Addr().Unmap().WithZone("") }); len(exact) > 0 {
		return exact
	}
	return with(netip.Addr.IsUnspecified)
}

// A listeningSocket is one of a table of sockets; uid is the user who made it.
type listeningSocket struct {
	inode string
	uid   int
	addr  netip.Addr
}

// parseAddr reads an address of a table of sockets: 32-bit words in the byte order of this machine.
func parseAddr(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), ok
}

// parseListeners returns the sockets in state LISTEN on the port (proc_net_tcp: sl local_address rem_address st tx:rx
// tr:tm retrnsmt uid timeout inode).
func parseListeners(text string, port uint16) (out []listeningSocket) {
	const listen, state, uid, inode = "0A", 3, 7, 9
	want := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) <= inode || f[state] != listen || !strings.HasSuffix(f[1], want) {
			continue
		}
		n, ok := parseNumber(f[inode])
		user, err := strconv.Atoi(f[uid])
		addr, isAddr := parseAddr(strings.TrimSuffix(f[1], want))
		if ok && n > 0 && err == nil && isAddr {
			out = append(out, listeningSocket{f[inode], user, addr})
		}
	}
	return out
}

// nobodyListens returns the error for a port without a listener. It names a process that listens in another visible
// network namespace, if any.
func nobodyListens(root fs.FS, at netip.AddrPort) error {
	ours, err := fs.ReadLink(root, "proc/self/ns/net")
	if err != nil {
		return fmt.Errorf("nobody listens there: %w", ErrGone)
	}
	looked := map[string]bool{ours: true}
	for _, pid := range pids(root) {
		dir := "proc/" + strconv.Itoa(pid)
		ns, err := fs.ReadLink(root, dir+"/ns/net")
		if err != nil || looked[ns] {
			continue
		}
		looked[ns] = true
		links := listening(root, dir+"/net/", at)
		if len(links) == 0 {
			continue
		}
		if found, _ := holders(root, links); len(found) > 0 {
			return fmt.Errorf("nobody listens there in this network namespace, but process %d (%s) does in another one, %s "+
				"(a container?): give its pid: %w",
				found[0].pid, comm(root, found[0].pid), ns, ErrGone)
		}
	}
	return fmt.Errorf("nobody listens there in this network namespace: %w", ErrGone)
}

// pids returns the numbers of the visible processes, ascending.
func pids(root fs.FS) []int {
	dir, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil
	}
	var list []int
	for _, d := range dir {
		if pid, err := strconv.Atoi(d.Name()); err == nil {
			list = append(list, pid)
		}
	}
	slices.Sort(list)
	return list
}

// holders finds the processes that have one of the sockets open, and counts those that this user may not inspect.
func holders(root fs.FS, links map[string]bool) (found []holder, refused int) {
	for _, pid := range pids(root) {
		dir := "proc/" + strconv.Itoa(pid)
		fds, err := fs.ReadDir(root, dir+"/fd")
		if errors.Is(err, fs.ErrPermission) {
			refused++
		}
		for _, fd := range fds {
			name := path.Join(dir, "fd", fd.Name())
			link, err := fs.ReadLink(root, name)
			if err != nil || !links[link] {
				continue
			}
			if s, err := parseStat(readText(root, dir+"/stat")); err == nil {
				found = append(found, holder{pid: pid, start: s.start, fd: name, link: link})
			}
		}
	}
	return found, refused
}

// pickServer chooses among processes that share a port. It skips service managers, which keep the sockets that they
// hand to services, and tare itself, which keeps those that it hands to its children.
func pickServer(root fs.FS, found []holder, live bool) (holder, error) {
	serving := slices.DeleteFunc(slices.Clone(found), func(h holder) bool {
		return (live && h.pid == os.Getpid()) || (h.pid == 1 && comm(root, 1) == "systemd")
	})
	if len(serving) == 0 {
		serving = found
	}
	if len(serving) == 1 && serving[0].pid == 1 && comm(root, 1) == "systemd" {
		return holder{}, fmt.Errorf("systemd holds the socket of a service that has not been started yet: %w", ErrGone)
	}
	has := make(map[int]bool)
	for _, h := range serving {
		has[h.pid] = true
	}
	top := slices.DeleteFunc(slices.Clone(serving), func(h holder) bool { return descends(root, h.pid, has) })
	if len(top) != 1 {
		names := make([]string, 0, len(serving))
		for _, h := range serving {
			name := comm(root, h.pid)
			if slices.Contains(forwarders, name) {
				return holder{}, forwarderError(name, h.pid)
			}
			names = append(names, fmt.Sprintf("%d (%s)", h.pid, name))
		}
		return holder{}, fmt.Errorf("processes %s: %w, and none is the parent of the others: give one of them",
			strings.Join(names, ", "), ErrSeveral)
	}
	return top[0], nil
}

// descends reports whether an ancestor of pid is in the set. The number of steps is bounded, since the process table
// may change while it is read.
func descends(root fs.FS, pid int, set map[int]bool) bool {
	const generations = 1000
	for range generations {
		s, err := parseStat(readText(root, "proc/"+strconv.Itoa(pid)+"/stat"))
		if err != nil || s.parent <= 0 || s.parent == pid {
			return false
		}
		if pid = s.parent; set[pid] {
			return true
		}
	}
	return false
}

// comm returns the name of a process's program, as the kernel keeps it (proc_pid_comm(5)): at most 15 bytes.
func comm(root fs.FS, pid int) string {
	return printable(strings.TrimSuffix(readText(root, "proc/"+strconv.Itoa(pid)+"/comm"), "\n"), 64)
}

// Found is a live process: its identity and its command.
type Found struct {
	PID        int
	StartTicks uint64 // proc_pid_stat(5), field 22
	// Command is the program and its arguments, separated by spaces and cut at 200 bytes; of a kernel thread its name.
	// Arguments may hold secrets: show it to the person at the terminal, and do not record it.
	Command string
}

// ByPID returns the live process with this number. The error wraps ErrGone when there is none.
func ByPID(pid int) (Found, error) { return byPID(rootFS(nil), pid) }

func byPID(root fs.FS, pid int) (Found, error) {
	const longest = 200
	dir := "proc/" + strconv.Itoa(pid)
	text := readText(root, dir+"/stat")
	if text == "" {
		return Found{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	s, err := parseStat(text)
	if err != nil {
		return Found{}, fmt.Errorf("process %d: %w", pid, err)
	}
	command := strings.TrimSpace(strings.ReplaceAll(readText(root, dir+"/cmdline"), "\x00", " "))
	if command == "" {
		command = comm(root, pid)
	}
	return Found{PID: pid, StartTicks: s.start, Command: printable(command, longest)}, nil
}
