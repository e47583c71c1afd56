package kit

import (
	"fmt"
	"net/netip"

	"tare/area"
	"tare/internal/probe"
)

// Unseen returns a finding if a loopback address may lead to another machine, as a port-forward does, and the rate is
// unbounded: no visible process of this host listens there, or one that only forwards.
func Unseen(addr netip.AddrPort, env area.Env) []area.Finding {
	if env.Limit != nil || !addr.Addr().IsLoopback() {
		return nil
	}
	_, _, err := probe.Listener(nil, addr.Port())
	if err == nil {
		return nil
	}
	return []area.Finding{{
		Path: "load.max_rate", Severity: area.Error,
		Message: fmt.Sprintf("%s may lead to another machine, and max_rate is not set: %v", addr, err),
		Hint: "set load.max_rate to the most that may be sent there; or run tare as root, if the server runs on this " +
			"host as another user",
	}}
}
