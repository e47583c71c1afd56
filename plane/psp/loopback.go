package main

import (
	"fmt"
	"net/netip"
	"net/url"
)

// loopback reads an address that only this host can reach: "http://127.0.0.1:2379". Nothing is encrypted there, and nobody is asked who they are.
func loopback(raw string) (url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return url.URL{}, err
	}
	if u.Scheme != "http" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return url.URL{}, fmt.Errorf("address %q: want http://127.0.0.1:PORT", raw)
	}
	at, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		return url.URL{}, fmt.Errorf("address %q: %w", raw, err)
	}
	if !at.Addr().IsLoopback() || at.Port() == 0 {
		return url.URL{}, fmt.Errorf("address %q: want a port of loopback", raw)
	}
	return *u, nil
}
