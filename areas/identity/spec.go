package identity

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/kit"
)

// Spec is the `target:` section of an identity experiment: an embedded pair of servers, or the URL of an endpoint.
type Spec struct {
	// Adapter names the protocol that the endpoint speaks.
	Adapter AdapterName `yaml:"adapter" json:"adapter" jsonschema:"required" jsonschema_description:"Protocol of the token endpoint."`
	// URL is the endpoint's base; the adapter adds the protocol's paths.
	URL string `yaml:"url,omitempty" json:"url,omitempty" jsonschema_description:"Base URL of the endpoint under test, such as http://169.254.169.254 or https://vault:8200. Leave it out for the embedded one, which gce-metadata has."`
	// Embedded describes the reference servers that tare starts itself.
	Embedded *Embedded `yaml:"embedded,omitempty" json:"embedded,omitempty" jsonschema_description:"Reference servers that tare starts itself: a preset, and any knob turned."`
	// Operation is what is asked for.
	Operation OperationName `yaml:"operation,omitempty" json:"operation,omitempty" jsonschema_description:"token: an access token, from the endpoint's cache when that is warm (the default where there is one). identity: an identity token for an audience that nobody has asked for before, which is always made afresh. credentials: temporary credentials of AWS, of imdsv2, eks-pod-identity and sts-web-identity. Others belong to one adapter: session to imdsv2, fresh (past the cache) to azure-imds, login to vault-login, review to k8s-tokenreview."`
	// Identities is how many workloads ask, in turn.
	Identities int `yaml:"identities,omitempty" json:"identities,omitempty" jsonschema:"minimum=1,maximum=64000" jsonschema_description:"Number of workloads that ask in turn. On loopback each has a source address of its own, 127.1.x.y. Default 1."`
	// Account is whose token is asked for.
	Account string `yaml:"account,omitempty" json:"account,omitempty" jsonschema_description:"Service account in the path: default, email (the workload's own account by its address), or an address. Default: default."`
	// Headers are sent with every request, besides those of the protocol.
	Headers map[string]string `yaml:"headers,omitempty" json:"headers,omitempty" jsonschema_description:"Further request headers. They must hold no secret."`
	// SecretHeaders are headers whose values are secrets.
	SecretHeaders map[string]area.Secret `yaml:"secret_headers,omitempty" json:"secret_headers,omitempty" jsonschema_description:"Further request headers with secrets: {env: NAME} or {file: path}."`
	// Callers are identities that differ in more than their source address.
	Callers []Caller `yaml:"callers,omitempty" json:"callers,omitempty" jsonschema:"minItems=1,maxItems=10000" jsonschema_description:"The workloads that ask in turn, where each has its own credential, headers, audience or address. Instead of identities."`
	// Expect is what tokens have to say.
	Expect *Expect `yaml:"expect,omitempty" json:"expect,omitempty" jsonschema_description:"What the claims of a token must say, for endpoints that give JWTs."`
	// TLS says whom to trust over https.
	TLS *kit.TLS `yaml:"tls,omitempty" json:"tls,omitempty" jsonschema_description:"For https: whom to trust, and who we are."`
	// ExposeSecrets allows secrets to be sent where others could read them.
	ExposeSecrets bool `yaml:"expose_secrets,omitempty" json:"expose_secrets,omitempty" jsonschema_description:"Send secrets to another host even over http://, or without verifying its certificate. Every report will say so."`

	// Trespass are further requests that must be refused.
	Trespass []Trespass `yaml:"trespass,omitempty" json:"trespass,omitempty" jsonschema:"minItems=1,maxItems=32" jsonschema_description:"Further requests that the endpoint must refuse: each is the request of the operation with what its entry changes. They are verified before the load, and guard mixes them into it."`
	// NoLockout says that wrong secrets harm nobody.
	NoLockout bool `yaml:"no_lockout,omitempty" json:"no_lockout,omitempty" jsonschema_description:"The endpoint locks no account out, however often it gets a wrong secret. Without it, guard never tries wrong secrets of real clients, roles or users."`

	OIDC  *OIDC  `yaml:"oidc,omitempty" json:"oidc,omitempty" jsonschema_description:"Options of oidc-token."`
	Vault *Vault `yaml:"vault,omitempty" json:"vault,omitempty" jsonschema_description:"Options of vault-login."`
	HTTP  *HTTP  `yaml:"http,omitempty" json:"http,omitempty" jsonschema_description:"Options of http-token."`
	K8s   *K8s   `yaml:"k8s,omitempty" json:"k8s,omitempty" jsonschema_description:"Options of k8s-tokenrequest and k8s-tokenreview."`
	IMDS  *IMDS  `yaml:"imds,omitempty" json:"imds,omitempty" jsonschema_description:"Options of imdsv2."`
	STS   *STS   `yaml:"sts,omitempty" json:"sts,omitempty" jsonschema_description:"Options of sts-web-identity."`
	EKS   *EKS   `yaml:"eks,omitempty" json:"eks,omitempty" jsonschema_description:"Options of eks-pod-identity."`
	Azure *Azure `yaml:"azure,omitempty" json:"azure,omitempty" jsonschema_description:"Options of azure-imds."`
}

