// Package driver speaks to programs that perform an area's operations themselves and time them: the kubelet's pull manager in tare-plane, or
// whatever a user wrote.
//
// A driver reads one request a line from its standard input and writes one answer a line to its standard output, both JSON, in order, one at a
// time; its standard error is its log. It ends after "stop", and when its standard input ends. docs/reference/exec.md is the same for those who
// write one.
package driver

import "encoding/json"

// Protocol is the version that this package speaks. A driver that speaks another one is refused.
const Protocol = 1

// MaxLine bounds a line in bytes, either way.
const MaxLine = 1 << 20

// The requests.
const (
	DoDescribe = "describe" // says what the driver is. Nothing is made, nothing is read.
	DoPrepare  = "prepare"  // brings a treatment into force. What an earlier process prepared for the same run and treatment is used again.
	DoVerify   = "verify"   // proves it: what it must refuse is refused, what it must allow is allowed
	DoOperate  = "operate"  // performs calls of one operation and says what they cost together
	DoUndo     = "undo"     // removes all that prepare made for this run and treatment; also in a new process, and twice
	DoStop     = "stop"     // ends the driver, with status 0
)

// A Request is what a driver is asked. Fields that a request does not need are left out.
type Request struct {
	ID uint64 `json:"id"` // the answer carries it back
	Do string `json:"do"`

	Protocol int `json:"protocol,omitempty"` // of describe

	*Preparation // of prepare and undo

	Operation string `json:"operation,omitempty"` // of operate
	Calls     *int   `json:"calls,omitempty"`     // of operate; 0: answer at once, so that asking itself can be timed
}

// A Preparation says what is to be brought into force, and by what name it is found again.
type Preparation struct {
	Run       string            `json:"run"`       // unique, of letters, digits and dashes: part of the name of whatever the driver makes
	Treatment string            `json:"treatment"` // "cache=lru records=100"
	Levels    map[string]string `json:"levels"`    // the file's settings, and the treatment's levels over them
	// Folder is there, empty at first, the driver's alone for this treatment, and removed after undo.
	Folder     string   `json:"folder"`
	Operations []string `json:"operations"` // those that are going to be asked for
}

// An Answer is what a driver answers. Exactly one of OK and Error is there.
type Answer struct {
	ID    uint64          `json:"id"`
	OK    json.RawMessage `json:"ok,omitempty"`
	Error string          `json:"error,omitempty"`
	Next  string          `json:"next,omitempty"` // beside Error: what the person can do
}

// A Description is the answer to describe.
type Description struct {
	Protocol   int         `json:"protocol"`
	Name       string      `json:"name"`
	Version    string      `json:"version,omitempty"`
	Operations []Operation `json:"operations"`
	// Factors are the levels that a treatment may have, by factor; no levels: any.
	Factors map[string][]string `json:"factors,omitempty"`
	Notes   []string            `json:"notes,omitempty"` // limits that every report must carry
}

// An Operation is one that a driver performs.
type Operation struct {
	Name   string `json:"name"`
	Expect string `json:"expect,omitempty"` // in words, which answer is the expected one
	// SpanMS is how long a batch should last, in milliseconds, Rounds how many make a trial, Most the most calls that a batch may have. 0: tare's choice.
	SpanMS float64 `json:"span_ms,omitempty"`
	Rounds int     `json:"rounds,omitempty"`
	Most   int     `json:"most,omitempty"`
	// Harness says that the operation does nothing: what it costs is what the driver's own loop and clocks add to every other one.
	Harness bool `json:"harness,omitempty"`
	// Overhead names, of an operation that does something, the one that does nothing in the same loop, with the same clocks. Empty: whichever costs most.
	Overhead string `json:"overhead,omitempty"`
}

// Prepared is the answer to prepare.
type Prepared struct {
	// PIDs are further processes that do the work, by name: their memory is read, and their CPU time where the driver does not count it itself.
	PIDs  map[string]int `json:"pids,omitempty"`
	Notes []string       `json:"notes,omitempty"`
}

// Verified is the answer to verify.
type Verified struct {
	Checks []string `json:"checks"` // what was seen, a sentence each; at least one
}

// A Cost is the answer to operate: of all calls together.
type Cost struct {
	Calls int `json:"calls"` // as many as were asked for
	// Total is by metric: "wall" (seconds that the calls took; with several at a time, the sum of what each took), "cpu" (CPU seconds), "allocations",
	// "allocated" (bytes), "instructions", "hits", "cache-hits", "error" (calls). Whatever is counted is the same in all answers.
	Total map[string]float64 `json:"total,omitempty"`
}
