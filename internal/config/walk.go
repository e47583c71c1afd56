package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/internal/spelling"
)

// A walker decodes YAML nodes into Go values by reflection. Unlike a decoder it continues after an error, and it
// records positions, so that later checks can point to them.
type walker struct {
	file   string
	source []byte
	diags  []Diagnostic
	at     map[string]place // by path
	bad    map[string]bool  // paths with an error
	within map[string]bool  // paths with an error in or below them
	veil   veil
	steps  int
}

// A place is the position of a field in the file.
type place struct{ key, value *yaml.Node }

// A field is one entry of a mapping.
type field struct {
	name, path string
	key, value *yaml.Node
}

// nodeDecoder is implemented by types of this package whose form in the file differs from the Go type's.
type nodeDecoder interface {
	decodeNode(w *walker, path string, n *yaml.Node)
}

const (
	maxSteps       = 20_000 // nodes visited, so that nested aliases cannot exhaust memory
	maxDiagnostics = 100
)

var (
	secretType = reflect.TypeFor[area.Secret]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (w *walker) errorAt(path string, n *yaml.Node, format string, args ...any) {
	w.mark(path)
	w.report(area.Error, path, n, fmt.Sprintf(format, args...))
}

func (w *walker) report(s area.Severity, path string, n *yaml.Node, message string) {
	d := Diagnostic{File: w.file, Line: 1, Column: 1, Severity: s, Path: path, Message: message}
	if n != nil {
		d.Line, d.Column = n.Line, n.Column
	}
	w.diags = append(w.diags, d)
}

// mark records an error for broken.
func (w *walker) mark(path string) {
	w.bad[path] = true
	for !w.within[path] {
		w.within[path] = true
		path = above(path)
	}
}

// above is the path of the parent.
func above(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// broken reports whether path or anything below it has an error, so that its value must not be checked.
func (w *walker) broken(path string) bool { return w.within[path] }

// resolve follows aliases. ok is false when the file is too large to continue.
func (w *walker) resolve(path string, n *yaml.Node) (*yaml.Node, bool) {
	for n.Kind == yaml.AliasNode && n.Alias != nil && w.steps <= maxSteps {
		w.steps++
		n = n.Alias
	}
	if w.steps++; w.steps > maxSteps {
		if w.steps == maxSteps+1 {
			w.errorAt(path, n, "the file is too large: it has more than %d values, counting aliases", maxSteps)
		}
		return n, false
	}
	if n.Style&yaml.TaggedStyle != 0 {
		w.errorAt(path, n, "tags such as %s are not used here; leave it out", quote(n.Tag))
		return n, false
	}
	return n, true
}

// decode decodes n into v, which must be settable.
func (w *walker) decode(path string, n *yaml.Node, v reflect.Value, rules rules) {
	if v.Type() == secretType {
		w.secret(path, n, v)
		return
	}
	if d, ok := reflect.TypeAssert[nodeDecoder](v.Addr()); ok {
		d.decodeNode(w, path, n)
		return
	}
	if v.Addr().Type().Implements(textType) {
		w.text(path, n, v)
		return
	}
	if resolved, ok := peek(n); ok && holdsSecret(v.Type()) && resolved.Kind == yaml.ScalarNode {
		w.veil.over(w.source, n) // a secret where a list or a mapping of references should be
	}
	switch kind := v.Kind(); kind { //nolint:exhaustive // all other kinds are single values
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		w.decode(path, n, v.Elem(), rules)
	case reflect.Struct:
		w.structure(path, n, v)
	case reflect.Slice:
		w.slice(path, n, v, rules)
	case reflect.Map:
		w.mapping(path, n, v, rules)
	default:
		w.basic(path, n, v, rules)
	}
}

// fields lists a mapping's entries and records their positions. A second entry of the same name is an error and
// omitted.
func (w *walker) fields(path string, n *yaml.Node) []field {
	n, ok := w.resolve(path, n)
	if !ok {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		w.wrongKind(path, n, "fields (name: value)")
		return nil
	}
	var out []field
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := w.resolve(path, n.Content[i])
		if !ok {
			continue
		}
		if key.Tag == "!!merge" {
			w.errorAt(path, key, "merge keys (<<) are not supported; write the fields out")
			continue
		}
		if key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
			w.errorAt(path, key, "a field's name must be text; put it in quotes")
			continue
		}
		f := field{name: key.Value, path: join(path, key.Value), key: key, value: n.Content[i+1]}
		if line, dup := seen[f.name]; dup {
			w.errorAt(f.path, key, "field %s is given twice; the first is in line %d", quote(f.name), line)
			w.guard(f)
			continue
		}
		seen[f.name] = key.Line
		w.at[f.path] = place{key, f.value}
		out = append(out, f)
	}
	return out
}

// items lists a sequence and records the positions.
func (w *walker) items(path string, n *yaml.Node) ([]*yaml.Node, bool) {
	n, ok := w.resolve(path, n)
	if !ok {
		return nil, false
	}
	if n.Kind != yaml.SequenceNode {
		w.wrongKind(path, n, "a list, such as [a, b]")
		return nil, false
	}
	for i, item := range n.Content {
		w.at[index(path, i)] = place{item, item}
	}
	return n.Content, true
}

