package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/unit"
)

// generator checks what the load engine needs.
func (x *examiner) generator(ctx context.Context, d *Diagnosis) {
	before := x.pressures(ctx)
	d.add(x.timers(ctx)...)
	d.add(pressure(before, x.pressures(ctx)))
	d.add(x.clockSource(), openFiles(), x.ports(), x.listenQueue(), loopback(ctx), x.sources(ctx))
}

// wantFiles is what a search with its default of 4096 connections needs, including tare's own servers.
const wantFiles = 10000

// openFiles raises the soft limit to the hard limit, as the engine does before a run, and restores it.
func openFiles() Check {
	c := Check{Group: groupGenerator, Name: "open files", State: OK}
	var was, is unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		c.State, c.Found, c.Cause = Broken, "the limit cannot be read", err.Error()
		return c
	}
	c.Found = fmt.Sprintf("RLIMIT_NOFILE soft %s, hard %s", limit(was.Cur), limit(was.Max))
	c.Values = map[string]float64{"soft": float64(was.Cur), "hard": float64(was.Max)}
	usable := was.Cur
	if was.Cur < was.Max {
		err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: was.Max, Max: was.Max})
		if err == nil && unix.Getrlimit(unix.RLIMIT_NOFILE, &is) == nil && is.Cur == was.Max {
			c.Found += ", raised to the hard one by trial"
			usable = is.Cur
			err = unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
		}
		if err != nil {
			c.Found += ", could not be changed: " + err.Error()
		}
	}
	c.Values["usable"] = float64(usable)
	switch {
	case usable < 128:
		c.State, c.Cause = Broken, "a run needs at least 128 open files for its record, probes and connections"
		c.Next = fmt.Sprintf("raise the hard limit: \"ulimit -Hn %d\" as root, or LimitNOFILE in the service", wantFiles)
	case usable < wantFiles:
		c.State, c.Cause = Limited, fmt.Sprintf("a capacity search holds up to 4096 connections and its target as many; "+
			"%d files are enough for %d", usable, usable/2)
		c.Next = fmt.Sprintf("raise the hard limit: \"ulimit -Hn %d\" as root, or LimitNOFILE in the service; or set "+
			"max_connections", wantFiles)
	}
	return c
}

func limit(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

// timeWait is how long the kernel keeps the port of a connection that this side closed (TCP_TIMEWAIT_LEN, tcp.h).
const timeWait = 60

// fewPorts is below Linux's default range.
const fewPorts = 20000

// ports reports how many connections one source address can have to one target, and which rate that allows.
func (x *examiner) ports() Check {
	c := Check{Group: groupGenerator, Name: "ephemeral ports", State: OK}
	lo, hi, err := portRange(x.read("proc/sys/net/ipv4/ip_local_port_range"))
	if err != nil {
		c.State, c.Found, c.Cause = Limited, "the range is unknown", err.Error()
		c.Next = "mount /proc, so that tare can tell before a run whether the ports are enough"
		return c
	}
	n := hi - lo + 1
	c.Found = fmt.Sprintf("%d (%d to %d) from each source address: enough for %s with a timeout of 30 s if every call "+
		"stayed open, or %s with a new connection for each call",
		n, lo, hi, unit.PerSecond(float64(n/30)), unit.PerSecond(float64(n/timeWait)))
	c.Values = map[string]float64{
		"first": float64(lo), "last": float64(hi), "rate_at_30s_timeout": float64(n) / 30,
		"rate_of_new_connections": float64(n) / timeWait,
	}
	if n < fewPorts {
		c.State, c.Cause = Limited, "net.ipv4.ip_local_port_range was made smaller than the kernel's default"
		c.Next = "sysctl -w net.ipv4.ip_local_port_range='1024 65535', or keep rate × timeout below the number of ports"
	}
	return c
}

func portRange(text string) (lo, hi int, err error) {
	if n, err := fmt.Sscan(text, &lo, &hi); err != nil || n != 2 || lo < 1 || hi > 65535 || lo > hi {
		return 0, 0, fmt.Errorf("net.ipv4.ip_local_port_range reads %.40q", text)
	}
	return lo, hi, nil
}

// listenQueue reports the longest queue of a listening socket, whatever its server asks for.
func (x *examiner) listenQueue() Check {
	c := Check{Group: groupGenerator, Name: "listen backlog", State: Info}
	var n int
	if _, err := fmt.Sscan(x.read("proc/sys/net/core/somaxconn"), &n); err != nil {
		c.Found = "net.core.somaxconn cannot be read"
		return c
	}
	c.Found = fmt.Sprintf("net.core.somaxconn %d: embedded servers queue at most that many connections, and one more", n)
	c.Values = map[string]float64{"somaxconn": float64(n)}
	if n < 1024 {
		c.State, c.Cause = Limited, "presets that model a backlog of 1024 would break at "+fmt.Sprint(n)
		c.Next = "sysctl -w net.core.somaxconn=4096"
	}
	return c
}

// loopback makes one connection within this host, as every run with an embedded target does.
func loopback(ctx context.Context) Check {
	c := Check{Group: groupGenerator, Name: "loopback", State: OK, Found: "listened and connected on 127.0.0.1"}
	if err := connect(ctx, ""); err != nil {
		c.State, c.Found, c.Cause = Broken, "no connection within this host", err.Error()
		c.Next = "bring the loopback interface up: \"ip link set lo up\""
	}
	return c
}

// sources tries source addresses other than 127.0.0.1: some targets identify clients by their address.
func (x *examiner) sources(ctx context.Context) Check {
	c := Check{
		Group: groupGenerator, Name: "source addresses", State: OK,
		Found: "connected from 127.1.0.1, 127.1.2.3 and 127.1.255.254: identities by source address work",
	}
	for _, from := range []string{"127.1.0.1", "127.1.2.3", "127.1.255.254"} {
		if err := connect(ctx, from); err != nil {
			c.State, c.Found, c.Cause = Missing, "no connection from "+from, err.Error()
			c.Next = "experiments that tell identities apart by source address need 127.0.0.0/8 on lo: \"ip addr add " +
				"127.0.0.1/8 dev lo\""
			return c
		}
	}
	return c
}

// connect connects from the address to a listener on 127.0.0.1, and checks that the listener sees that address.
func connect(ctx context.Context, from string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.Close() //nolint:errcheck // nothing to lose
	dialer := net.Dialer{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	out, err := dialer.DialContext(ctx, "tcp4", l.Addr().String())
	if err != nil {
		return err
	}
	defer out.Close()     //nolint:errcheck // nothing to lose
	in, err := l.Accept() // the connection is established: this does not wait
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	defer in.Close() //nolint:errcheck // nothing to lose
	if seen := in.RemoteAddr().String(); from != "" && !strings.HasPrefix(seen, from+":") {
		return errors.New("the other side saw " + seen)
	}
	return nil
}
