// Package engine finds, builds and describes the decision points that tare starts itself. It starts nothing: who wants one runs what
// Find returns as a child process.
package engine

import "log/slog"

// Kind names an embedded decision point.
type Kind string

// The kinds.
const (
	Cedar      Kind = "cedar"      // cedar-go behind AuthZEN, in this binary
	PDPX       Kind = "pdpx"       // reference of ONAP's decision API, in this binary
	OPA        Kind = "opa"        // Open Policy Agent: built on demand, or found in PATH
	ATT        Kind = "att"        // AT&T XACML 4.0.0 behind the XACML JSON profile; needs Java
	AuthzForce Kind = "authzforce" // AuthzForce 21.0.1 behind the XACML JSON profile; needs Java
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Cedar, PDPX, OPA, ATT, AuthzForce} }

// Adapter is the protocol that the kind speaks.
func (k Kind) Adapter() string {
	switch k {
	case PDPX:
		return "pdpx"
	case OPA:
		return "opa"
	case ATT, AuthzForce:
		return "xacml"
	case Cedar:
	}
	return "authzen"
}

// Host is what Find may use.
type Host struct {
	Self   string // path of this binary
	Cache  string // folder for what is built; empty: see CacheFolder
	Log    *slog.Logger
	Getenv func(name string) (string, bool)
}

// A Launch is how a decision point is started as a child process that speaks the protocol of package proc: Config on standard input, Ready
// on standard output, and an end with its standard input.
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
	// Username and Password are what pdpx wants of callers.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Planted faults, so that it can be proved that they are found.
	Answer string  `json:"answer,omitempty"` // "always-permit", "not-applicable-as-permit", "indeterminate"
	Leak   float64 `json:"leak,omitempty"`   // bytes a second that are kept for ever
	Delay  float64 `json:"delay,omitempty"`  // seconds from the start during which a request gets 409
}

// Ready is what the child answers when it serves.
type Ready struct {
	Addr        string  `json:"addr"`
	LoadSeconds float64 `json:"load_seconds"` // reading and compiling its policies
}

// Missing says that a kind cannot be had on this host.
type Missing struct {
	Kind   Kind
	Reason string // "java was not found in PATH"
	Next   string // how it can be had
}

// Error implements error.
func (m *Missing) Error() string { return string(m.Kind) + ": " + m.Reason }
