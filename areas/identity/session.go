package identity

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/load"
)

// A session is what an adapter needs to know of a target under one treatment. Identities have keys from 0 to
// identities() − 1.
type session struct {
	spec      *Spec             // the adapter's options; read only
	host      string            // the Host header
	base      string            // path of the URL without a slash at its end: "" or "/realms/x"
	headers   map[string]string // besides the protocol's own
	operation string
	account   string   // accountDefault, accountEmail or an address
	emails    []string // the account of each identity; empty ones are unknown. Its length is the number of identities.
	subjects  []string // whose token each identity got in Prepare; empty or missing: unknown
	nonce     string   // makes audiences that nobody has asked for before; letters, digits and dashes
	distinct  bool     // identities have accounts of their own, so none may get another's token
	clock     clock.Clock
	tally     *tally            // of the tokens that the load gets; nil: they are not counted
	creds     *credentials      // nil: there are no secrets and no leases
	files     map[string]string // contents of the files in the body of http-token, by name
}

// identities returns how many callers ask in turn: call i is identity i modulo this.
func (s session) identities() int { return len(s.emails) }

// caller returns the file's entry for one identity; the zero Caller without one.
func (s session) caller(key int) Caller {
	if s.spec != nil && key < len(s.spec.Callers) {
		return s.spec.Callers[key]
	}
	return Caller{}
}

// secret returns the current value of x, "" for the zero Secret. It may only go into a request's bytes.
func (s session) secret(x area.Secret) string {
	if s.creds == nil {
		return ""
	}
	return s.creds.secret(x)
}

// token returns the credential of one identity: that of its caller entry, or else the adapter's option.
func (s session) token(key int, otherwise area.Secret) string {
	if t := s.caller(key).Token; !t.IsZero() {
		return s.secret(t)
	}
	return s.secret(otherwise)
}

// hasToken reports whether every identity has a credential of its own, or the adapter's option gives one to all.
func (s session) hasToken(otherwise area.Secret) bool {
	return !otherwise.IsZero() || s.spec.everyCaller(hasToken)
}

// guessing returns why a request with a wrong secret of a real account must not be made thousands of times, "" if the
// file says that it may.
func (s session) guessing(why string) string {
	if s.spec.NoLockout {
		return ""
	}
	return why + "; where this server locks nobody out, set no_lockout: true"
}

// lease returns what login has obtained for an identity.
func (s session) lease(key int) string {
	if s.creds == nil {
		return ""
	}
	return s.creds.lease(key)
}

// headerLines returns the headers that the file asks for, sorted, as "Name: value".
func (s session) headerLines(key int) []string {
	all := maps.Clone(s.headers)
	if all == nil {
		all = map[string]string{}
	}
	c := s.caller(key)
	maps.Copy(all, c.Headers)
	if s.spec != nil {
		for name, x := range s.spec.SecretHeaders {
			all[name] = s.secret(x)
		}
	}
	for name, x := range c.SecretHeaders {
		all[name] = s.secret(x)
	}
	lines := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, name+": "+all[name])
	}
	return lines
}

// request renders a whole HTTP/1.1 request of one identity, with the headers that the file asks for after the
// protocol's own ("Name: value"). path includes session.base. A body of nil has no Content-Length, except for POST, PUT
// and PATCH. Texts may hold s.unique(…)'s marks.
func (s session) request(key int, method, path string, body []byte, headers ...string) []byte {
	b := []byte(method + " " + path + " HTTP/1.1\r\nHost: " + s.host + "\r\nUser-Agent: tare\r\n")
	for _, h := range append(headers, s.headerLines(key)...) {
		b = append(b, h+"\r\n"...)
	}
	if body != nil || method == "POST" || method == "PUT" || method == "PATCH" {
		b = append(b, "Content-Length: "+strconv.Itoa(len(body))+"\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, body...)
}

// placeholder is what stands for a call's own number in the file's texts.
const placeholder = "{n}"

// unique replaces {n} in a text of the file: in each call it becomes something that was never used before.
func (s session) unique(text string) string {
	return strings.ReplaceAll(text, placeholder, s.nonce+"-"+load.CallMark)
}

// requests are the request bytes of each identity, rendered ahead. They are rendered anew when a secret or lease
// changes, by the arm's renewer: the load engine only ever copies.
type requests struct {
	render func(key int) []byte
	now    []atomic.Pointer[load.Template]
}

// requests renders a request for each identity with render, which must be safe to be called again at any time.
func (s session) requests(render func(key int) []byte) *requests {
	r := &requests{render: render, now: make([]atomic.Pointer[load.Template], s.identities())}
	if s.creds != nil {
		s.creds.follow(r)
	}
	r.renew()
	return r
}

func (r *requests) renew() {
	for key := range r.now {
		r.renewOne(key)
	}
}

func (r *requests) renewOne(key int) {
	if key < len(r.now) {
		r.now[key].Store(load.NewTemplate(r.render(key)))
	}
}

// key returns the identity of call i.
func (r *requests) key(i uint64) int { return int(i % uint64(len(r.now))) }

// appendTo appends the request of call i.
func (r *requests) appendTo(dst []byte, i uint64) []byte {
	return r.now[r.key(i)].Load().AppendTo(dst, i)
}

// String keeps secrets out of anything that prints a session.
func (s session) String() string { return fmt.Sprintf("session of %s, %s", s.host, s.operation) }

// GoString does the same.
func (s session) GoString() string { return s.String() }
