// Package protocol speaks to decision points: it renders questions and reads decisions. Each adapter is one file.
package protocol

import (
	"crypto/tls"
	"net/netip"

	"tare/areas/decision/model"
	"tare/internal/load"
	"tare/internal/ratelimit"
)

// An Answer is what came back to one question.
type Answer struct {
	Decision model.Decision
	Outcome  load.Outcome
	Status   int
	// Text says in words what came, for people: "status 401: wrong credentials". It holds no secret, and at most 300
	// characters of the body.
	Text string
	// Listed is what the list holds that came, sorted and each once; nil: none came, or one that may not be shown.
	Listed []string
}

// Options are what the file says to an adapter.
type Options struct {
	Path string // below the URL; empty: the protocol's own
	// Section holds the adapter's own options, as a pointer. Options of another adapter, and nil, have no effect.
	Section any
}

// sectionOf returns the adapter's own options, if the file has any.
func sectionOf[T any](o Options) (section T, given bool) {
	if x, ok := o.Section.(*T); ok && x != nil {
		return *x, true
	}
	return section, false
}

// A Session is how a decision point is reached.
type Session struct {
	Addr    netip.AddrPort
	Host    string      // the Host header, and the name for TLS
	TLS     *tls.Config // nil: plaintext
	Base    string      // path of the URL, without a slash at its end
	Options Options
	// Username and Password are for basic authentication, Token is a bearer token. They are values: they go into requests
	// and nowhere else.
	Username string
	Password string
	Token    string
	Headers  map[string]string // besides the protocol's own
	Secrets  map[string]string // values in bodies, by the name of their place: {name}
	// Limit bounds what is sent outside of the load, together with the load; nil: no bound.
	Limit *ratelimit.Limiter

	lines *grpcLines // of ext-authz, nil until the first Operation
}
