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

	"tare/area"
)

// A Diagnostic is an error, a warning or a note about an experiment file.
type Diagnostic struct {
	File     string        `json:"file"`
	Line     int           `json:"line"`   // from 1
	Column   int           `json:"column"` // in characters, from 1; may be one past the end of the line
	Severity area.Severity `json:"-"`
	Path     string        `json:"path,omitempty"` // "load.rates[2]"; empty for the file as a whole
	Message  string        `json:"message"`

	// hideFrom is the column where a secret begins; 0: the line has none.
	hideFrom int
}

// String returns the diagnostic's first line: place, two spaces, message. Warnings and notes begin with their severity.
func (d Diagnostic) String() string {
	grade := ""
	if d.Severity != area.Error {
		grade = d.Severity.String() + ": "
	}
	return fmt.Sprintf("%s:%d:%d  %s%s", d.File, d.Line, d.Column, grade, d.Message)
}

// Write prints the diagnostic with its source line and a caret. It omits values that may be secrets, and control
// characters; a tab becomes one space, so that the caret is placed correctly.
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

// HasErrors reports whether any diagnostic is an error.
func HasErrors(ds []Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == area.Error })
}

func sortDiagnostics(ds []Diagnostic) {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// hidden replaces what is not shown.
const hidden = "…"

var (
	// secretKey matches a key that suggests a secret, and its value. A reference ({env: NAME}) may be shown.
	secretKey = regexp.MustCompile(
		`(?i)([\w-]*(?:passw|secret|token|api_?key|private_?key|credential|authorization|bearer)` +
			`[\w-]*["']?\s*[:=]\s*)([^\s{].*)$`)
	// userInfo matches the user and password of a URL.
	userInfo = regexp.MustCompile(`(://)[^/\s@]+@`)
	// harmless matches a value of such a key that cannot be secret: a number with at most a short unit.
	harmless = regexp.MustCompile(`^[0-9.]{1,8}[a-zA-Z%/]{0,3}\s*([]},#].*)?$`)
)

// mask replaces possible secrets in a source line.
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

// unprintable reports characters that could manipulate a terminal: controls and invisible formatting.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// maxShown is the maximum number of printed characters of a line.
const maxShown = 120

// window cuts a long line to the part around column, and adjusts the column.
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

// quote quotes a value of the file, printable and shortened.
func quote(s string) string {
	const most = 60
	if rs := []rune(s); len(rs) > most {
		s = string(rs[:most]) + hidden
	}
	s = userInfo.ReplaceAllString(s, "${1}"+hidden+"@")
	q := strconv.Quote(s)
	return q
}
