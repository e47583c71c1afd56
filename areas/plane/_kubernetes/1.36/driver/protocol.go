// Package driver answers the requests of protocol 1, one line of JSON each, on a driver's standard input and output.
// docs/reference/exec.md is the reference.
package driver

import "encoding/json"

// Protocol is the supported version.
const Protocol = 1

// MaxLine bounds a line in bytes, either way.
const MaxLine = 1 << 20

// A Preparation describes what Prepare must put in force, and the name under which Undo finds it.
type Preparation struct {
	Run        string            `json:"run"`
	Treatment  string            `json:"treatment"`
	Levels     map[string]string `json:"levels"`
	Folder     string            `json:"folder"`
	Operations []string          `json:"operations"`
}

// A Description is the answer to describe.
type Description struct {
	Protocol   int                 `json:"protocol"`
	Name       string              `json:"name"`
	Version    string              `json:"version,omitempty"`
	Operations []Operation         `json:"operations"`
	Factors    map[string][]string `json:"factors,omitempty"` // the levels of each factor; none: any level
	Notes      []string            `json:"notes,omitempty"`
	AtOnce     int                 `json:"at_once,omitempty"` // single calls of guard
}

// An Operation is one that a driver performs.
type Operation struct {
	Name    string `json:"name"`
	Expect  string `json:"expect,omitempty"`
	Most    int    `json:"most,omitempty"` // calls in a batch
	Harness bool   `json:"harness,omitempty"`
	// Overhead names the operation that does nothing in the same loop, with the same clocks.
	Overhead string `json:"overhead,omitempty"`
	// Trespass names the operation of which this is the form that must be refused.
	Trespass string `json:"trespass,omitempty"`
}

// A Driver carries out requests, one at a time unless it says otherwise.
type Driver interface {
	Describe() Description
	Prepare(p Preparation) (Prepared, error)
	// Together reports whether single calls and conditions may be asked for several at once.
	Together() bool
	// Impose brings about a condition that Prepare offered; Lift ends it.
	Impose(condition string) error
	Lift(condition string) error
	// Verify returns what it verified, one sentence each.
	Verify() ([]string, error)
	// Operate performs calls, at least one, and returns what they cost together.
	Operate(operation string, calls int) (Cost, error)
	// Undo removes all that Prepare made, also in a new process, and twice.
	Undo(p Preparation) error
}

// A Failure is an error with advice for the user.
type Failure struct {
	Err  error
	Next string
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error itself.
func (f *Failure) Unwrap() error { return f.Err }

type request struct {
	ID       uint64 `json:"id"`
	Do       string `json:"do"`
	Protocol int    `json:"protocol"`
	Preparation
	Operation string `json:"operation"`
	Calls     *int   `json:"calls"`
	Condition string `json:"condition"`
}

type answer struct {
	ID    uint64          `json:"id"`
	OK    json.RawMessage `json:"ok,omitempty"`
	Error string          `json:"error,omitempty"`
	Next  string          `json:"next,omitempty"`
}

// Prepared is the answer to prepare.
type Prepared struct {
	Notes      []string          `json:"notes,omitempty"`
	Conditions map[string]string `json:"conditions,omitempty"` // what each does
}

type verified struct {
	Checks []string `json:"checks"`
}

// A Cost is what calls cost together, by metric, and how many of them were refused and permitted, for guard.
type Cost struct {
	Calls     int                `json:"calls"`
	Total     map[string]float64 `json:"total,omitempty"`
	Refused   int                `json:"refused,omitempty"`
	Permitted int                `json:"permitted,omitempty"`
}
