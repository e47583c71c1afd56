// Package kit helps areas: sections of files, processes, single requests.
package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"tare/area"
)

// ResolveHost returns the address behind a URL, IPv4 first, since metadata servers have only that. Without a port the
// scheme's is used.
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

// ExplainDial says why no connection to a host was made, and the next step. ok is false when err does not come from
// connecting.
func ExplainDial(host string, err error) (f area.Finding, ok bool) {
	dial, isDial := errors.AsType[*net.OpError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	f = area.Finding{Path: "url", Severity: area.Error}
	switch {
	case isDNS && dns.IsNotFound:
		f.Message = fmt.Sprintf("there is no host named %s", dns.Name)
		f.Hint = "see that the name is right, and that this host's resolver knows it"
	case isDNS:
		f.Message = fmt.Sprintf("the name %s cannot be resolved: %v", dns.Name, dns)
		f.Hint = "see that this host's resolver answers"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Message = fmt.Sprintf("nothing listens at %s: the connection is refused", host)
		f.Hint = "start the server, or see that the address has its port"
	case isDial && dial.Op == "dial" && dial.Timeout():
		f.Message = fmt.Sprintf("%s does not accept a connection in time", host)
		f.Hint = "see that the server runs, and that no firewall drops what this host sends to it"
	case isDial && dial.Op == "dial":
		f.Message = fmt.Sprintf("cannot connect to %s: %v", host, dial.Err)
		f.Hint = "see that the server runs, and that this host can reach it"
	default:
		return area.Finding{}, false
	}
	return f, true
}

// HostPort returns the host of a URL with its port or, without one, with its scheme.
func HostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), u.Scheme)) }

// CheckPort returns an error if a URL has a port that is out of range.
func CheckPort(u *url.URL) error {
	text := u.Port()
	if port, err := strconv.ParseUint(text, 10, 16); text != "" && (err != nil || port == 0) {
		return fmt.Errorf("port %s: ports are numbers from 1 to 65535", text)
	}
	return nil
}

// LoopbackURL reports whether the host of a URL is this machine, as LoopbackHost does. An empty URL means a server that
// tare starts on this machine.
func LoopbackURL(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && LoopbackHost(u.Hostname())
}

// LoopbackPort reports whether a word is a host on this machine with its port, and perhaps a path, but without a
// scheme: "localhost:8080".
func LoopbackPort(word string) bool {
	u, err := url.Parse("http://" + word)
	return err == nil && HasPort(word) && LoopbackHost(u.Hostname())
}

// HasPort reports whether a word is a host with its port, and perhaps a path, but without a scheme and a user.
func HasPort(word string) bool {
	u, err := url.Parse("http://" + word)
	return err == nil && u.Port() != "" && u.Hostname() != "" && u.User == nil
}

// LoopbackHost reports whether a URL's host is this machine: a loopback address, or localhost. Any other name does not
// count as this machine: what it resolves to may change between validation and the run.
func LoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// SameServer refuses an endpoint that a server names if it is not on that server.
func SameServer(u *url.URL, endpoint, adapter string) error {
	e, err := url.Parse(endpoint)
	if err == nil && len(endpoint) < 500 && e.User == nil && e.RawQuery == "" && e.Fragment == "" &&
		e.Scheme == u.Scheme && strings.EqualFold(e.Host, u.Host) {
		return nil
	}
	return area.Usage("%s names an endpoint on another address: %.200q; if that is to be measured, "+
		"give it with --adapter %s",
		u, endpoint, adapter)
}
