package load

import (
	"fmt"
	"math"

	"tare/internal/unit"
)

// Connections returns the maximum number of connections that the stream can need: min(MaxConns, MaxRate × Timeout),
// since no more calls can be outstanding.
func (c *Config) Connections() int {
	if need := math.Ceil(c.MaxRate * c.Timeout.Seconds()); c.MaxRate > 0 && need < float64(c.MaxConns) {
		return max(1, int(need))
	}
	return c.MaxConns
}

// Limits are the host's limits for this process. Zero means unknown, and is not checked.
type Limits struct {
	Files     int // open files that the process may have: the hard RLIMIT_NOFILE
	OpenFiles int // open files that it has
	Ports     int // ephemeral ports of each source address
}

// spareFiles are reserved for logs, records, probes and child processes.
const spareFiles = 64

// Check returns an error if a limit is too low for conns connections from so many source addresses. It says what to
// set.
func (l Limits) Check(conns, sources int) error {
	if files := conns + l.OpenFiles + spareFiles; l.Files > 0 && files > l.Files {
		return fmt.Errorf("%d connections need %d open files, and the limit (RLIMIT_NOFILE) is %d: run \"ulimit -n %d\" "+
			"first, or set max_connections to %d or less",
			conns, files, l.Files, files, max(1, l.Files-l.OpenFiles-spareFiles))
	}
	if ports := l.Ports * sources; l.Ports > 0 && conns > ports {
		return fmt.Errorf("%d connections need as many ephemeral ports, and net.ipv4.ip_local_port_range has %d for "+
			"%s: widen it with \"sysctl -w net.ipv4.ip_local_port_range='1024 65535'\", or set "+
			"max_connections to %d or less",
			conns, ports, unit.Count(sources, "source address"), ports)
	}
	return nil
}
