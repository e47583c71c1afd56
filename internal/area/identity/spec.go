package identity

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tare/internal/area"
	"tare/internal/area/identity/reference"
	"tare/internal/design"
)

// Spec is the `target:` section of an identity experiment: an embedded pair of servers, or the URL of an endpoint.
type Spec struct {
	// Adapter names the protocol that the endpoint speaks.
	Adapter string `yaml:"adapter" json:"adapter" jsonschema:"required,enum=gce-metadata" jsonschema_description:"Protocol of the token endpoint."`
	// URL is the endpoint's base; the adapter adds the protocol's paths.
	URL string `yaml:"url,omitempty" json:"url,omitempty" jsonschema_description:"Base URL of the endpoint under test, such as http://169.254.169.254. Leave it out for the embedded one."`
	// Embedded describes the reference servers that tare starts itself.
	Embedded *Embedded `yaml:"embedded,omitempty" json:"embedded,omitempty" jsonschema_description:"Reference servers that tare starts itself: a preset, and any knob turned."`
	// Operation is what is asked for.
	Operation string `yaml:"operation,omitempty" json:"operation,omitempty" jsonschema:"enum=token,enum=identity" jsonschema_description:"token: an access token, from the endpoint's cache when that is warm (default). identity: an identity token for an audience that nobody has asked for before, which is always made afresh."`
	// Identities is how many workloads ask, in turn.
	Identities int `yaml:"identities,omitempty" json:"identities,omitempty" jsonschema:"minimum=1,maximum=64000" jsonschema_description:"Number of workloads that ask in turn. On loopback each has a source address of its own, 127.1.x.y. Default 1."`
	// Account is whose token is asked for.
	Account string `yaml:"account,omitempty" json:"account,omitempty" jsonschema_description:"Service account in the path: default, email (the workload's own account by its address), or an address. Default: default."`
	// Headers are sent with every request, besides those of the protocol.
	Headers map[string]string `yaml:"headers,omitempty" json:"headers,omitempty" jsonschema_description:"Further request headers. They must hold no secret."`
}

var _ area.Spec = (*Spec)(nil)

// The operations.
const (
	opToken    = "token"
	opIdentity = "identity"
)

// The words for accounts.
const (
	accountDefault = "default"
	accountEmail   = "email"
)

// plan is a Spec with defaults filled in and the levels of one treatment applied.
type plan struct {
	adapter    adapter
	url        *url.URL // nil: embedded
	knobs      reference.Knobs
	preset     string
	operation  string
	identities int
	as         string // the account asked for: a word or an address
	headers    map[string]string
}

// Loopback implements area.Spec: it reports whether the embedded servers are used or the URL names a loopback address. A host name
// counts as elsewhere, except localhost: what a name means may change between validation and the run.
func (s *Spec) Loopback() bool {
	if s.URL == "" {
		return true
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return false
	}
	return loopbackHost(u.Hostname())
}

func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Validate implements area.Spec.
func (s *Spec) Validate(q design.Question, treatments []design.Treatment) []area.Finding {
	var out []area.Finding
	wrong := func(path, hint string, err error) {
		out = append(out, area.Finding{Path: path, Severity: area.Error, Message: err.Error(), Hint: hint})
	}
	if cell := (Area{}).Cells()[q]; !cell.Answered {
		wrong("", "ask for capacity", fmt.Errorf("identity does not answer %q: %s", q, cell.Reason))
	}
	if s.URL != "" {
		if _, err := parseURL(s.URL); err != nil {
			wrong("url", "write the base only, such as http://169.254.169.254", err)
		}
		if s.Embedded != nil {
			wrong("embedded", "leave one of them out", errors.New("url and embedded exclude each other"))
		}
		if s.Identities > 1 && !s.Loopback() {
			wrong("identities", "leave it out", errors.New("identities are told apart by source address, which only loopback targets let us choose"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if err := checkHeader(name, s.Headers[name]); err != nil {
			wrong("headers."+name, "", err)
		}
	}
	if len(out) > 0 {
		return out
	}
	if len(treatments) == 0 {
		treatments = []design.Treatment{{ID: design.ID(nil)}}
	}
	for _, t := range treatments {
		if _, err := s.plan(t); err != nil {
			f := area.Finding{Path: s.pathOf(err), Severity: area.Error, Message: err.Error()}
			if len(t.Levels) > 0 {
				f.Path, f.Message = "", fmt.Sprintf("treatment %q: %v", t.ID, err)
			}
			out = append(out, f)
		}
	}
	return out
}

// pathOf finds the field that an error of plan begins with.
func (s *Spec) pathOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), " ")
	name = strings.TrimRight(name, ":,")
	switch {
	case slices.Contains(callerFactors, name) || name == "adapter":
		return name
	case s.Embedded != nil && slices.Contains(knobNames(), name):
		return "embedded." + name
	}
	return ""
}

