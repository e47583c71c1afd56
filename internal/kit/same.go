package kit

import (
	"net/url"
	"strings"

	"tare/area"
)

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
