package area

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

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

// In returns f as a finding about a treatment: about its level of the factor with which the message begins, if there is
// one. Without levels there is nothing to name.
func (f Finding) In(t Treatment) Finding {
	factor, _, _ := strings.Cut(f.Message, ":")
	f.Path = ""
	if len(t.Levels) == 0 {
		return f
	}
	if _, ok := t.Levels[factor]; ok {
		f.Factor = factor
	}
	f.Treatment, f.Message = t.ID, fmt.Sprintf("treatment %q: %s", t.ID, f.Message)
	return f
}

// Fault returns a finding that stops a run. Without a hint, it has the one that err carries.
func Fault(path string, err error, hint string) Finding {
	return Finding{Path: path, Severity: Error, Message: err.Error() + From(err), Hint: cmp.Or(hint, HintOf(err))}
}

// From names the folder to which the path of a missing file is relative; it is empty for other errors.
func From(err error) string {
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, fs.ErrNotExist) || filepath.IsAbs(p.Path) || p.Op == "openat" { // that is below an os.Root
		return ""
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return " (looked for in " + dir + ")"
}

// WithHint returns err with a hint, the next step for the user.
func WithHint(err error, hint string) error { return hinted{err, hint} }

type hinted struct {
	error

	hint string
}

// Unwrap returns the error without its hint.
func (h hinted) Unwrap() error { return h.error }

// Hint returns the next step.
func (h hinted) Hint() string { return h.hint }

// HintOf returns the hint that err carries, by a method Hint; empty if it carries none.
func HintOf(err error) string {
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return h.Hint()
	}
	return ""
}

// A Check is one capability of this host and the result of trying it, for `tare doctor`.
type Check struct {
	Group string     `json:"group"` // KernelFeatures, Tools, or a heading of the area's own
	Name  string     `json:"name"`
	State CheckState `json:"state"`
	Found string     `json:"found"`
	// Cause and Next say why the check failed, and what to do about it.
	Cause string `json:"cause,omitempty"`
	Next  string `json:"next,omitempty"`
	// Values are the numbers behind Found, in base units.
	Values map[string]float64 `json:"values,omitempty"`
}

// The groups of checks that areas add to.
const (
	KernelFeatures = "kernel features"
	Tools          = "tools"
)

// CheckState judges one capability.
type CheckState string

// The states.
const (
	CheckOK      CheckState = "ok"
	CheckLimited CheckState = "limited" // it works, but not as well as it could
	CheckMissing CheckState = "missing" // experiments that need it cannot run here
	CheckBroken  CheckState = "broken"  // every run needs it: not for areas
	CheckInfo    CheckState = "info"    // neither good nor bad
)
