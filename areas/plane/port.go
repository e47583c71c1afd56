package plane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/probe"
)

const (
	// lowestPort avoids the ports of well-known services.
	lowestPort = 10000
	// portTries is how many numbers are tried before the kernel chooses.
	portTries = 64
	// portsFreeWithin bounds the wait for ports after their listeners have ended.
	portsFreeWithin = 10 * time.Second
)

// freePorts finds n free ports on loopback. It holds all of them until the last is found, so that they differ; another
// process may take one afterwards (see isPortTaken).
func freePorts(ctx context.Context, n int) ([]uint16, error) {
	below := ephemeral()
	held := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range held {
			_ = l.Close() // it has accepted nothing
		}
	}()
	ports := make([]uint16, n)
	for i := range ports {
		l, err := holdPort(ctx, below)
		if err != nil {
			return nil, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
		}
		held = append(held, l)
		port, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
		}
		ports[i] = port.Port()
	}
	return ports, nil
}

// holdPort prefers ports below those that the kernel gives to clients. While a server restarts, load keeps connecting
// to its port: with a port from the clients' range, one connection in 28,000 would connect to itself and block the
// server's port indefinitely.
func holdPort(ctx context.Context, below int) (net.Listener, error) {
	if below > 2*lowestPort {
		for range portTries {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(below-lowestPort)))
			if err != nil {
				return nil, err
			}
			if l, err := listen(ctx, lowestPort+int(n.Int64())); err == nil {
				return l, nil
			}
		}
	}
	return listen(ctx, 0)
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// ephemeral returns the first port that the kernel gives to clients (ip(7), ip_local_port_range); 0: unknown.
func ephemeral() int {
	text, err := files.Kernel("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\t")
	n, err := strconv.Atoi(first)
	if err != nil || n < 0 || n > 1<<16 {
		return 0
	}
	return n
}

// awaitFree waits until no process listens on ports. One that started after a time, or that is not visible from here,
// has taken a port that was free again.
func awaitFree(ctx context.Context, c clock.Clock, ports []uint16, after ticks) error {
	until := c.Now().Add(portsFreeWithin)
	for _, p := range ports {
		for {
			l, err := listen(ctx, int(p))
			if err == nil {
				_ = l.Close() // it has accepted nothing
				break
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("check whether port %d is free again: %w", p, err)
			}
			if !c.Now().Before(until) {
				if isTakenByOthers(p, after) {
					break
				}
				return fmt.Errorf("a process still listens on 127.0.0.1:%d: find it with 'ss -ltnp sport = :%d'", p, p)
			}
			if err := c.Sleep(ctx, pollEvery); err != nil {
				return err
			}
		}
	}
	return nil
}

// ticks is a time since the boot, as the kernel says when processes started; the largest: none has started later.
type ticks uint64

const never = ticks(math.MaxUint64)

// ticksNow is the time in hundredths of a second (proc(5): USER_HZ), or never where it is not known.
func ticksNow() ticks {
	text, err := files.Kernel("/proc/uptime")
	if err != nil {
		return never
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || seconds < 0 {
		return never
	}
	return ticks(100 * seconds)
}

func isTakenByOthers(port uint16, after ticks) bool {
	_, start, err := probe.Listener(nil, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	return errors.Is(err, probe.ErrHidden) || err == nil && ticks(start) > after
}

// isPortTaken reports whether a component ended because another process listens on one of its ports: all components
// quote the kernel's error.
func isPortTaken(err error) bool {
	return err != nil && strings.Contains(err.Error(), "address already in use")
}
