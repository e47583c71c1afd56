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

	"tare/internal/area"
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
)

// request is a request to the agent, one line of JSON. One is under way at a time.
type request struct {
	ID        uint64            `json:"id"`
	Do        string            `json:"do"`
	Setup     *Setup            `json:"setup,omitempty"` // of open and preflight
	Treatment *design.Treatment `json:"treatment,omitempty"`
	Operation string            `json:"operation,omitempty"` // of batch
	Calls     int               `json:"calls,omitempty"`     // of batch
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

// readLine decodes one line. The line of a broken peer is quoted in the error.
func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("a line of more than %d bytes", maxLine)
	case err != nil:
		return err
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
