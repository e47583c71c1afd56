package apimetrics

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A line is one sample of a family that is read: `name{label="value",…} value`.
type line struct {
	suffix suffix
	labels []label
	value  string
}

type label struct{ name, value string }

// suffix is what the name of a sample appends to that of its family.
type suffix uint8

const (
	none suffix = iota
	sum
	count
	bucket
)

var (
	errRows   = errors.New("more than can be kept")
	errCut    = errors.New("the last line does not end")
	errLabels = errors.New("labels cannot be read")
	errValue  = errors.New("the value is no number of its kind")
)

// mostLabels bounds the labels of a sample.
const mostLabels = 64

// scan calls read for the samples of the families in it. The text is megabytes long and most lines are of other
// families, so it only searches for their ends. The line is only valid during the call; its strings remain valid.
func scan(text []byte, read map[string]func(*line) error) error {
	l := &line{}
	var family []byte // of the last sample
	var each func(*line) error
	for n := 1; len(text) > 0; n++ {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			if string(text) == "# EOF" {
				return nil
			}
			return fmt.Errorf("line %d: %w", n, errCut)
		}
		row := text[:end]
		text = text[end+1:]
		if len(row) == 0 || row[0] == '#' {
			continue
		}
		name := row[:nameEnd(row)]
		if !bytes.Equal(name, family) {
			family = name
			each, l.suffix = reader(read, string(name))
		}
		if each == nil {
			continue
		}
		if err := l.parse(row[len(name):]); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := each(l); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// nameEnd returns where the name of a sample ends.
func nameEnd(row []byte) int {
	for i, c := range row {
		if c == '{' || c == ' ' || c == '\t' {
			return i
		}
	}
	return len(row)
}

// reader returns the function that reads samples of a name.
func reader(read map[string]func(*line) error, name string) (func(*line) error, suffix) {
	if each := read[name]; each != nil {
		return each, none
	}
	for i, s := range []string{"_sum", "_count", "_bucket"} {
		if family, ok := strings.CutSuffix(name, s); ok {
			return read[family], sum + suffix(i)
		}
	}
	return nil, none
}

// parse parses what follows the name.
func (l *line) parse(row []byte) error {
	l.labels = l.labels[:0]
	rest := skip(string(row), false)
	if strings.HasPrefix(rest, "{") {
		var err error
		if rest, err = l.parseLabels(rest[1:]); err != nil {
			return err
		}
	}
	l.value = strings.Trim(rest, " \t\r")
	if i := strings.IndexAny(l.value, " \t"); i >= 0 {
		l.value = l.value[:i] // a timestamp follows
	}
	if l.value == "" {
		return errValue
	}
	return nil
}

// parseLabels parses labels up to the closing brace and returns the rest.
func (l *line) parseLabels(s string) (rest string, err error) {
	for range mostLabels {
		s = skip(s, true)
		if after, ok := strings.CutPrefix(s, "}"); ok {
			return after, nil
		}
		name, after, ok := strings.Cut(s, `="`)
		if !ok {
			return "", errLabels
		}
		var value string
		if value, s, err = quoted(after); err != nil {
			return "", err
		}
		l.labels = append(l.labels, label{strings.TrimSpace(name), value})
	}
	return "", errLabels
}

// skip removes leading blanks and, between labels, commas.
func skip(s string, commas bool) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t' || (commas && s[0] == ',')) {
		s = s[1:]
	}
	return s
}

// quoted parses up to the closing quote, with the escapes \\, \" and \n.
func quoted(s string) (text, rest string, err error) {
	var b []byte
	for {
		end := strings.IndexByte(s, '"')
		if end < 0 {
			return "", "", errLabels
		}
		escape := strings.IndexByte(s[:end], '\\')
		switch {
		case escape < 0 && b == nil:
			return s[:end], s[end+1:], nil
		case escape < 0:
			return string(append(b, s[:end]...)), s[end+1:], nil
		}
		b = append(b, s[:escape]...)
		c := s[escape+1] // it exists: at the latest the quote
		if c == 'n' {
			c = '\n'
		}
		b = append(b, c)
		s = s[escape+2:]
	}
}

// label returns a label's value; "" if there is none of that name, which means the same.
func (l *line) label(name string) string {
	for i := range l.labels {
		if l.labels[i].name == name {
			return l.labels[i].value
		}
	}
	return ""
}

// number returns a finite value of at least 0, as all totals are.
func (l *line) number() (float64, error) { return parseNumber(l.value) }

func parseNumber(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !finite(v) || v < 0 {
		return 0, errValue
	}
	return v, nil
}

// mostCount is the largest count that a float64 holds exactly.
const mostCount = 1 << 53

// count returns a value that is a count. Large counts are written as 1.2e+06.
func (l *line) count() (uint64, error) {
	if n, err := strconv.ParseUint(l.value, 10, 53); err == nil {
		return n, nil
	}
	v, err := parseNumber(l.value)
	if err != nil || v > mostCount || v != float64(uint64(v)) {
		return 0, errValue
	}
	return uint64(v), nil
}
