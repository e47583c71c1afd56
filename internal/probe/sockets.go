package probe

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"tare/internal/metric"
)

// ListenQueue reads the accept queue of the sockets that listen on a TCP port.
type ListenQueue struct {
	Name string // the subject
	Port uint16
	PID  int   // whose network namespace to read; 0: tare's own
	Root fs.FS // nil: this machine
}

var _ Probe = ListenQueue{}

// Subject implements Probe.
func (l ListenQueue) Subject() string { return l.Name }

// Read implements Probe. It sums over several sockets on the port (IPv4 and IPv6, SO_REUSEPORT). The error wraps
// ErrGone when nothing listens there. The limit is only known in tare's own network namespace.
func (l ListenQueue) Read(ctx context.Context) ([]metric.Sample, error) {
	out := samples{subject: l.Name}
	if l.Root == nil && l.PID == 0 && ctx.Err() == nil {
		if q := askListeners(l.Port); q.found {
			out.add(ListenQueueDepth, q.depth)
			out.add(ListenQueueLimit, q.limit)
			return out.list, nil
		}
	}
	root, base := rootFS(l.Root), netDir(l.PID)
	var depth float64
	found := false
	for _, name := range []string{"tcp", "tcp6"} {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("probe %s: %w", l.Name, err)
		}
		if d, ok := parseListenQueue(readText(root, base+name), l.Port); ok {
			depth += d
			found = true
		}
	}
	if !found {
		return nil, fmt.Errorf("probe %s: nothing listens on port %d: %w", l.Name, l.Port, ErrGone)
	}
	out.add(ListenQueueDepth, depth)
	return out.list, nil
}

func netDir(pid int) string {
	if pid == 0 {
		return "proc/self/net/"
	}
	return "proc/" + strconv.Itoa(pid) + "/net/"
}

// parseListenQueue sums rx_queue over the listening sockets on port, in proc_net_tcp format:
//
//	sl local_address rem_address st tx_queue:rx_queue …
//	0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 …
//
// In state 0A (LISTEN) rx_queue is the length of the accept queue.
func parseListenQueue(text string, port uint16) (depth float64, found bool) {
	const listening = "0A"
	want := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || f[3] != listening || !strings.HasSuffix(f[1], want) {
			continue
		}
		_, rx, _ := strings.Cut(f[4], ":")
		n, err := strconv.ParseUint(rx, 16, 32)
		if err != nil {
			continue
		}
		depth += float64(n)
		found = true
	}
	return depth, found
}
