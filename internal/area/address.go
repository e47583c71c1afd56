package area

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// ResolveHost finds the address behind a URL, IPv4 first: metadata servers have no other. Without a port it is that of
// the scheme.
func ResolveHost(ctx context.Context, u *url.URL) (netip.AddrPort, error) {
	port := uint64(80)
	if u.Scheme == "https" || u.Scheme == "grpcs" {
		port = 443
	}
	if u.Port() != "" {
		var err error
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return netip.AddrPort{}, fmt.Errorf("port %q: %w", u.Port(), err)
		}
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return netip.AddrPort{}, err
	}
	best := addrs[0]
	for _, a := range addrs {
		if a.Unmap().Is4() && !best.Unmap().Is4() {
			best = a
		}
	}
	return netip.AddrPortFrom(best.Unmap(), uint16(port)), nil
}

// HostPort is the host of a URL with its port, or with its scheme where it has no port.
func HostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), u.Scheme)) }

// LoopbackURL reports whether the host of a URL is this machine, as LoopbackHost does. An empty URL is of a server that
// tare starts itself, which is.
func LoopbackURL(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && LoopbackHost(u.Hostname())
}

// LoopbackHost reports whether a URL's host is this machine: a loopback address, or localhost. Another name counts as
// elsewhere: what it means may change between validation and the run.
func LoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
