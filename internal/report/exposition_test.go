package report

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// openMetrics is a strict reader of OpenMetrics text, written from the grammar and the rules of the specification,
// version 1.0 (github.com/prometheus/OpenMetrics). It knows the types that the encoder writes; others it refuses.
type openMetrics struct {
	families map[string]*omFamily
	now      *omFamily
	points   map[string]float64 // by name and labels in order of their names
}

type omFamily struct {
	name, kind, unit, help string
	typed, united, helped  bool
	samples                int
	groups                 []string // label sets in the order of their first sample
}

var (
	omName      = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	omLabelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	omNumber    = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)
	omSpecial   = regexp.MustCompile(`^(?i)([+-]?inf(inity)?|nan)$`)
)

// omSuffixes are what a type adds to a family's name; two families must not meet in one name.
var omSuffixes = map[string][]string{
	"counter": {"_total", "_created"}, "info": {"_info"}, "gauge": {""}, "stateset": {""}, "unknown": {""},
}

// readOpenMetrics reads a whole exposition.
func readOpenMetrics(text string) (*openMetrics, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("not UTF-8")
	}
	body, ok := strings.CutSuffix(text, "# EOF\n")
	if !ok {
		return nil, errors.New("does not end in # EOF")
	}
	if body != "" && !strings.HasSuffix(body, "\n") {
		return nil, errors.New("# EOF is not on a line of its own")
	}
	m := &openMetrics{families: map[string]*omFamily{}, points: map[string]float64{}}
	for i, line := range strings.Split(strings.TrimSuffix(body, "\n"), "\n") {
		if body == "" {
			break
		}
		if err := m.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w: %.200q", i+1, err, line)
		}
	}
	return m, m.finish()
}

func (m *openMetrics) line(line string) error {
	if strings.ContainsRune(line, '\r') {
		return errors.New("carriage return")
	}
	if strings.HasPrefix(line, "#") {
		return m.descriptor(line)
	}
	return m.sample(line)
}

func (m *openMetrics) descriptor(line string) error {
	part := strings.SplitN(line, " ", 4)
	if len(part) != 4 || part[0] != "#" {
		return errors.New("not a descriptor")
	}
	word, name, value := part[1], part[2], part[3]
	if !omName.MatchString(name) {
		return errors.New("not a name")
	}
	f := m.families[name]
	if f == nil {
		f = &omFamily{name: name}
		m.families[name], m.now = f, f
	}
	if f != m.now || f.samples > 0 {
		return errors.New("a family must not be interleaved with others, and its descriptors come first")
	}
	once := func(done *bool) error {
		if *done {
			return errors.New("said twice")
		}
		*done = true
		return nil
	}
	switch word {
	case "TYPE":
		if f.kind = value; omSuffixes[value] == nil {
			return errors.New("unknown type")
		}
		return once(&f.typed)
	case "UNIT":
		if f.unit = value; value == "" || !strings.HasSuffix(name, "_"+value) {
			return errors.New("the unit is not the end of the name")
		}
		return once(&f.united)
	case "HELP":
		f.help = value
		if _, rest, err := omString(value + `"`); err != nil || rest != "" {
			return fmt.Errorf("badly escaped help: %w", err)
		}
		return once(&f.helped)
	}
	return errors.New("unknown descriptor")
}

// omString reads an escaped string up to its closing quote: only \n, \" and \\ are escapes that the encoder may use.
func omString(s string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c == '\\':
			if i++; i == len(s) {
				return "", "", errors.New("a backslash at the end")
			}
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case '"', '\\':
				b.WriteByte(s[i])
			default:
				return "", "", errors.New("unknown escape")
			}
		case c < ' ' || c == 0x7f:
			return "", "", errors.New("control character")
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("no closing quote")
}

func omLabels(s string) (set map[string]string, rest string, err error) {
	set = map[string]string{}
	for first := true; ; first = false {
		if r, ok := strings.CutPrefix(s, "}"); ok {
			return set, r, nil
		}
		if !first {
			var ok bool
			if s, ok = strings.CutPrefix(s, ","); !ok {
				return nil, "", errors.New("no comma between labels")
			}
		}
		name, after, ok := strings.Cut(s, `="`)
		if !ok || !omLabelName.MatchString(name) || strings.HasPrefix(name, "__") {
			return nil, "", errors.New("not a label")
		}
		if _, dup := set[name]; dup {
			return nil, "", errors.New("a label twice")
		}
		if set[name], s, err = omString(after); err != nil {
			return nil, "", err
		}
	}
}

