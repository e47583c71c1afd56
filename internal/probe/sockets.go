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
	out := samples{subject: l.Name}
	out.add(ListenQueueDepth, depth)
	if l.Root == nil && l.PID == 0 {
		if limit, ok := listenLimit(l.Port); ok {
			out.add(ListenQueueLimit, limit)
		}
	}
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

// SockStat reads the TCP counters of a network namespace.
type SockStat struct {
	PID  int   // whose network namespace to read; 0: tare's own
	Root fs.FS // nil: this machine
}

var _ Probe = SockStat{}

// Subject implements Probe.
func (SockStat) Subject() string { return HostSubject }

// Read implements Probe.
func (s SockStat) Read(ctx context.Context) ([]metric.Sample, error) {
	root, base := rootFS(s.Root), netDir(s.PID)
	text, err := readRequired(ctx, root, base+"sockstat")
	if err != nil {
		return nil, fmt.Errorf("probe sockets: %w", err)
	}
	out := samples{subject: HostSubject}
	tcp := parseSockstat(text)
	for _, f := range []struct {
		key string
		q   Quantity
	}{{"inuse", TCPInUse}, {"tw", TCPTimeWait}, {"orphan", TCPOrphans}} {
		if v, ok := tcp[f.key]; ok {
			out.add(f.q, v)
		}
	}
	ext, snmp := parsePairs(readText(root, base+"netstat")), parsePairs(readText(root, base+"snmp"))
	for _, f := range []struct {
		from map[string]float64
		key  string
		q    Quantity
	}{
		{ext, "TcpExt.ListenOverflows", ListenOverflows},
		{ext, "TcpExt.ListenDrops", ListenDrops},
		{snmp, "Tcp.RetransSegs", TCPRetransmitted},
	} {
		if v, ok := f.from[f.key]; ok {
			out.add(f.q, v)
		}
	}
	return out.list, nil
}

// parseSockstat reads the line "TCP: inuse 5 orphan 0 tw 1 alloc 7 mem 1".
func parseSockstat(text string) map[string]float64 {
	m := make(map[string]float64)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "TCP:" {
			continue
		}
		for i := 1; i+1 < len(f); i += 2 {
			if v, ok := parseNumber(f[i+1]); ok {
				m[f[i]] = v
			}
		}
	}
	return m
}

// parsePairs reads pairs of lines, names then values, as in /proc/net/netstat and snmp:
//
//	TcpExt: SyncookiesSent ListenOverflows
//	TcpExt: 0 17
func parsePairs(text string) map[string]float64 {
	m := make(map[string]float64)
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(names) != len(f) || names[0] != f[0] {
			names = f
			continue
		}
		for i := 1; i < len(f); i++ {
			if v, ok := parseNumber(f[i]); ok {
				m[strings.TrimSuffix(f[0], ":")+"."+names[i]] = v
			}
		}
		names = nil
	}
	return m
}
