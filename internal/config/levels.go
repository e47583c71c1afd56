package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"tare/internal/design"
)

// Levels are the levels of one treatment by factor. They keep the text of the file: 8 and "8" are the same level.
type Levels map[string]string

var factorName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

const (
	maxName   = 64
	maxLevel  = 256
	maxLevels = 10_000
)

func (l *Levels) decodeNode(w *walker, path string, n *yaml.Node) {
	*l = Levels{}
	for _, f := range w.factors(path, n) {
		w.noCredential(f)
		(*l)[f.name] = w.level(f.path, f.value)
	}
}

// factors lists fields that are named after factors. Their names must be valid in budgets and in treatments' names.
func (w *walker) factors(path string, n *yaml.Node) []field {
	fields := w.fields(path, n)
	if len(fields) == 0 && !w.broken(path) {
		w.errorAt(path, n, "%snames no factor; fill it or leave it out", label(path))
	}
	for _, f := range fields {
		if !factorName.MatchString(f.name) || len(f.name) > maxName {
			w.errorAt(f.path, f.key, "factor %s: want a name of letters, digits, '_', '.' and '-', up to %d long",
				quote(f.name), maxName)
		}
	}
	return fields
}

// level parses one level: text, a number, a boolean, or a list of these, which is one level: [apparmor, seccomp] is the
// level "apparmor+seccomp".
func (w *walker) level(path string, n *yaml.Node) string {
	if n.Kind != yaml.SequenceNode {
		return w.plainLevel(path, n)
	}
	items, ok := w.items(path, n)
	if ok && len(items) < 2 {
		w.errorAt(path, n, "%sa level that is a list combines at least two: [a, b]", label(path))
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = w.plainLevel(index(path, i), item)
	}
	all := strings.Join(texts, design.LevelMark)
	if utf8.RuneCountInString(all) > maxLevel {
		w.errorAt(path, n, "%sa level can be at most %d characters long", label(path), maxLevel)
	}
	return all
}

func (w *walker) plainLevel(path string, n *yaml.Node) string {
	n, ok := w.scalar(path, n, "a level (text or a number)")
	if !ok {
		return ""
	}
	switch {
	case n.Value == "":
		w.errorAt(path, n, "a level cannot be empty")
	case utf8.RuneCountInString(n.Value) > maxLevel:
		w.errorAt(path, n, "a level can be at most %d characters long", maxLevel)
	case strings.ContainsFunc(n.Value, unprintable):
		w.errorAt(path, n, "a level must be one line of printable text")
	}
	return n.Value
}

// Factors are the factors to vary, in the order of the file.
type Factors []design.Factor

func (f *Factors) decodeNode(w *walker, path string, n *yaml.Node) {
	for _, x := range w.factors(path, n) {
		levels := w.levels(x)
		*f = append(*f, design.Factor{Name: x.name, Levels: levels})
	}
}

func (w *walker) levels(x field) []string {
	items, ok := w.items(x.path, x.value)
	if !ok {
		return nil
	}
	if len(items) == 0 {
		w.errorAt(x.path, x.value, "factor %s has no levels", quote(x.name))
	}
	var levels []string
	for i, item := range items {
		at := index(x.path, i)
		level := w.level(at, item)
		if level != "" && slices.Contains(levels, level) {
			w.errorAt(at, item, "level %s is given twice", quote(level))
		}
		levels = append(levels, level)
	}
	return levels
}

// MarshalYAML keeps the order of the factors.
func (f Factors) MarshalYAML() (any, error) {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, x := range f {
		seq := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, level := range x.Levels {
			seq.Content = append(seq.Content, text(level))
		}
		m.Content = append(m.Content, text(x.Name), seq)
	}
	return m, nil
}

// MarshalJSON writes an object with the factors in order.
func (f Factors) MarshalJSON() ([]byte, error) {
	names := make([]string, len(f))
	values := make([]any, len(f))
	for i, x := range f {
		names[i], values[i] = x.Name, x.Levels
	}
	return jsonObject(names, values)
}

// An Operation has a share of the mix: its Weight divided by the sum of all weights.
type Operation struct {
	Name   string
	Weight int
}

// Operations is the mix, in the order of the file.
type Operations []Operation

const maxWeight = 1_000_000

// Names returns the names of the operations, in order.
func (o Operations) Names() (out []string) {
	for _, op := range o {
		out = append(out, op.Name)
	}
	return out
}

func (o *Operations) decodeNode(w *walker, path string, n *yaml.Node) {
	items, ok := w.items(path, n)
	if ok && len(items) == 0 {
		w.errorAt(path, n, "the mix has no operations; leave it out for the target's own")
	}
	for i, item := range items {
		at := index(path, i)
		fields := w.fields(at, item)
		if len(fields) != 1 {
			if !w.bad[at] {
				w.errorAt(at, item, "want one operation with its weight, such as {token: 1}")
			}
			continue
		}
		f := fields[0]
		if slices.ContainsFunc(*o, func(x Operation) bool { return x.Name == f.name }) {
			w.errorAt(f.path, f.key, "operation %s is given twice", quote(f.name))
		}
		if f.name == "" || strings.ContainsFunc(f.name, unprintable) {
			w.errorAt(f.path, f.key, "want the name of an operation")
		}
		*o = append(*o, Operation{Name: f.name, Weight: w.weight(f)})
	}
}

func (w *walker) weight(f field) int {
	n, ok := w.scalar(f.path, f.value, "a weight (a whole number)")
	if !ok {
		return 0
	}
	weight, err := strconv.Atoi(n.Value)
	if n.Tag != "!!int" || err != nil || weight < 1 || weight > maxWeight {
		w.errorAt(f.path, n, "%s: want a weight from 1 to %d, not %s", f.name, maxWeight, quote(n.Value))
	}
	return weight
}

// MarshalYAML writes the form of the file: a list of {name: weight}.
func (o Operations) MarshalYAML() (any, error) {
	list := make([]map[string]int, len(o))
	for i, x := range o {
		list[i] = map[string]int{x.Name: x.Weight}
	}
	return list, nil
}

// MarshalJSON writes the form of the file: a list of {name: weight}.
func (o Operations) MarshalJSON() ([]byte, error) {
	list := make([]map[string]int, len(o))
	for i, x := range o {
		list[i] = map[string]int{x.Name: x.Weight}
	}
	return json.Marshal(list)
}

// CPUs is a list of CPUs as Linux writes it: "0", "0-3", "0-1,4".
type CPUs string

var cpuList = regexp.MustCompile(`^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$`)

func (c *CPUs) decodeNode(w *walker, path string, n *yaml.Node) {
	n, ok := w.scalar(path, n, "a list of CPUs")
	if !ok {
		return
	}
	*c = CPUs(n.Value)
	if _, err := c.List(); err != nil {
		w.errorAt(path, n, "%v", err)
	}
}

// List expands the list to CPU numbers, ascending and without duplicates; empty for an empty list.
func (c CPUs) List() ([]int, error) {
	if c == "" {
		return nil, nil
	}
	if !cpuList.MatchString(string(c)) {
		return nil, fmt.Errorf("%s is not a list of CPUs such as \"0\" or \"0-1,4\"", quote(string(c)))
	}
	var cpus []int
	for part := range strings.SplitSeq(string(c), ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, _ := strconv.Atoi(from) // the pattern allows digits only
		last := first
		if isRange {
			last, _ = strconv.Atoi(to)
		}
		if last < first {
			return nil, fmt.Errorf("CPUs %s run backwards", part)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func jsonObject(names []string, values []any) ([]byte, error) {
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(values[i])
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}
