// Package engine finds, builds and describes the decision points that tare starts itself. It starts nothing: who wants
// one runs what Find returns as a child process.
package engine

import (
	"log/slog"

	"tare/areas/decision/replica"
)

// Kind names an embedded decision point.
type Kind string

// The kinds.
const (
	Cedar      Kind = "cedar"
	PDPX       Kind = "pdpx"
	OPA        Kind = "opa"
	ATT        Kind = "att"
	AuthzForce Kind = "authzforce"
	OpenFGA    Kind = "openfga"
)

// xacmlAdapter is the protocol of the engines of XACML.
const xacmlAdapter = "xacml"

// A description says which protocol a kind speaks, and in one line what it is.
type description struct {
	kind          Kind
	adapter, help string
}

// descriptions lists all kinds, in the order of the schema.
func descriptions() []description {
	return []description{
		{Cedar, "authzen", "cedar-go behind AuthZEN, in this binary"},
		{PDPX, "pdpx", "reference of ONAP's decision API, in this binary"},
		{OPA, "opa", "Open Policy Agent, built on demand or found in PATH"},
		{ATT, xacmlAdapter, "AT&T XACML 4.0.0 behind the XACML JSON profile; needs a JDK"},
		{AuthzForce, xacmlAdapter, "AuthzForce 21.0.1 behind the XACML JSON profile; needs a JDK"},
		{OpenFGA, "openfga", "OpenFGA with its store in memory, built on demand"},
	}
}

// Kinds returns all kinds.
func Kinds() (kinds []Kind) {
	for _, d := range descriptions() {
		kinds = append(kinds, d.kind)
	}
	return kinds
}

// Words implements area.Worded.
func (Kind) Words() (names []string) {
	for _, d := range descriptions() {
		names = append(names, string(d.kind))
	}
	return names
}

// Adapter returns the protocol that the kind speaks; empty for a kind that is not among Kinds.
func (k Kind) Adapter() string { return k.describe().adapter }

// Help returns one line about the kind.
func (k Kind) Help() string { return k.describe().help }

func (k Kind) describe() description {
	for _, d := range descriptions() {
		if d.kind == k {
			return d
		}
	}
	return description{}
}

// Host is what Find may use.
type Host struct {
	Self   string // path of this binary
	Cache  string // folder for what is built; empty: see Built
	Log    *slog.Logger
	Getenv func(name string) (string, bool)
}

// A Launch is how a decision point is started as a child process that speaks the protocol of package proc: Config on
// standard input, Ready on standard output, and an end with its standard input.
type Launch struct {
	Kind    Kind
	Path    string
	Args    []string
	Version string // of the engine: "cedar-go 1.9.0"
	// Java says that it runs on a JVM: it is warmed up by a number of requests.
	Java bool
}

// Config is what the child is told.
type Config struct {
	Addr string `json:"addr"`           // to listen on; port 0 leaves the choice to it
	File string `json:"file,omitempty"` // its policies, in its own language
	N    int    `json:"n"`              // how many they are
	// Own says that File has the user's own policies: a bundle of OPA, a folder or file of Cedar, a file of XACML, or a
	// store of OpenFGA.
	Own bool `json:"own,omitempty"`
	// Data says how often the entities of Cedar are there.
	Data *replica.Data `json:"data,omitempty"`
	// V0 says that a bundle has Rego as OPA read it before 1.0.
	V0 bool `json:"v0,omitempty"`
	// Path is where OPA is asked, or an enforcement point before it. Neither answers anything else.
	Path string `json:"path,omitempty"`
	// Network lets the Rego of a bundle reach servers beyond loopback.
	Network bool `json:"network,omitempty"`
	// Check has OPA compile the bundle, and say what is wrong in it, in place of serving.
	Check bool `json:"check,omitempty"`
	// Username and Password are what pdpx wants of callers.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Token is what openfga wants of callers.
	Token string `json:"token,omitempty"`
	// Pair is what an opa that was found in PATH and its callers know each other by.
	Pair Pair `json:"pair,omitempty"`
	// Planted faults, so that it can be proved that they are found.
	Answer string `json:"answer,omitempty"` // "always-permit", "not-applicable-as-permit", "indeterminate"
	// AnswerAfter is how many seconds after its start Answer begins: pdpx only.
	AnswerAfter float64 `json:"answer_after,omitempty"`
	Leak        float64 `json:"leak,omitempty"`  // bytes a second that are kept for ever
	Delay       float64 `json:"delay,omitempty"` // seconds from the start during which a request gets 409
	// Cache is for how many seconds a decision is given again, whatever the policies are by then; Gap for how many it has
	// no policies whenever they are replaced.
	Cache float64 `json:"cache,omitempty"`
	Gap   float64 `json:"gap,omitempty"`
	// Admin is the bearer token of who may have the policies replaced, or an enforcement point slowed down; empty: nobody
	// may.
	Admin string `json:"admin,omitempty"`
	// Upstream is the decision point that an enforcement point asks; it waits Within seconds for an answer, and otherwise
	// gives the answer Fallback.
	Upstream string  `json:"upstream,omitempty"`
	Within   float64 `json:"within,omitempty"`
	Fallback string  `json:"fallback,omitempty"`
}

// ReloadPath is where tare's own decision points are asked, by POST with the bearer token Admin, to read their policies
// again.
const ReloadPath = "/tare/reload"

// SlowPath and PromptPath are where, in the same way, tare's enforcement point is asked to hold answers back, and to do
// so no more.
const (
	SlowPath   = "/tare/slow"
	PromptPath = "/tare/prompt"
)

// Ready is what the child answers when it serves.
type Ready struct {
	Addr        string  `json:"addr"`
	LoadSeconds float64 `json:"load_seconds"` // reading and compiling its policies
	// Store and Model are how openfga calls what it holds.
	Store string `json:"store,omitempty"`
	Model string `json:"model,omitempty"`
}

// Missing is the error about a kind that this host cannot run.
type Missing struct {
	Kind   Kind
	Reason string // "java was not found in PATH"
	Next   string // how to provide it
}

// Error implements error.
func (m *Missing) Error() string { return string(m.Kind) + ": " + m.Reason }

// Hint returns the next step.
func (m *Missing) Hint() string { return m.Next }
