package kit

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os/user"
	"strconv"
	"strings"

	"tare/area"
	"tare/internal/probe"
)

// Unseen returns a finding if a loopback address may lead to another machine, as a port-forward does, and the rate is
// unbounded. It is an error if a process listens that only forwards, if one that forwards may listen there, or if
// nothing can be known about who does. It is a warning if another user listens there and nothing hints at a forwarder.
func Unseen(addr netip.AddrPort, env area.Env) []area.Finding { return unseen(nil, addr, env) }

// Reached returns what is found of a host that was connected to at addr and asked for nothing. A look says so.
func Reached(host string, addr netip.AddrPort, env area.Env) []area.Finding {
	out := Unseen(addr, env)
	if env.Look {
		out = append(out, area.Finding{
			Path: "url", Severity: area.Info,
			Message: "connected to " + host + "; no request of the experiment was sent: what it answers shows when a run begins",
		})
	}
	return out
}

func unseen(root fs.FS, addr netip.AddrPort, env area.Env) []area.Finding {
	const bound = "set load.max_rate (--max-rate) to the most that may be sent there"
	if env.Limit != nil || !addr.Addr().IsLoopback() {
		return nil
	}
	_, _, err := probe.Listener(root, addr)
	if err == nil || errors.Is(err, probe.ErrSeveral) {
		return nil
	}
	f := area.Finding{
		Path: "load.max_rate", Severity: area.Error, Hint: bound,
		Message: fmt.Sprintf("%s may lead to another machine, and max_rate is not set: %v", addr, err),
	}
	if !errors.Is(err, fs.ErrPermission) {
		return []area.Finding{f}
	}
	owner := probe.OwnerOf(root, addr)
	who := usersNamed(owner.UIDs)
	switch {
	case who == "": // nobody listens there any more
		return []area.Finding{f}
	case len(owner.Forwarders) > 0:
		x := owner.Forwarders[0]
		f.Message = fmt.Sprintf("%s may lead to another machine, and max_rate is not set: %s listens there, and runs %s "+
			"(process %d), which forwards connections", addr, who, x.Command, x.PID)
		f.Hint += "; or run tare as root, which can see which process listens"
		return []area.Finding{f}
	}
	f.Severity = area.Warning
	f.Message = fmt.Sprintf("%s belongs to %s, so tare cannot see which process listens there; it sees no program of "+
		"that user that is known to forward to another machine, and max_rate is not set", addr, who)
	f.Hint = "if that port is forwarded to another machine, " + bound
	return []area.Finding{f}
}

// usersNamed returns "root", or "user 1000" where the user has no name here.
func usersNamed(uids []int) string {
	names := make([]string, len(uids))
	for i, uid := range uids {
		names[i] = "user " + strconv.Itoa(uid)
		if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
			names[i] = u.Username
		}
	}
	return strings.Join(names, " and ")
}
