package kit

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"tare/internal/files"
)

const (
	// lowestPort avoids the ports of well-known services.
	lowestPort = 10000
	// portTries is how many numbers are tried before the kernel chooses.
	portTries = 64
	loopback  = "127.0.0.1"
)

// FreePort replaces port 0, of which a program would not say what it became, by one that is free now. Another process
// may take it before the program does: see Program.At.
func FreePort(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return addr, err
	}
	l, err := holdPort(ctx, host, ephemeral())
	if err != nil {
		return "", fmt.Errorf("find a free port on %s: %w", host, err)
	}
	return l.Addr().String(), l.Close()
}

// FreePorts finds n ports that are free on loopback now. It holds all of them until the last is found, so that they
// differ.
func FreePorts(ctx context.Context, n int) ([]uint16, error) {
	below := ephemeral()
	held := make([]net.Listener, 0, n)
	defer func() {
		for _, l := range held {
			_ = l.Close() // it has accepted nothing
		}
	}()
	ports := make([]uint16, n)
	for i := range ports {
		l, err := holdPort(ctx, loopback, below)
		if err != nil {
			return nil, fmt.Errorf("find a free port on %s: %w", loopback, err)
		}
		held = append(held, l)
		port, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("find a free port on %s: %w", loopback, err)
		}
		ports[i] = port.Port()
	}
	return ports, nil
}

// holdPort prefers ports below those that the kernel gives to clients: from their range any connection could take the
// port before the program does, and while a server restarts, load keeps connecting to its port, and one connection in
// 28,000 would connect to itself and block the server's port indefinitely.
func holdPort(ctx context.Context, host string, below int) (net.Listener, error) {
	listen := func(port int) (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if below > 2*lowestPort {
		for range portTries {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(below-lowestPort)))
			if err != nil {
				return nil, err
			}
			if l, err := listen(lowestPort + int(n.Int64())); err == nil {
				return l, nil
			}
		}
	}
	return listen(0)
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
