package probe

import (
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// An Owner is what this user can know about a port on which another user listens.
type Owner struct {
	// UIDs are the users who made the sockets that listen there, ascending.
	UIDs []int
	// Forwarders are the programs that may hold one of the sockets and are known to forward connections: they run as one
	// of these users, and this user may not see which sockets they hold.
	Forwarders []Found
}

// OwnerOf returns the owner of a TCP address in tare's network namespace. It knows the programs of other users by their
// names and arguments, which every user may read unless /proc is mounted with hidepid. It has no UIDs if nobody
// listens.
func OwnerOf(root fs.FS, at netip.AddrPort) Owner {
	root = rootFS(root)
	var o Owner
	for _, s := range reached(root, "proc/self/net/", at) {
		if !slices.Contains(o.UIDs, s.uid) {
			o.UIDs = append(o.UIDs, s.uid)
		}
	}
	slices.Sort(o.UIDs)
	for _, pid := range pids(root) {
		if name := comm(root, pid); slices.Contains(forwarders, name) && mayHold(root, pid, name, o.UIDs) {
			if arguments := argumentsOf(root, pid); forwards(name, arguments, at.Port()) {
				o.Forwarders = append(o.Forwarders, Found{PID: pid, Command: name})
			}
		}
	}
	return o
}

// mayHold reports whether a process may hold a socket that one of the users made: this user may not see the sockets of
// the process, and it runs as that user, or is a program that root starts and that then runs as another user.
func mayHold(root fs.FS, pid int, name string, uids []int) bool {
	dir := "proc/" + strconv.Itoa(pid)
	if _, err := fs.ReadDir(root, dir+"/fd"); err == nil {
		return false // holders has looked
	}
	const asRoot = 0
	if slices.Contains(uids, asRoot) && slices.Contains([]string{"stunnel", "stunnel4", "socat"}, name) {
		return true
	}
	return slices.ContainsFunc(uidsOf(root, dir), func(uid int) bool { return slices.Contains(uids, uid) })
}

// uidsOf returns the real, effective, saved and file system user of a process (proc_pid_status(5)).
func uidsOf(root fs.FS, dir string) (uids []int) {
	for line := range strings.Lines(readText(root, dir+"/status")) {
		rest, ok := strings.CutPrefix(line, "Uid:")
		if !ok {
			continue
		}
		for f := range strings.FieldsSeq(rest) {
			if uid, err := strconv.Atoi(f); err == nil {
				uids = append(uids, uid)
			}
		}
	}
	return uids
}

// argumentsOf returns the program and its arguments.
func argumentsOf(root fs.FS, pid int) []string {
	return strings.Split(strings.TrimRight(readText(root, "proc/"+strconv.Itoa(pid)+"/cmdline"), "\x00"), "\x00")
}

// forwards reports whether a forwarder with these arguments may listen on port. Only arguments that rule it out count:
// docker-proxy names its port, kubectl is told to forward, and of sshd only the processes of sessions do it.
func forwards(name string, arguments []string, port uint16) bool {
	switch name {
	case "docker-proxy":
		i := slices.Index(arguments, "-host-port")
		return i < 0 || i+1 >= len(arguments) || arguments[i+1] == strconv.Itoa(int(port))
	case "kubectl":
		return slices.Contains(arguments, "port-forward") || slices.Contains(arguments, "proxy")
	case "sshd", "sshd-session":
		title := strings.Join(arguments, " ")
		return strings.HasPrefix(title, name+": ") && !slices.ContainsFunc(
			[]string{"[listener]", "[priv]", "[net]", "[accepted]", "[preauth]"},
			func(part string) bool { return strings.Contains(title, part) })
	}
	return true
}
