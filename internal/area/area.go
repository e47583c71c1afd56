// Package area is the contract between the questions that tare asks and the areas of security controls that answer
// them.
package area

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/internal/proc"
	"tare/internal/ratelimit"
)

// An Area is a family of controls that are measured the same way.
type Area interface {
	Name() string // "identity"
	// Offers says what the area can offer to questions, or why it cannot.
	Offers() Offers
	// NewSpec returns a pointer to the area's empty `target:` section, to be decoded into.
	NewSpec() Spec
	// Preflight tries what the experiment will need on this host and reports what is missing.
	Preflight(ctx context.Context, s Spec, env Env) []Finding
	// Open makes the system under test reachable. It changes nothing yet.
	Open(ctx context.Context, s Spec, env Env) (Target, error)
	// Undo undoes journaled changes in the order given, the latest first. It must work in a new process after kill −9, and
	// when it is called twice.
	Undo(ctx context.Context, changes []Change, env Env) error
}

// Offers are what only some questions need of an area. All areas have treatments that can be measured in turn.
type Offers struct {
	AnyRate    Offer // calls at any rate that tare chooses
	SteadyLoad Offer // a steady load for as long as is wanted
	Trespasses Offer // calls that the control must refuse, at any rate that tare chooses
}

// An Offer says whether an area can do one thing, and if not, why not. The zero value says that it cannot.
type Offer struct {
	Given  bool
	Reason string // why not; empty when given
}

// Yes is the offer of what an area can do.
var Yes = Offer{Given: true}

// No returns the offer of what an area cannot do, with the reason.
func No(reason string) Offer { return Offer{Reason: reason} }

// A Server is an area that brings servers of its own. They run as child processes of this binary.
type Server interface {
	// Serve runs the named server until ctx ends. config is what the area passed to the child; ready must be called once,
	// with the server's addresses, when it answers.
	Serve(ctx context.Context, name string, config json.RawMessage, ready func(any) error) error
}

// Spec is the area's `target:` section of an experiment file.
type Spec interface {
	// Validate reports what is wrong, by path below `target`.
	Validate(q design.Question, treatments []design.Treatment) []Finding
	// Loopback reports whether all traffic stays on this machine, so that max_rate may be left out.
	Loopback() bool
}

// SpecOf returns s as the area's own type; it fails if s is another area's.
func SpecOf[S Spec](s Spec) (S, error) {
	own, ok := s.(S)
	if !ok {
		return own, fmt.Errorf("a spec of type %T is not this area's", s)
	}
	return own, nil
}

// A Target is an opened system under test.
type Target interface {
	// Prepare does the slow work, once per treatment: start a child process, fill a control plane, log in. Everything that
	// it creates is journaled first. The treatments coexist unless CarriesOver says otherwise.
	Prepare(ctx context.Context, t design.Treatment, j Journal) error
	// Enter does the cheap work before each trial.
	Enter(ctx context.Context, t design.Treatment) error
	// Verify proves the treatment in force: what it must refuse is refused, what it must allow is allowed.
	Verify(ctx context.Context, t design.Treatment) error
	// Operations is the mix. The first call follows Prepare.
	Operations(t design.Treatment) ([]load.Operation, error)
	// Endpoint is where Wire operations go; nil without such operations.
	Endpoint(t design.Treatment) (*load.Endpoint, error)
	Probes(t design.Treatment) []probe.Probe
	// Leave undoes Enter, after each trial.
	Leave(ctx context.Context, t design.Treatment) error
	// Recover brings the target back after an overload, by a restart if need be.
	Recover(ctx context.Context, t design.Treatment) error
	// Notes are limits of this target that every report must carry: "control plane only".
	Notes() []string
	// Close undoes all Prepares. It is called once, also after errors, with a context that outlives an interrupt.
	Close(ctx context.Context) error
}

// A Journal keeps changes on disk before they are made.
type Journal interface {
	// Intend writes c durably. Only then may the change be made.
	Intend(c Change) error
	// Undone records that the change has been undone.
	Undone(c Change) error
}

// A Change describes something that an area creates, in enough detail to find and remove it in a new process. Journal
// containers (a namespace, a cgroup, a process), not their contents.
type Change struct {
	Area string            `json:"area"`
	Kind string            `json:"kind"` // "process", "cgroup", "namespace"
	ID   string            `json:"id"`   // unique within the run
	Data map[string]string `json:"data,omitempty"`
}

// Env is what an area may use of the outside world.
type Env struct {
	Dir   string // the run's folder, for logs and sockets
	Run   string // names what is made on servers and hosts: 12 lower-case letters and digits that no other run has
	Self  string // path of this binary, for child processes
	Log   *slog.Logger
	Clock clock.Clock
	// Getenv looks up an environment variable, for secrets; nil: no variable is set.
	Getenv func(name string) (string, bool)
	// Look says that nothing will be measured: the caller only wants to know what a run would do, so nothing is built or
	// started.
	Look bool
	// Trespasses says that the run asks for what the control must refuse, among calls at rates that tare chooses: then the
	// operations must be calls, and not batches.
	Trespasses bool
	// Treatments are the treatments that will be measured, for Preflight and Open; empty: unknown.
	Treatments []design.Treatment
	// Operations are the names of the operations that the load chooses, so that only what they need is prepared; empty:
	// the area's default.
	Operations []string
	// Limit bounds the requests to targets that tare did not start, over the whole run: the load and the area's checks;
	// nil: no bound.
	Limit *ratelimit.Limiter
	// CPUs are the processors on which the area's own servers may run, from 0; empty: all.
	CPUs []int
}

// Environment returns get, or an environment without variables if get is nil.
func Environment(get func(name string) (string, bool)) func(name string) (string, bool) {
	if get == nil {
		return func(string) (string, bool) { return "", false }
	}
	return get
}

// Processors returns the processors on which the area's own servers may run: CPUs or, if that is empty, all that this
// process may use. It fails if there are none.
func (e Env) Processors() ([]int, error) {
	cpus := e.CPUs
	if len(cpus) == 0 {
		var err error
		if cpus, err = proc.Allowed(); err != nil {
			return nil, err
		}
	}
	if len(cpus) == 0 {
		return nil, errors.New("this process may not use any processor: check its CPU affinity (taskset -p)")
	}
	return cpus, nil
}

// A Finding is something that the user should know about a file or a host.
type Finding struct {
	Path     string // "target.embedded.preset"
	Severity Severity
	Message  string // what is wrong, and its cause
	Hint     string // the next step
	// Treatment is the ID of the treatment whose levels are wrong, and Factor the one that is; empty if the section is.
	Treatment, Factor string
	// Secret says that the value at Path may be a secret, so that the line must not be shown.
	Secret bool
}

// Severity grades a finding.
type Severity uint8

// The severities.
const (
	Info Severity = iota
	Warning
	Error
)

// String returns the severity's word.
func (s Severity) String() string {
	switch s {
	case Warning:
		return "warning"
	case Error:
		return "error"
	case Info:
	}
	return "info"
}
