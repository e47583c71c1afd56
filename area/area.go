// Package area is the contract between tare, which asks questions, and areas of security controls, which answer them.
//
// What every area must have are the methods of Area, Spec and Target. What it may have are the fields of Parts, Says
// and Can: a zero field says that the area does not have it. tare asks no value for further interfaces.
//
// It imports nothing of tare but a rate limiter, so an area in another module compiles this package and little else.
package area

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"
)

// An Area is a family of controls that are measured the same way.
type Area interface {
	Name() string // as files have it: "area: NAME"
	// Offers says which questions can be asked of the area, or why not.
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
	// Parts are what the area has besides.
	Parts() Parts
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

// Asked is what an area may know of the question: its properties, never its name. A new question needs no new code in
// an area.
type Asked struct {
	Trespasses bool // it asks for what the control must refuse
	InBlocks   bool // treatments are measured in turn, in short trials
	LongTrials bool // each treatment has one long trial
}

// Spec is the area's `target:` section of an experiment file.
type Spec interface {
	// Validate reports what is wrong, by path below `target`.
	Validate(q Asked, treatments []Treatment) []Finding
	// Under returns the section as a treatment has it: its levels in place of what the file says for all. It returns the
	// section itself where treatments cannot change it, and fails where Validate does.
	Under(t Treatment) (Spec, error)
	// Says is what the section alone says about a run.
	Says() Says
}

// Says is what a section says about a run, before anything is opened.
type Says struct {
	// Loopback: all traffic stays on this machine, so that max_rate may be left out.
	Loopback bool
	// LockKey names the system that the section points at, so that two runs do not measure each other; empty: the system
	// is the run's own.
	LockKey string
	// SecretFiles are files with secrets that the section names by other means than a Secret: a kubeconfig.
	SecretFiles []string
	// Batches: the operations time themselves, in batches at their own pace; nil: they are called at rates.
	Batches []Batches
	// Alone says why treatments that are called at a rate must have trials of their own: they cannot be in force
	// together, or what a mix of operations does (empty: the area's own) takes longer than a turn of a fraction of a
	// second. Empty, or nil: they can take turns.
	Alone func(treatments []Treatment, mix []string) string
	// Afresh is about how long Renew takes of all treatments at one time, so that turns can be long enough for it to be a
	// small part of the run. 0, or nil: that is no matter.
	Afresh func(treatments []Treatment) time.Duration
	// Stages are those that the target can be brought into.
	Stages []Stage
	// Conditions are the names of those that the target may be able to bring about by itself.
	Conditions []string
	// WhyNot says why a condition cannot be had under the treatments; empty: it can, or there is no such condition.
	WhyNot func(condition string, treatments []Treatment) string
	// Asks reports whether a mix (empty: the area's own) has operations whose trespasses only ask, and change nothing: a
	// soak mixes a few of those in.
	Asks func(treatments []Treatment, mix []string) bool
	// Forecast is what the trials of a treatment will measure. It is arbitrary for a treatment that Validate rejects.
	Forecast func(q Asked, t Treatment) Forecast
	// Creates says what a run makes on this host and elsewhere, for the plan.
	Creates func(treatments []Treatment) []string
	// Untried says what `tare validate` leaves open under the treatments: "its program was not started". nil, or empty:
	// nothing.
	Untried func(treatments []Treatment) string
}

// Batches are the batches of one operation in one trial.
type Batches struct {
	Operation string
	Rounds    int           // batches
	Span      time.Duration // of one batch
	NoCPU     bool          // its CPU time is not compared
}

// The defaults for how many batches make a trial, and how long one lasts.
const (
	UsualRounds = 16
	UsualSpan   = 5 * time.Millisecond
)

// OrUsual fills in the defaults.
func (b Batches) OrUsual() Batches {
	if b.Rounds == 0 {
		b.Rounds = UsualRounds
	}
	if b.Span == 0 {
		b.Span = UsualSpan
	}
	return b
}

// A Forecast is what the trials of a treatment will measure.
type Forecast struct {
	Operations []string // those of the area's own mix; nil: only the run will tell
	More       bool     // load.operations may name others, too
	Idle       []string // those that do nothing
	Metrics    []string // of the target's processes and its own counts, or of batches
	Open       bool     // there may be further metrics
	Rounds     int      // batches of an operation in a block; 0: not known
	// Unread says why the target's processes cannot be read, and Instead what to do; empty: they can.
	Unread, Instead string
}

// SpecOf returns s as the area's own type; it fails if s is another area's.
func SpecOf[S Spec](s Spec) (S, error) {
	own, ok := s.(S)
	if !ok {
		return own, fmt.Errorf("a spec of type %T is not this area's", s)
	}
	return own, nil
}

// Parts are what an area may have besides its methods.
type Parts struct {
	// Trim leaves out the treatments that this host does not support, so that the others are measured. Its findings say
	// which ones, why, and how to provide what they need.
	Trim func(ctx context.Context, s Spec, treatments []Treatment, env Env) (kept []Treatment, out []Finding)
	// Program identifies the program that makes the calls, or the files that say what is measured, so that blocks of two
	// of them are never mixed. With Env.Look it builds nothing, with Env.Inert it starts nothing either and need not
	// identify anything.
	Program func(ctx context.Context, s Spec, env Env) (Program, error)
	// Servers are the area's own servers, by name. Each is a child process of this binary: `tare serve AREA NAME`.
	Servers map[string]Serve
	// Adapters are the protocols or programs of the area, and Presets its ready-made targets, for `tare list`.
	Adapters []Adapter
	Presets  []Named
	// Clues tell by its answers that a server speaks one of the protocols.
	Clues []Clue
	// Commands are the area's own commands of the command line.
	Commands func() []Command
	// CompareCommands composes the experiment that compares command lines with the first of them, for
	// `tare compare -- COMMAND COMMAND…`. The first area that has it answers.
	CompareCommands func(commands []string) (Composed, error)
	// ComparePolicies composes the experiment that compares the policies of files or folders with the first of them, or
	// one with no policy, for `tare compare --policies`; false: they hold none that the area compares, and the error says
	// why, if they hold what it knows. What several areas compare is refused.
	ComparePolicies func(bundles []string) (Composed, bool, error)
	// DoctorModes are the area's modes of `tare doctor`.
	DoctorModes func() []Mode
	// Builds are what the area builds and keeps on this host, for `tare cache`.
	Builds func(ctx context.Context, env Env) ([]Builds, error)
	// Quantities are those that only this area measures. Names of tare's own metrics are taken.
	Quantities []Quantity
	// Checks try what the area needs of this host, for `tare doctor`, and leave nothing changed.
	Checks func(ctx context.Context, env Env) []Check
	// Files holds the area's templates (templates/QUESTION.yaml) and the words of its reports (words.md); nil: none.
	Files fs.FS
	// Usual is the question that the area's pages begin with; empty: the first that it answers.
	Usual string
}

// Serve runs a server until ctx ends. config is what the area passed to the child; ready must be called once, with the
// server's addresses, when it answers.
type Serve func(ctx context.Context, config json.RawMessage, ready func(any) error) error

// A Program describes the program or the files that an area found.
type Program struct {
	// Identity distinguishes them from all others, by property: "says that it is": "hash.py 1". It is stable across
	// processes of tare. nil: there is nothing to tell apart.
	Identity map[string]string
	// Files: Identity is of files, and no program is started.
	Files bool
	// Once is the time that all treatments (Env.Treatments) together take before the first block and after the last one,
	// and Block the time that they take in each block besides their batches. Both are for a forecast.
	Once, Block time.Duration
	// Batches are those that the program describes; empty: they are those of Says.
	Batches []Batches
	// Counts says in words what these times include and what is assumed, for the plan.
	Counts string
}

// Named is a word of experiment files with one line of help.
type Named struct{ Name, Help string }

// These two interfaces are the only ones that tare asks values of an area for. They belong to the types of a Spec's
// fields.

// Worded is a string that holds one of some words. The reader of files and the JSON Schema take them from there.
type Worded interface {
	Words() []string
}

// Guarded is a value that is not secret, but where users may write a secret by mistake: NAME=value for the name of a
// variable. A malformed one is not shown.
type Guarded interface {
	MayBeSecret() bool
}