// plan applies the levels of t to s. Errors name the level.
func (s *Spec) plan(t design.Treatment) (plan, error) {
	p := plan{operation: s.Operation, identities: s.Identities, as: s.Account, headers: s.Headers}
	var err error
	if p.adapter, err = findAdapter(s.Adapter); err != nil {
		return p, err
	}
	levels := maps.Clone(t.Levels)
	if err := p.ask(levels); err != nil {
		return p, err
	}
	if s.URL != "" {
		if err := refuseLevels(levels, nil); err != nil {
			return p, fmt.Errorf("%w; the knobs of an endpoint behind a URL are not ours to turn", err)
		}
		p.url, err = parseURL(s.URL)
		return p, err
	}
	p.preset, p.knobs, err = s.Embedded.resolve(levels)
	return p, err
}

// ask takes the levels that concern the caller out of levels, and fills in defaults.
func (p *plan) ask(levels map[string]string) error {
	take := func(name string, into *string, otherwise string) {
		if v, ok := levels[name]; ok {
			*into = v
			delete(levels, name)
		}
		if *into == "" {
			*into = otherwise
		}
	}
	take("operation", &p.operation, opToken)
	take("account", &p.as, accountDefault)
	count := strconv.Itoa(max(1, p.identities))
	take("identities", &count, "1")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxIdentities {
		return fmt.Errorf("identities: %q is not a number from 1 to %d", count, maxIdentities)
	}
	p.identities = n
	if !slices.Contains(p.adapter.operations(), p.operation) {
		return fmt.Errorf("operation: %q is not one of %s", p.operation, strings.Join(p.adapter.operations(), ", "))
	}
	if p.as != accountDefault && p.as != accountEmail && !plainAddress(p.as) {
		return fmt.Errorf("account: %q is neither default nor email nor an e-mail address", p.as)
	}
	return nil
}

// plainAddress reports whether s can stand in a path as it is.
func plainAddress(s string) bool {
	for _, c := range s {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("@.-_+", c) {
			return false
		}
	}
	return strings.Contains(s, "@")
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("this is not a URL with a host")
	case u.Scheme == "https":
		return nil, errors.New("https is not built yet for this adapter: it needs engine std with TLS")
	case u.Scheme != "http":
		return nil, fmt.Errorf("scheme %q is not http", u.Scheme)
	case u.User != nil:
		return nil, errors.New("a URL must not hold credentials")
	case (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL must end with its host: the adapter adds the path")
	}
	return u, nil
}

// secretNames mark headers that usually carry secrets.
var secretNames = []string{"authorization", "cookie", "token", "secret", "key", "password", "credential"}

// checkHeader refuses headers that would break the request, disarm the protocol, or put a secret into the file.
func checkHeader(name, value string) error {
	lower := strings.ToLower(name)
	for _, s := range secretNames {
		if strings.Contains(lower, s) {
			return fmt.Errorf("header %s looks like a secret, and secrets must not stand in the file; this adapter needs none", name)
		}
	}
	switch lower {
	case "host", "connection", "content-length", "transfer-encoding", "metadata-flavor", "x-forwarded-for", "expect", "te", "upgrade":
		return fmt.Errorf("header %s belongs to the protocol", name)
	}
	for _, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("%q is not a header name", name)
		}
	}
	for _, c := range value {
		if c < ' ' || c > '~' {
			return fmt.Errorf("the value of header %s has characters other than printable ASCII", name)
		}
	}
	if name == "" {
		return errors.New("a header needs a name")
	}
	return nil
}
