package identity

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tare/internal/kit/oneshot"
	"tare/internal/load"
)

// An adapter is one protocol for tokens, as a value. It is the only thing that knows the protocol's bytes; another one
// is another file, and a line in adapters. The comment on its function says the adapter's identity selector, cache key,
// cold path, success and error classes.
//
// An adapter does not resolve or renew secrets, dial, speak TLS, retry, or time anything. It reads its options and
// secrets from a session and renders requests.
type adapter struct {
	name string // the word in experiment files
	help string // one line about it
	// section is the name of the adapter's own options below `target`; empty: it has none. Other adapters' sections are
	// refused.
	section string
	reach   reach
	// operations are what can be asked for, the default first.
	operations []operation
	// validate looks at the adapter's own options. Its errors begin with the option's path and a colon: "oidc.client_id:
	// …". nil: all are good.
	validate func(s *Spec, operation string) error
	// canaries are requests that the endpoint must refuse: those of each identity's operation, with one thing in them that
	// is wrong. They need no credentials but to be rendered. One refusal must not lock anybody out; see canary.alone.
	canaries func(s session) []canary
	// refused is what a status other than the good one means; nil: refusal.
	refused func(status int, body []byte) (load.Outcome, verdict)

	// login obtains for one identity what its calls need first: a session token. It is obtained in Prepare and renewed
	// outside the timed path; session.lease returns the one that holds. While it is renewed, requests go on with the old
	// one. Errors must not quote the answer, which may be a secret. s.lease is empty. nil: calls need nothing.
	login func(ctx context.Context, s session, key int, do doer) (lease, error)
	// whoami asks for the account of the caller, and account reads it from the answer; nil: the endpoint cannot be asked.
	whoami  func(s session) []byte
	account func(body []byte) (email string, err error)
}

// An operation is one thing to ask an endpoint for.
type operation struct {
	name   string
	expect string // which answer is good, in words
	// request renders the request of one identity. It must be safe to be called again at any time.
	request func(s session, key int) []byte
	status  int // of a good answer; 0: 200
	// reader makes what judges the bodies of good statuses.
	reader func(s session) reader
	// subject returns the subject of the token in a good answer, "" if the answer does not name it. Later answers must
	// have the subject that Prepare has learned: session.subjects. nil: answers never name it.
	subject func(body []byte) string
	// wire replaces all of these but request for answers that depend on more, or with a status that the file sets.
	wire func(s session) load.Wire
	// denied reports whether an answer with a good status is a refusal. nil: none is.
	denied func(body []byte) bool
}

// A reader judges the body of the answer to call i, by the identity key. It is called on the hot path: it must not
// allocate or keep the body.
type reader func(i uint64, key int, body []byte) verdict

// operation finds one by name; otherwise it is the default.
func (a adapter) operation(name string) operation {
	if i := slices.IndexFunc(a.operations, func(o operation) bool { return o.name == name }); i >= 0 {
		return a.operations[i]
	}
	return a.operations[0]
}

// offers returns the names of the operations.
func (a adapter) offers() (names []string) {
	for _, o := range a.operations {
		names = append(names, o.name)
	}
	return names
}

// wire returns the timed operation of a session.
func (a adapter) wire(s session) load.Wire {
	o := a.operation(s.operation)
	if o.wire != nil {
		return o.wire(s)
	}
	refused, read := a.refused, o.reader(s)
	if refused == nil {
		refused = func(status int, _ []byte) (load.Outcome, verdict) { return refusal(status) }
	}
	return &tokenWire{
		requests: s.requests(func(key int) []byte { return o.request(s, key) }),
		look: func(i uint64, key, status int, body []byte) (load.Outcome, verdict) {
			if status != cmp.Or(o.status, http.StatusOK) {
				return refused(status, body)
			}
			return wrong(read(i, key, body))
		},
		who: o.subject,
	}
}

// A reach is what kind of endpoint an adapter can be pointed at.
type reach struct {
	embedded bool // the embedded reference speaks it; without it a URL is required
	node     bool // it answers only the node that it serves
	tls      bool // https is allowed
	path     bool // the URL may have a path, to which the adapter adds its own: session.base
}

// A learner is a wire whose good answers name the subject of their token. Later answers must have the subject that
// Prepare has learned: session.subjects.
type learner interface {
	subject(i uint64, body []byte) string // empty: it does not say
}

// A doer makes one request as an identity, outside the load, and returns the answer within the context's deadline and
// ours.
type doer func(ctx context.Context, key int, request []byte) (oneshot.Answer, error)

// A lease is what login has obtained, and how long it lives from the request on; 0: it never expires.
type lease struct {
	value string
	lives time.Duration
}

// A canary is a request that must be refused: with one of the statuses, since servers differ, or as refused says.
type canary struct {
	name string
	// request renders that of one identity. It must be safe to be called again at any time.
	request  func(key int) []byte
	statuses []int
	// refused decides instead of statuses, for protocols that refuse with 200. It may be nil.
	refused func(status int, body []byte) bool
	// alone says why it may be asked once, and not thousands of times among other calls. Empty: it may be.
	alone string
	// byStatus: a good status alone means that it was granted, since the answer is another than the operation's.
	byStatus bool
}

// wasRefused reports whether the answer to c is a refusal.
func (c *canary) wasRefused(status int, body []byte) bool {
	if c.refused != nil {
		return c.refused(status, body)
	}
	return slices.Contains(c.statuses, status)
}

// want returns the refusal in words.
func (c *canary) want() string {
	if len(c.statuses) == 0 {
		return "be refused"
	}
	words := make([]string, len(c.statuses))
	for i, s := range c.statuses {
		words[i] = fmt.Sprint(s)
	}
	return "be refused with " + strings.Join(words, " or ")
}

// adapters lists what can be measured, in the order of the schema. A test holds the documentation to it.
func adapters() []adapter {
	return []adapter{
		gceMetadata(),
		imdsv2(),
		eksPodIdentity(),
		azureIMDS(),
		oidcToken(),
		stsWebIdentity(),
		vaultLogin(),
		k8sTokenRequest(),
		k8sTokenReview(),
		httpToken(),
	}
}

func findAdapter(name string) (adapter, error) {
	all := adapters()
	if i := slices.IndexFunc(all, func(a adapter) bool { return a.name == name }); i >= 0 {
		return all[i], nil
	}
	return adapter{}, fmt.Errorf("adapter: %q is not one of %s", name, strings.Join(AdapterName("").Words(), ", "))
}

// outcomeOf returns the outcome of a status other than success, unless the protocol defines another. A refusal of
// access is Wrong, not Denied: the control should have allowed it.
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
