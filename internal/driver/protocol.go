// Package driver speaks to programs that perform an area's operations and time them.
//
// A driver reads requests from its standard input and writes answers to its standard output: one line of JSON each, in
// order, one at a time, unless it describes that it takes several single calls at once. Its standard error is its log.
// It ends after "stop", and when its standard input ends.
// The page of the area that runs the programs of users documents the protocol for authors of drivers.
package driver

import "encoding/json"

// Protocol is the version that this package speaks. It refuses a driver of another version.
const Protocol = 1

// MaxLine bounds a line in bytes, either way.
const MaxLine = 1 << 20

// The requests.
const (
	DoDescribe = "describe" // returns the driver's description; makes nothing, reads nothing
	// DoPrepare puts a treatment into force, reusing what an earlier process prepared for the same run and treatment.
	DoPrepare = "prepare"
	DoVerify  = "verify"  // proves the treatment: what it must refuse is refused, and what it must allow is allowed
	DoOperate = "operate" // performs calls of one operation and returns their total cost
	// DoUndo removes all that prepare made for this run and treatment, also in a new process, and when repeated.
	DoUndo = "undo"
	DoStop = "stop" // ends the driver, with status 0
	// DoImpose brings a condition about that prepare offered, and DoLift ends it. They come beside calls.
	DoImpose = "impose"
	DoLift   = "lift"
)

// A Request is a request to a driver. Fields that a request does not need are omitted.
type Request struct {
	ID uint64 `json:"id"` // the answer repeats it
	Do string `json:"do"`

	Protocol int `json:"protocol,omitempty"` // of describe

	*Preparation // of prepare and undo

	Operation string `json:"operation,omitempty"` // of operate
	// of operate; 0: answer immediately, so that the request itself can be timed
	Calls *int `json:"calls,omitempty"`

	Condition string `json:"condition,omitempty"` // of impose and lift
}

// A Preparation says which treatment to prepare, and identifies it for undo.
type Preparation struct {
	// unique, of letters, digits and dashes: part of the names of all that the driver makes
	Run       string            `json:"run"`
	Treatment string            `json:"treatment"` // "cache=lru records=100"
	Levels    map[string]string `json:"levels"`    // the file's settings, overridden by the treatment's levels
	// Folder exists, empty at first. It is the driver's alone for this treatment, and is removed after undo.
	Folder     string   `json:"folder"`
	Operations []string `json:"operations"` // those that will be requested
}

// An Answer is a driver's answer. It has either OK or Error.
type Answer struct {
	ID    uint64          `json:"id"`
	OK    json.RawMessage `json:"ok,omitempty"`
	Error string          `json:"error,omitempty"`
	Next  string          `json:"next,omitempty"` // with Error: what the user can do
}

// A Description is the answer to describe.
type Description struct {
	Protocol   int         `json:"protocol"`
	Name       string      `json:"name"`
	Version    string      `json:"version,omitempty"`
	Operations []Operation `json:"operations"`
	// Factors are the levels that a treatment may have, by factor; no levels: any value.
	Factors map[string][]string `json:"factors,omitempty"`
	Notes   []string            `json:"notes,omitempty"` // limits that every report must carry
	// AtOnce is how many requests may be under way at once while guard asks for single calls; their answers may come in
	// any order. 0: one.
	AtOnce int `json:"at_once,omitempty"`
}

// An Operation is an operation that a driver performs.
type Operation struct {
	Name   string `json:"name"`
	Expect string `json:"expect,omitempty"` // which answer is expected, in words
	// SpanMS is the intended length of a batch in milliseconds, Rounds the number of batches in a trial, Most the most
	// calls in a batch. 0: tare chooses.
	SpanMS float64 `json:"span_ms,omitempty"`
	Rounds int     `json:"rounds,omitempty"`
	Most   int     `json:"most,omitempty"`
	// Harness says that the operation does nothing: its cost is what the driver's own loop and clocks add to every other
	// operation.
	Harness bool `json:"harness,omitempty"`
	// Overhead names the harness operation with the same loop and clocks as this one. Empty: the most expensive.
	Overhead string `json:"overhead,omitempty"`
	// NoCPU says that the calls are made by processes that come and go, whose CPU time cannot be read from outside: tare
	// does not try.
	NoCPU bool `json:"no_cpu,omitempty"`
	// Trespass names the operation of which this is the must-refuse form: the control must refuse each of its calls. Only
	// guard asks for it, one call at a time.
	Trespass string `json:"trespass,omitempty"`
}

// Prepared is the answer to prepare.
type Prepared struct {
	// PIDs are further processes that do the work, by name: tare reads their memory, and their CPU time where the driver
	// does not count it.
	PIDs  map[string]int `json:"pids,omitempty"`
	Notes []string       `json:"notes,omitempty"`
	// Conditions are what the driver can do to its control under load, by name, in a few words each.
	Conditions map[string]string `json:"conditions,omitempty"`
}

// Verified is the answer to verify.
type Verified struct {
	Checks []string `json:"checks"` // what was checked, a sentence each; at least one
	// Unproved says what was seen in place of a refusal, if nothing that must be refused was asked; see area.Can.
	Unproved string `json:"unproved,omitempty"`
}

// A Cost is the answer to operate: the cost of all calls together.
type Cost struct {
	Calls int `json:"calls"` // as many as were asked for
	// Refused and Permitted are how many calls the control refused and permitted, for guard. A call of a trespass that is
	// neither decides nothing. Of another operation's calls, those that were not refused were permitted.
	Refused   int `json:"refused,omitempty"`
	Permitted int `json:"permitted,omitempty"`
	// Total is by metric: "wall" (seconds that the calls took; the sum if several run at a time), "cpu" (CPU seconds),
	// "allocations", "allocated" (bytes), "instructions", "hits", "cache-hits", "error" (calls). All answers have the same
	// metrics.
	Total map[string]float64 `json:"total,omitempty"`
}