var _ area.Spec = (*Spec)(nil)

// AdapterName is the name of an adapter.
type AdapterName string

// Words implements area.Worded.
func (AdapterName) Words() (names []string) {
	for _, a := range adapters() {
		names = append(names, a.name)
	}
	return names
}

// OperationName is the name of an operation of any adapter.
type OperationName string

// Words implements area.Worded.
func (OperationName) Words() (names []string) {
	for _, a := range adapters() {
		for _, name := range a.offers() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

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

// maxIdentities is how many source addresses 127.1.0.1 … 127.1.255.250 there are.
const maxIdentities = 256 * 250

// sourceOf returns the source address of an identity on the loopback network.
func sourceOf(key int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 1, byte(key / 250), byte(1 + key%250)})
}

// plan is a Spec with defaults filled in and the levels of one treatment applied.
type plan struct {
	spec       *Spec // with the levels applied
	adapter    adapter
	url        *url.URL // nil: embedded
	knobs      reference.Knobs
	preset     string
	operation  string
	identities int
	as         string // the account asked for: a word or an address
	headers    map[string]string
}

// distinct reports whether the file gives every caller a credential or a name of its own, so that none may get
// another's token.
func (s *Spec) distinct() bool {
	type credential struct {
		name  string
		token area.Secret
	}
	seen := map[credential]bool{}
	for _, c := range s.Callers {
		id := credential{c.Name, c.Token}
		if id == (credential{}) || seen[id] {
			return false
		}
		seen[id] = true
	}
	return len(s.Callers) > 0
}

// Says implements area.Spec.
func (s *Spec) Says() area.Says {
	return area.Says{
		Loopback: kit.LoopbackURL(s.URL), LockKey: s.LockKey(), Stages: s.Stages(), Conditions: s.Conditions(),
		Forecast: s.Forecast, Creates: s.Creates, Alone: s.alone,
	}
}

// shortLived is the life of a token below which turns would change how often it is renewed for a call.
const shortLived = 10 * time.Minute

// alone says why treatments must have trials of their own: what tare's own server does over time depends on how often
// it is called within longer than a turn.
func (s *Spec) alone(treatments []design.Treatment, _ []string) string {
	for _, t := range treatments {
		p, err := s.plan(t)
		if err != nil || p.url != nil {
			continue
		}
		switch k := &p.knobs; {
		case k.CPUQuota > 0:
			return "a CPU quota is shared out over longer than a turn"
		case k.QuotaRate > 0:
			return "a quota of exchanges is refilled over longer than a turn"
		case k.LivenessPeriod > 0:
			return "liveness probes come over longer than a turn"
		case k.Cache && k.TTL < shortLived:
			return "cached tokens expire, and are renewed, over longer than a turn"
		}
	}
	return ""
}

// plan applies the levels of t to s. Errors name the level.
func (s *Spec) plan(t design.Treatment) (plan, error) {
	u, err := s.under(t.Levels)
	if err != nil {
		return plan{}, err
	}
	p := plan{
		spec: u, operation: string(u.Operation), identities: max(1, u.Identities), as: cmp.Or(u.Account, accountDefault),
		headers: u.Headers,
	}
	if p.adapter, err = findAdapter(string(u.Adapter)); err != nil {
		return p, err
	}
	if len(u.Callers) > 0 {
		p.identities = len(u.Callers)
	}
	if err := p.ask(); err != nil {
		return p, err
	}
	if validate := p.adapter.validate; validate != nil {
		if err := validate(u, p.operation); err != nil {
			return p, err
		}
	}
	if u.URL != "" {
		p.url, err = parseURL(u.URL, p.adapter.reach)
		return p, err
	}
	if !p.adapter.reach.embedded {
		return p, fmt.Errorf("url: %s has no embedded endpoint: name the one to measure", p.adapter.name)
	}
	p.preset, p.knobs, err = u.Embedded.resolve()
	return p, err
}

// ask looks at what is asked for, and by how many.
func (p *plan) ask() error {
	p.operation = cmp.Or(p.operation, p.adapter.operations[0].name)
	if p.identities > maxIdentities {
		return fmt.Errorf("identities: %d is not a number from 1 to %d", p.identities, maxIdentities)
	}
	if !slices.Contains(p.adapter.offers(), p.operation) {
		return fmt.Errorf("operation: %q is not one of %s", p.operation, strings.Join(p.adapter.offers(), ", "))
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
