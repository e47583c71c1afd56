package config

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/internal/area"
)

// A Diagnostic is one thing that is wrong, or should be known, about an experiment file.
type Diagnostic struct {
	File     string        `json:"file"`
	Line     int           `json:"line"`   // from 1
	Column   int           `json:"column"` // in characters, from 1; may be one past the end of the line
	Severity area.Severity `json:"-"`
	Path     string        `json:"path,omitempty"` // "load.rates[2]"; empty for the file as a whole
	Message  string        `json:"message"`

	// hideFrom is the column from which the line holds a secret; 0: it holds none.
	hideFrom int
}

// String is the diagnostic's first line: place, two spaces, message. Warnings and notes say so first.
func (d Diagnostic) String() string {
	grade := ""
	if d.Severity != area.Error {
		grade = d.Severity.String() + ": "
	}
	return fmt.Sprintf("%s:%d:%d  %s%s", d.File, d.Line, d.Column, grade, d.Message)
}

// Write prints the diagnostic with its line of source and a caret. Values that may be secrets are not printed, nor are
// control characters; a tab becomes one space, so that the caret stands right.
func (d Diagnostic) Write(w io.Writer, source []byte) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, d.String())
	if line, ok := lineOf(source, d.Line); ok {
		shown, column := window(d.mask(line), d.Column)
		gutter := "  " + strconv.Itoa(d.Line) + " | "
		fmt.Fprintf(&out, "%s\n", strings.TrimRight(gutter+shown, " "))
		fmt.Fprintf(&out, "%s^\n", strings.Repeat(" ", len(gutter)+column-1))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// HasErrors reports whether any diagnostic is more than a warning.
func HasErrors(ds []Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == area.Error })
}

func sortDiagnostics(ds []Diagnostic) {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// hidden stands for what is not shown.
const hidden = "…"

var (
	// secretKey is a key that looks as if a secret followed, and what follows. A place ({env: NAME}) may be shown.
	secretKey = regexp.MustCompile(`(?i)([\w-]*(?:passw|secret|token|api_?key|private_?key|credential|authorization|bearer)[\w-]*["']?\s*[:=]\s*)([^\s{].*)$`)
	// userInfo is the user and password of a URL.
	userInfo = regexp.MustCompile(`(://)[^/\s@]+@`)
	// harmless is a value of such a key that is surely none: a number with at most a short unit.
	harmless = regexp.MustCompile(`^[0-9.]{1,8}[a-zA-Z%/]{0,3}\s*([]},#].*)?$`)
)

// mask hides what may be a secret in a line of source.
func (d Diagnostic) mask(line string) string {
	if d.hideFrom > 0 {
		if rs := []rune(line); d.hideFrom <= len(rs) {
			line = string(rs[:d.hideFrom-1]) + hidden
		}
	}
	if m := secretKey.FindStringSubmatchIndex(line); m != nil && !harmless.MatchString(line[m[4]:]) {
		line = line[:m[4]] + hidden
	}
	line = userInfo.ReplaceAllString(line, "${1}"+hidden+"@")
	return strings.Map(printable, line)
}

func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case unprintable(r):
		return utf8.RuneError
	}
	return r
}

// unprintable reports characters that could play tricks on a terminal: controls and invisible formatting.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// maxShown is how many characters of a line are printed.
const maxShown = 120

// window cuts a long line to the part around column, and moves the column with it.
func window(line string, column int) (shown string, at int) {
	rs := []rune(line)
	column = min(column, len(rs)+1)
	if len(rs) <= maxShown {
		return line, column
	}
	from := max(0, min(column-1-maxShown/2, len(rs)-maxShown))
	to := min(len(rs), from+maxShown)
	shown = string(rs[from:to])
	if to < len(rs) {
		shown += hidden
	}
	if from > 0 {
		shown, from = hidden+shown, from-1
	}
	return shown, column - from
}

// quote shows a value of the file: in quotes, safe to print, and not too long.
func quote(s string) string {
	const most = 60
	if rs := []rune(s); len(rs) > most {
		s = string(rs[:most]) + hidden
	}
	s = userInfo.ReplaceAllString(s, "${1}"+hidden+"@")
	q := strconv.Quote(s)
	return q
}
