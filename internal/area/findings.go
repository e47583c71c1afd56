package area

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tare/internal/design"
)

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

// FaultVaried returns a finding about a field that the file gives although the treatments vary it.
func FaultVaried(path, factor string) Finding {
	return Fault(path, fmt.Errorf("%s is varied by the treatments already", factor), "leave it out here")
}

// FaultIn returns a finding about an error in the field at path, which begins with the field's name. Where that is a
// level of t, or path is empty, the finding names the treatment instead.
func FaultIn(t design.Treatment, path string, err error) Finding {
	f := Fault(path, err, "")
	if name, _, _ := strings.Cut(err.Error(), ":"); t.Levels[name] != "" || f.Path == "" {
		return f.In(t)
	}
	return f
}

// In returns f as a finding about a treatment: about its level of the factor with which the message begins, if there is
// one. Without levels there is nothing to name.
func (f Finding) In(t design.Treatment) Finding {
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

// AtLeastOne returns treatments or, if there are none, a single one without levels.
func AtLeastOne(treatments []design.Treatment) []design.Treatment {
	if len(treatments) == 0 {
		return []design.Treatment{{ID: design.ID(nil)}}
	}
	return treatments
}

// JudgeEach returns what judge finds about each treatment. Without treatments it judges a single one that has no
// levels. The same finding about several treatments comes once.
func JudgeEach(treatments []design.Treatment, judge func(t design.Treatment) []Finding) (out []Finding) {
	seen := map[string]bool{}
	for _, t := range AtLeastOne(treatments) {
		for _, f := range judge(t) {
			if key := f.Path + f.Message; !seen[key] {
				seen[key] = true
				out = append(out, f)
			}
		}
	}
	return out
}