// scalar returns the scalar at n.
func (w *walker) scalar(path string, n *yaml.Node, want string) (*yaml.Node, bool) {
	n, ok := w.resolve(path, n)
	if !ok {
		return n, false
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		w.wrongKind(path, n, want)
		return n, false
	}
	if what := credential(n.Value); what != "" {
		w.veil.over(w.source, n)
		w.errorAt(path, n, "%sthis looks like %s; a file must not hold one%s", label(path), what, insteadOfSecret)
		return n, false
	}
	return n, true
}

func (w *walker) wrongKind(path string, n *yaml.Node, want string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		w.errorAt(path, n, "%sis empty; give it %s or leave it out", label(path), want)
		return
	}
	w.errorAt(path, n, "%swant %s, not %s", label(path), want, kindOf(n))
}

func (w *walker) structure(path string, n *yaml.Node, v reflect.Value) {
	known := fieldsOf(v.Type())
	given := map[string]bool{}
	for _, f := range w.fields(path, n) {
		i := slices.IndexFunc(known, func(k structField) bool { return k.name == f.name })
		if i < 0 {
			w.unknown(f, path, known)
			continue
		}
		given[f.name] = true
		if known[i].isTarget {
			continue // its type depends on the area, which may follow below
		}
		w.decode(f.path, f.value, v.FieldByIndex(known[i].index), known[i].rules)
	}
	if resolved, ok := peek(n); !ok || resolved.Kind != yaml.MappingNode {
		return
	}
	for _, k := range known {
		if k.rules.required && !given[k.name] && !w.bad[join(path, k.name)] {
			w.errorAt(join(path, k.name), w.keyOf(path, n), "missing field %q%s", k.name, in(path))
		}
	}
}

func (w *walker) slice(path string, n *yaml.Node, v reflect.Value, rules rules) {
	items, ok := w.items(path, n)
	if !ok {
		w.conceal(v.Type().Elem(), n)
		return
	}
	if rules.minItems > len(items) {
		w.errorAt(path, n, "%sthe list is empty; fill it or leave it out", label(path))
	}
	if rules.maxItems > 0 && len(items) > rules.maxItems {
		w.errorAt(path, n, "%sthe list has %d entries; at most %d are allowed", label(path), len(items), rules.maxItems)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		w.decode(index(path, i), item, v.Index(i), rules)
	}
}

func (w *walker) mapping(path string, n *yaml.Node, v reflect.Value, rules rules) {
	if v.Type().Key().Kind() != reflect.String {
		w.errorAt(path, n, "%sfields of type %s cannot be read", label(path), v.Type())
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, f := range w.fields(path, n) {
		item := reflect.New(v.Type().Elem()).Elem()
		if item.Type() != secretType && !strings.HasSuffix(path, "headers") { // areas say more about headers
			w.noCredential(f)
		}
		w.decode(f.path, f.value, item, rules)
		v.SetMapIndex(reflect.ValueOf(f.name).Convert(v.Type().Key()), item)
	}
}

// peek follows aliases without counting.
func peek(n *yaml.Node) (*yaml.Node, bool) {
	for range maxDepth {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			return n, true
		}
		n = n.Alias
	}
	return n, false
}

// keyOf returns where something missing in path is reported.
func (w *walker) keyOf(path string, n *yaml.Node) *yaml.Node {
	if p, ok := w.at[path]; ok {
		return p.key
	}
	return n
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!int", n.Tag == "!!float":
		return "the number " + n.Value
	case n.Tag == "!!bool":
		return n.Value
	default:
		return "text"
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// label begins a message with the last part of the path.
func label(path string) string {
	if path == "" {
		return ""
	}
	return printed(path[strings.LastIndexByte(path, '.')+1:]) + ": "
}

func in(path string) string {
	if path == "" {
		return ""
	}
	return " in " + printed(path)
}

// printed makes a path printable, since it consists of the file's own words.
func printed(path string) string {
	if strings.ContainsFunc(path, unprintable) || len(path) > 80 {
		return quote(path)
	}
	return path
}

// unknown reports an unknown field, with the field that was probably meant.
func (w *walker) unknown(f field, parent string, known []structField) {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	hint := spelling.DidYouMean(f.name, names)
	if hint == "" {
		hint = elsewhere(f.name, parent)
	}
	if hint == "" && parent != "" {
		hint = "; " + printed(parent) + " has " + strings.Join(names, ", ")
	}
	w.guard(f)
	for _, k := range known {
		if k.secret && k.name == spelling.Nearest(f.name, names) {
			w.veil.over(w.source, f.value)
		}
	}
	w.errorAt(f.path, f.key, "unknown field %s%s", quote(f.name), hint)
}

// elsewhere finds a field of that name at another place.
func elsewhere(name, parent string) string {
	for _, k := range fieldsOf(loadType) {
		if k.name == name && parent == "" {
			return "; it belongs under \"load\""
		}
	}
	for _, k := range fieldsOf(experimentType) {
		if k.name == name && parent != "" {
			return "; it belongs to the top level"
		}
	}
	return ""
}
