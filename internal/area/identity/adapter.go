package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/internal/area/oneshot"
	"tare/internal/load"
)

// An adapter speaks one protocol for tokens. It is the only thing that knows the protocol's bytes; another one is another file and a line
// in adapters. The file's first comment says the adapter's identity selector, cache key, cold path, success and error classes.
//
// What an adapter need not do: resolve secrets, renew them, dial, speak TLS, retry, or time anything. It reads its options and secrets
// from a session and renders requests; judge and tokenWire (see judge.go) are there for answers that hold a token.
type adapter interface {
	// name is the word in experiment files.
	name() string
	// help is one line about it.
	help() string
	// section is the name of the adapter's own options below `target`; empty: it has none. Other adapters' sections are refused.
	section() string
	// operations are what can be asked for, the default first.
	operations() []string
	// expect says in words which answer to an operation is good.
	expect(operation string) string
	// reach says what kind of URL it takes.
	reach() reach
	// validate looks at the adapter's own options. Its errors begin with the option's path and a colon: "oidc.client_id: …".
	validate(s *Spec, operation string) error
	// refusals are requests that the endpoint must refuse. A refusal must not lock anybody out.
	refusals(s session) []canary
	// wire is the timed operation. It should be a load.Explainer, with the indexes of causes.
	wire(s session) load.Wire
}

// A reach is what kind of endpoint an adapter can be pointed at.
type reach struct {
	embedded bool // the embedded reference speaks it; without it a URL is required
	tls      bool // https is allowed
	path     bool // the URL may have a path, to which the adapter adds its own: session.base
}

// An accountant is an adapter of which one can ask whose token one gets.
type accountant interface {
	// whoami asks for the account of the caller, and account reads it from the answer.
	whoami(s session) []byte
	account(body []byte) (email string, err error)
}

// A loginer is an adapter whose calls need something first: a session token. It is obtained in Prepare and renewed outside the timed path;
// session.lease returns the one that holds. While it is renewed, requests go on with the old one.
type loginer interface {
	// login obtains it for one identity. Its errors must not quote the answer, which may be a secret. s.lease is empty.
	login(ctx context.Context, s session, key int, do doer) (lease, error)
}

// A learner is a wire whose good answers say whose token they hold. What Prepare learns, later answers are held to: session.subjects.
type learner interface {
	subject(i uint64, body []byte) string // empty: it does not say
}

// A doer makes one request as an identity, outside the load, and returns the answer within the context's deadline and ours.
type doer func(ctx context.Context, key int, request []byte) (oneshot.Answer, error)

// A lease is what login has obtained, and how long it lives from when it was asked for; 0: for ever.
type lease struct {
	value string
	lives time.Duration
}

// A canary is one request that must be refused: with one of the statuses, since servers differ, or as refused says.
type canary struct {
	name     string
	request  []byte
	statuses []int
	// refused decides instead of statuses, for protocols that refuse with 200. It may be nil.
	refused func(status int, body []byte) bool
}

// wasRefused reports whether the answer to c is a refusal.
func (c canary) wasRefused(status int, body []byte) bool {
	if c.refused != nil {
		return c.refused(status, body)
	}
	return slices.Contains(c.statuses, status)
}

// want is the refusal in words.
func (c canary) want() string {
	if len(c.statuses) == 0 {
		return "be refused"
	}
	words := make([]string, len(c.statuses))
	for i, s := range c.statuses {
		words[i] = fmt.Sprint(s)
	}
	return "be refused with " + strings.Join(words, " or ")
}

// adapters lists what can be measured. The enum of Spec.Adapter says the same; a test compares them.
func adapters() []adapter {
	return []adapter{
		gceMetadata{},
		imdsv2{},
		azureIMDS{},
		oidcToken{},
		vaultLogin{},
		httpToken{},
		k8sTokenRequest{},
		k8sTokenReview{},
	}
}

func findAdapter(name string) (adapter, error) {
	var names []string
	for _, a := range adapters() {
		if a.name() == name {
			return a, nil
		}
		names = append(names, a.name())
	}
	return nil, fmt.Errorf("adapter: %q is not one of %s", name, strings.Join(names, ", "))
}

// outcomeOf is what a status other than success means to someone who asked for a token of his own, where the protocol says nothing else. A
// refusal of access is Wrong, not Denied: the control had to say yes.
func outcomeOf(status int) load.Outcome {
	switch {
	case status == 429 || status == 503:
		return load.Refused
	case status >= 500 || status < 200:
		return load.Failed
	default:
		return load.Wrong
	}
}
