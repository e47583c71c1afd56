// Package protocol speaks to decision points: it renders questions and reads decisions. Each adapter is one file.
package protocol

import (
	"context"
	"crypto/tls"
	"net/netip"

	"tare/internal/area/decision/model"
	"tare/internal/load"
	"tare/internal/ratelimit"
)

// An Adapter is one protocol. It is a value without state.
type Adapter interface {
	Name() string // "authzen"
	// Schemes are those of URLs that it can be reached at, the one of URLs without a scheme first: "http", "https"; "grpc", "grpcs".
	Schemes() []string
	// Batches reports whether one request can carry several questions.
	Batches() bool
	// Validate says what is wrong with the options for these questions; the error begins with the option's name.
	Validate(o Options, questions []model.Question) error
	// Operation is the timed call: of one question, or of a batch of the same question n times. Its Causes and CauseAnswers are those of
	// this package, its answers are judged against the questions' Want.
	Operation(s *Session, q model.Question, n int) (load.Operation, error)
	// Ask asks once, outside of the load, and says what came back, for canaries: it needs no particular speed.
	Ask(ctx context.Context, s *Session, q model.Question) (Answer, error)
}

// A Counter is an Adapter whose decision points count their own answers.
type Counter interface {
	// Counted are the target's counts so far, by model.Decision's words.
	Counted(ctx context.Context, s *Session) (map[string]float64, error)
}

// A Loader is an Adapter that can fill a running decision point with a Set of policies, and take them back.
type Loader interface {
	// Load puts the policies there under name, which is unique to the run, and returns the options with which they are asked: those of s
	// with what Load has made (opa: Path; openfga: Store and Model). Whoever calls stores them in Session.Options before the first question.
	// After an error, Unload takes away what there may be. Policies that were there before are not touched.
	Load(ctx context.Context, s *Session, set model.Set, name string) (Options, error)
	// Unload takes away what Load made under name, from any process; it needs no options. There being nothing is no error.
	Unload(ctx context.Context, s *Session, name string) error
}

// An Answer is what came back to one question.
type Answer struct {
	Decision model.Decision
	Outcome  load.Outcome
	Status   int
	// Text says in words what came, for people: "status 401: wrong credentials". It holds no secret, and at most 300 characters of the body.
	Text string
}

// Options are the adapters' own settings; those of other adapters stay empty.
type Options struct {
	Path  string // opa: the rule, "authz/allow"; xacml, authzen, k8s-sar: the path below the URL; empty: the protocol's own
	Store string // openfga: the store
	Model string // openfga: the authorization model; empty: the latest
	// Relation of openfga is what is asked for instead of the action.
	Relation string
	PDPX     PDPX
}

// PDPX are the settings of adapter pdpx: what its requests name. Empty fields have the defaults of the published test.
type PDPX struct {
	ONAPName      string
	ONAPComponent string
	ONAPInstance  string
	PolicyID      string // of the monitoring policy
	PolicyType    string
	Actor         string
	Operation     string // of the min/max guard
	Frequency     string // operation of the frequency limiter's guard
	Target        string
	// Permits and Denies are vfCount values that the min/max policy permits and denies.
	Permits, Denies int
	// Wants are the decisions that the frequency limiter gives in steady state.
	FrequencyWant string
	XACML         bool // also ask over POST xacml
	// FrequencyOver is an operation that is over the limit of a frequency limiter: the known deny.
	FrequencyOver string
	// Recipe says "recipe" where current releases say "operation".
	Recipe bool
}

// A Session is how a decision point is reached.
type Session struct {
	Addr    netip.AddrPort
	Host    string      // the Host header, and the name for TLS
	TLS     *tls.Config // nil: plaintext
	Base    string      // path of the URL, without a slash at its end
	Options Options
	// Username and Password are for basic authentication, Token is a bearer token. They are values: they go into requests and nowhere else.
	Username string
	Password string
	Token    string
	Headers  map[string]string // besides the protocol's own
	Secrets  map[string]string // values in bodies, by the name of their place: {name}
	// Limit bounds what is sent outside of the load, together with the load; nil: no bound.
	Limit *ratelimit.Limiter

	lines *grpcLines // of ext-authz, nil until the first Operation
}
