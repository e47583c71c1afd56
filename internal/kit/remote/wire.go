// Package remote lets an area measure on another machine: it carries the calls of an area.Target over a stream of
// bytes, to an agent that performs them there.
package remote

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
)

// maxLine bounds a line in bytes, either way.
const maxLine = 1 << 20

// The requests.
const (
	doOpen      = "open"      // opens the target; with Look, only preflight is asked
	doPreflight = "preflight" // tries what the experiment needs
	doPrepare   = "prepare"
	doEnter     = "enter"
	doVerify    = "verify"
	doList      = "operations"
	doBatch     = "batch"
	doLeave     = "leave"
	doNotes     = "notes"
	doClose     = "close"
	// Those of guard.
	doTrespasses = "trespasses"
	doConditions = "conditions"
	doCall       = "call"
	doDescribe   = "describe"
	doImpose     = "impose"
	doLift       = "lift"
)

// besides reports whether a request is answered beside others. All others are answered one after another.
func besides(do string) bool {
	return do == doCall || do == doDescribe || do == doImpose || do == doLift
}

// request is a request to the agent, one line of JSON.
type request struct {
	ID        uint64            `json:"id"`
	Do        string            `json:"do"`
	Setup     *Setup            `json:"setup,omitempty"` // of open and preflight
	Treatment *design.Treatment `json:"treatment,omitempty"`
	// Operation is that of batch, and the condition of impose and lift, of the treatment with the ID Of.
	Operation string `json:"operation,omitempty"`
	Of        string `json:"of,omitempty"`
	// Number names the operation of call and describe, and I the call. Their names are short, since a serial line is slow.
	Number int    `json:"n,omitempty"`
	I      uint64 `json:"i,omitempty"`
	// Milliseconds is how long a call or the begin of a condition may take; 0: unbounded.
	Milliseconds int64 `json:"ms,omitempty"`
	Calls        int   `json:"calls,omitempty"` // of batch
	// Repeat, of batch, is how many to make, of which the least counts. None begins later than RepeatWithin after the
	// first.
	Repeat       int           `json:"repeat,omitempty"`
	RepeatWithin time.Duration `json:"repeat_within_ns,omitempty"`
}

// Setup says what to open.
type Setup struct {
	Spec       json.RawMessage    `json:"spec"`
	Treatments []design.Treatment `json:"treatments,omitempty"`
	Run        string             `json:"run"` // as in area.Env
	Dir        string             `json:"dir"` // the working folder, so that relative paths of the file are found
	// Trespasses and Chosen are as in area.Env, where Chosen is Operations.
	Trespasses bool     `json:"trespasses,omitempty"`
	Chosen     []string `json:"chosen,omitempty"`
}

// answer is the agent's answer.
type answer struct {
	ID         uint64             `json:"id"`
	Error      string             `json:"error,omitempty"`
	Hint       string             `json:"hint,omitempty"`
	Findings   []area.Finding     `json:"findings,omitempty"`
	Operations []operation        `json:"operations,omitempty"`
	Samples    []load.BatchSample `json:"samples,omitempty"`
	Notes      []string           `json:"notes,omitempty"`
	Conditions []condition        `json:"conditions,omitempty"`
	Result     *result            `json:"r,omitempty"`     // of call
	Texts      []string           `json:"texts,omitempty"` // of describe: request and answer
	Lasts      bool               `json:"lasts,omitempty"` // of impose: lift ends it
}

// result is how a call ended. Its instants are the asking side's.
type result struct {
	Outcome load.Outcome `json:"o"`
	Status  uint16       `json:"s,omitempty"`
	Errno   uint16       `json:"e,omitempty"`
	Cause   load.Cause   `json:"c,omitempty"`
}

// condition is what an area.Condition says about itself.
type condition struct {
	Name  string        `json:"name"`
	Title string        `json:"title,omitempty"`
	Does  string        `json:"does"`
	Hold  time.Duration `json:"hold_ns,omitempty"`
}

// operation is what a load.Operation says about itself.
type operation struct {
	Name     string        `json:"name"`
	Weight   int           `json:"weight"`
	Expect   string        `json:"expect,omitempty"`
	Span     time.Duration `json:"span_ns,omitempty"`
	Rounds   int           `json:"rounds,omitempty"`
	Most     int           `json:"most,omitempty"`
	Whole    int           `json:"whole,omitempty"`
	Negative bool          `json:"negative,omitempty"`
	Twin     string        `json:"twin,omitempty"`
	Causes   []string      `json:"causes,omitempty"`
	Batches  bool          `json:"batches,omitempty"` // otherwise it makes calls
	Number   int           `json:"number,omitempty"`  // by which calls name it, from 1
}

// err returns the answer's error with its hint.
func (a *answer) err() error {
	switch {
	case a.Error == "":
		return nil
	case a.Hint != "":
		return area.WithHint(errors.New(a.Error), a.Hint)
	}
	return errors.New(a.Error)
}

// errNoText means that a line was empty.
var errNoText = errors.New("an empty line")

// readLine decodes one line. The line of a broken peer is quoted in the error.
func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("a line of more than %d bytes", maxLine)
	case err != nil:
		return err
	case len(line) == 1:
		return errNoText
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w in %.80q", err, line)
	}
	return nil
}

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return fmt.Errorf("a line of more than %d bytes", maxLine)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