func (m *openMetrics) sample(line string) error {
	end := strings.IndexAny(line, "{ ")
	if end < 1 || !omName.MatchString(line[:end]) {
		return errors.New("not a sample")
	}
	name, rest, set := line[:end], line[end:], map[string]string{}
	if r, ok := strings.CutPrefix(rest, "{"); ok {
		var err error
		if set, rest, err = omLabels(r); err != nil {
			return err
		}
	}
	number, ok := strings.CutPrefix(rest, " ")
	if !ok || !omNumber.MatchString(number) && !omSpecial.MatchString(number) {
		return errors.New("not a number, or a timestamp where none should be")
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return err
	}
	if m.now == nil {
		return errors.New("a sample before any family")
	}
	return m.now.add(m, name, set, v)
}

func key(set map[string]string, without string) string {
	var parts []string
	for k, v := range set {
		if k != without {
			parts = append(parts, k+"="+strconv.Quote(v))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// add takes a sample into the family that is being read.
func (f *omFamily) add(m *openMetrics, name string, set map[string]string, v float64) error {
	f.samples++
	suffix := map[string]string{"counter": "_total", "info": "_info"}[f.kind]
	if name != f.name+suffix {
		return fmt.Errorf("a sample of %s must be called %s", f.name, f.name+suffix)
	}
	id := name + "{" + key(set, "") + "}"
	if _, dup := m.points[id]; dup {
		return errors.New("the same sample twice")
	}
	m.points[id] = v
	switch f.kind {
	case "counter":
		if !(v >= 0) {
			return errors.New("a counter is negative or no number")
		}
	case "info":
		if v != 1 {
			return errors.New("an info must be 1")
		}
	case "stateset":
		return f.state(set, v)
	}
	return nil
}

// state checks a sample of a stateset: its state is a label with the family's name, its value 0 or 1, and samples of
// one set stand together.
func (f *omFamily) state(set map[string]string, v float64) error {
	if _, ok := set[f.name]; !ok {
		return errors.New("a stateset without the label of its state")
	}
	if v != 0 && v != 1 {
		return errors.New("a state is 0 or 1")
	}
	group := key(set, f.name)
	if len(f.groups) == 0 || f.groups[len(f.groups)-1] != group {
		if slices.Contains(f.groups, group) {
			return errors.New("samples of a stateset are scattered")
		}
		f.groups = append(f.groups, group)
	}
	return nil
}

// finish checks what concerns the whole.
func (m *openMetrics) finish() error {
	names := map[string]string{}
	for _, f := range m.families {
		if !f.typed || !f.helped || f.help == "" {
			return fmt.Errorf("%s lacks TYPE or HELP", f.name)
		}
		if f.samples == 0 {
			return fmt.Errorf("%s has no sample", f.name)
		}
		if f.united && (f.kind == "info" || f.kind == "stateset") {
			return fmt.Errorf("%s: this type has no unit", f.name)
		}
		for _, bad := range []string{"_total", "_created", "_count", "_sum", "_bucket", "_gcount", "_gsum", "_info"} {
			if strings.HasSuffix(f.name, bad) {
				return fmt.Errorf("%s ends in a reserved suffix", f.name)
			}
		}
		for _, base := range []string{"_seconds", "_bytes", "_ratio", "_per_second"} {
			if strings.HasSuffix(f.name, base) && !f.united {
				return fmt.Errorf("%s names a unit and has none", f.name)
			}
		}
		for _, s := range append([]string{""}, omSuffixes[f.kind]...) {
			if other, taken := names[f.name+s]; taken && other != f.name {
				return fmt.Errorf("%s and %s share the name %s", f.name, other, f.name+s)
			}
			names[f.name+s] = f.name
		}
	}
	return nil
}

// equal compares numbers, with NaN equal to itself.
func equal(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
