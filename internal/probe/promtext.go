package probe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on an exposition, against hostile and broken endpoints.
const (
	expositionMax     = 8 << 20 // bytes of a body
	expositionLineMax = 1 << 20 // bytes of a line
	labelsMax         = 128     // labels of a sample
	familiesMax       = 1 << 16 // names with a type
)

// An exposed sample is one line of an exposition.
type exposed struct {
	name   string
	labels []label
	value  float64 // may be NaN or infinite
}

type label struct{ name, value string }

// get returns a label's value; "" if the sample has no such label, which Prometheus treats alike.
func (e exposed) get(name string) string {
	for _, l := range e.labels {
		if l.name == name {
			return l.value
		}
	}
	return ""
}

// parseExposition reads the Prometheus text format 0.0.4 and OpenMetrics 1.0 line by line, calls each for every sample,
// and returns the types of the families. It ignores timestamps and exemplars. Errors give the line's number and never
// its text: a page that is no exposition may hold anything, even the request's own credentials.
func parseExposition(r io.Reader, each func(exposed)) (families, error) {
	lines := bufio.NewScanner(&bounded{r: r})
	lines.Buffer(nil, expositionLineMax)
	lines.Split(wholeLines)
	types := make(families)
	n := 0
	for lines.Scan() {
		n++
		line := strings.Trim(lines.Text(), " \t\r")
		switch {
		case line == "":
		case line == "# EOF":
			return types, nil
		case strings.HasPrefix(line, "#"):
			if err := types.comment(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		default:
			s, err := parseExposed(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			each(s)
		}
	}
	switch err := lines.Err(); {
	case err == nil:
		return types, nil
	case errors.Is(err, errTooMuch) || errors.Is(err, errCutOff):
		return nil, err
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: longer than %d MiB", n+1, expositionLineMax>>20)
	default:
		return nil, fmt.Errorf("after line %d: %w", n, redactedError(err))
	}
}

// Why a reading is incomplete.
var (
	errTooMuch = fmt.Errorf("more than %d MiB", expositionMax>>20)
	errCutOff  = errors.New("cut off: the last line does not end")
)

// bounded reads at most expositionMax bytes, and fails if there are more.
type bounded struct {
	r io.Reader
	n int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.n += n; b.n > expositionMax {
		return 0, errTooMuch
	}
	return n, err
}

// wholeLines is a bufio.SplitFunc that, unlike bufio.ScanLines, rejects a last line without a line feed: half a line
// may be half a number. Only the end mark of OpenMetrics needs no line feed.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		if string(data) == "# EOF" {
			return len(data), data, nil
		}
		return 0, nil, errCutOff
	}
	return 0, nil, nil
}

// families are the types of families by name: "counter", "gauge", "histogram", ….
type families map[string]string

// comment reads the type from "# TYPE name type".
func (f families) comment(line string) error {
	w := strings.Fields(line)
	if len(w) != 4 || w[0] != "#" || w[1] != "TYPE" {
		return nil
	}
	if len(f) == familiesMax {
		return fmt.Errorf("more than %d families", familiesMax)
	}
	f[strings.Trim(w[2], `"`)] = strings.ToLower(w[3])
	return nil
}

// parseExposed reads `name{label="value",…} value [timestamp] [# exemplar]`; since Prometheus 3 the name may be quoted
// in the braces.
func parseExposed(line string) (exposed, error) {
	name, rest := takeName(line)
	s := exposed{name: name}
	rest = trimBlanks(rest)
	if strings.HasPrefix(rest, "{") {
		var err error
		if rest, err = s.takeLabels(rest[1:]); err != nil {
			return exposed{}, err
		}
	}
	if s.name == "" {
		return exposed{}, errors.New("no name of a series")
	}
	f := strings.Fields(rest)
	if len(f) == 0 {
		return exposed{}, errors.New("no value")
	}
	if len(f) > 2 && f[1] != "#" && f[2] != "#" {
		return exposed{}, errors.New("more than a value and a timestamp")
	}
	v, err := strconv.ParseFloat(f[0], 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return exposed{}, errors.New("the value is not a number")
	}
	s.value = v
	return s, nil
}

// takeLabels parses labels up to the closing brace and returns the rest. A comma may precede the brace.
func (e *exposed) takeLabels(s string) (rest string, err error) {
	for range labelsMax {
		s = trimBlanks(s)
		if after, ok := strings.CutPrefix(s, "}"); ok {
			return after, nil
		}
		if s, err = e.takeLabel(s); err != nil {
			return "", err
		}
		s = trimBlanks(s)
		after, more := strings.CutPrefix(s, ",")
		if !more && !strings.HasPrefix(s, "}") {
			return "", errors.New("no comma or brace after a label")
		}
		s = after
	}
	return "", fmt.Errorf("more than %d labels", labelsMax)
}

// takeLabel parses `name="value"`, or a quoted text alone: the series' name.
func (e *exposed) takeLabel(s string) (rest string, err error) {
	var name string
	quoted := strings.HasPrefix(s, `"`)
	if quoted {
		if name, s, err = takeQuoted(s); err != nil {
			return "", err
		}
	} else {
		name, s = takeName(s)
	}
	after, ok := strings.CutPrefix(trimBlanks(s), "=")
	switch {
	case !ok && quoted && e.name == "" && len(e.labels) == 0:
		e.name = name
		return s, nil
	case !ok || name == "":
		return "", errors.New("a label without a value")
	}
	value, s, err := takeQuoted(trimBlanks(after))
	if err != nil {
		return "", err
	}
	e.labels = append(e.labels, label{name, value})
	return s, nil
}

// takeName cuts the longest name [a-zA-Z_:][a-zA-Z0-9_:]* off the front.
func takeName(s string) (name, rest string) {
	i := 0
	for i < len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':'
		if !letter && (i == 0 || c < '0' || c > '9') {
			break
		}
		i++
	}
	return s[:i], s[i:]
}

// takeQuoted reads a text in double quotes with the escapes \\, \" and \n.
func takeQuoted(s string) (text, rest string, err error) {
	s, ok := strings.CutPrefix(s, `"`)
	if !ok {
		return "", "", errors.New("a label's value is not quoted")
	}
	var b strings.Builder
	for {
		i := strings.IndexAny(s, `"\`)
		if i < 0 || (s[i] == '\\' && i+1 == len(s)) {
			return "", "", errors.New("unterminated quote")
		}
		b.WriteString(s[:i])
		if s[i] == '"' {
			if !utf8.ValidString(b.String()) {
				return "", "", errors.New("a label that is not UTF-8")
			}
			return b.String(), s[i+1:], nil
		}
		switch c := s[i+1]; c {
		case 'n':
			b.WriteByte('\n')
		case '\\', '"':
			b.WriteByte(c)
		default: // as in Prometheus, an unknown escape is kept as it is
			b.WriteString(s[i : i+2])
		}
		s = s[i+2:]
	}
}

// trimBlanks removes leading blanks.
func trimBlanks(s string) string { return strings.TrimLeft(s, " \t") }
