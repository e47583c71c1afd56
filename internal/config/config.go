// Package config parses experiment files: YAML into an Experiment, with line and column of every error.
package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/internal/design"
	"tare/internal/probe"
	"tare/internal/question"
	"tare/internal/spelling"
)

// Areas returns the areas that an experiment may name.
type Areas interface {
	Find(name string) (area.Area, bool)
	Names() []string
}

// KnownAreas names the areas of this binary for an error about one that it lacks.
func KnownAreas(areas Areas, lacks string) string {
	names := areas.Names()
	list := strings.Join(names, ", ")
	if near := spelling.DidYouMean(lacks, names); near != "" {
		return "the areas are " + list + near
	}
	return "this build of tare has " + list + "; another may have more"
}

// A List is the areas of a binary, in the order in which they are shown.
type List []area.Area

// Find implements Areas.
func (l List) Find(name string) (area.Area, bool) {
	for _, a := range l {
		if a.Name() == name {
			return a, true
		}
	}
	return nil, false
}

// Names implements Areas.
func (l List) Names() (names []string) {
	for _, a := range l {
		names = append(names, a.Name())
	}
	return names
}

var (
	experimentType = reflect.TypeFor[Experiment]()
	loadType       = reflect.TypeFor[Load]()
)

// Parse parses one experiment file; file is its name in diagnostics. It reports all problems at once, in the order of
// the file. The experiment is nil if there is an error among them, and complete if there are only warnings. Parse never
// panics.
func Parse(file string, data []byte, areas Areas) (*Experiment, []Diagnostic) {
	root, faults := readSource(data)
	if root == nil {
		var ds []Diagnostic
		for _, f := range faults {
			ds = append(ds, Diagnostic{File: file, Line: f.line, Column: f.column, Severity: area.Error, Message: f.message})
		}
		return nil, ds
	}
	e, ds := interpret(file, data, root, areas)
	if HasErrors(ds) {
		return nil, ds
	}
	if e.Full == nil {
		return e, ds
	}
	var more []Diagnostic
	e.whole, more = interpret(file, data, inFull(root), areas)
	for _, d := range more { // problems of both forms are reported only once
		if !slices.ContainsFunc(ds, func(have Diagnostic) bool { return have.Line == d.Line && have.Message == d.Message }) {
			ds = append(ds, d)
		}
	}
	sortDiagnostics(ds)
	if HasErrors(ds) {
		return nil, ds
	}
	return e, ds
}

// interpret decodes and checks one form of the file.
func interpret(file string, data []byte, root *yaml.Node, areas Areas) (*Experiment, []Diagnostic) {
	w := &walker{
		file: file, source: data, at: map[string]place{"": {root, root}}, bad: map[string]bool{}, within: map[string]bool{},
		veil: veil{from: map[int]int{}, seen: map[*yaml.Node]bool{}},
	}
	e := &Experiment{}
	w.decode("", root, reflect.ValueOf(e).Elem(), rules{})
	if root.Kind == yaml.MappingNode {
		check(w, e, areas)
	}
	w.comments()
	return e, w.finish()
}

// finish sorts the diagnostics, bounds their number, and hides secrets in them.
func (w *walker) finish() []Diagnostic {
	sortDiagnostics(w.diags)
	if len(w.diags) > maxDiagnostics {
		// Errors come first, so that many warnings cannot displace them.
		slices.SortStableFunc(w.diags, func(a, b Diagnostic) int { return int(b.Severity) - int(a.Severity) })
		rest := len(w.diags) - maxDiagnostics
		last := w.diags[maxDiagnostics-1]
		w.diags = w.diags[:maxDiagnostics]
		sortDiagnostics(w.diags)
		last.Message, last.Path = fmt.Sprintf("and %d more problems", rest+1), ""
		w.diags[maxDiagnostics-1] = last
	}
	for i := range w.diags {
		d := &w.diags[i]
		d.Line, d.Column = clamp(w.source, d.Line, d.Column)
		d.hideFrom = w.veil.column(d.Line)
	}
	return w.diags
}

// checker checks the meaning of the file, after its syntax.
type checker struct {
	*walker
	e     *Experiment
	areas Areas
	area  area.Area          // nil if the file names none that exists
	known []design.Treatment // nil while unknown

	decoded  bool // the target section has no error but the area's own
	unplaced bool // where the target is cannot be read
}

func check(w *walker, e *Experiment, areas Areas) {
	c := &checker{walker: w, e: e, areas: areas}
	c.findArea()
	c.target()
	c.question()
	c.treatments()
	c.load()
	c.budget()
	c.trespasses()
	c.pins()
}

// given reports whether the file has the field.
func (c *checker) given(path string) bool {
	_, ok := c.at[path]
	return ok
}

// isValid reports whether the file has the field, with a valid value.
func (c *checker) isValid(path string) bool { return c.given(path) && !c.broken(path) }

// value returns the node of a field's value or, for a missing field, of what would contain it.
func (c *checker) value(path string) *yaml.Node {
	if p, ok := c.at[path]; ok {
		return p.value
	}
	return c.parent(path)
}

// key returns the node where a field begins.
func (c *checker) key(path string) *yaml.Node {
	if p, ok := c.at[path]; ok {
		return p.key
	}
	return c.parent(path)
}

func (c *checker) parent(path string) *yaml.Node {
	for path != "" {
		path = above(path)
		if p, ok := c.at[path]; ok {
			return p.key
		}
	}
	return nil
}

func (c *checker) fail(path, format string, args ...any) {
	c.errorAt(path, c.value(path), format, args...)
}

// missing reports a required field that is missing, at the field that requires it.
func (c *checker) missing(path, asker, message string) {
	if !c.given(path) {
		c.errorAt(path, c.key(asker), "%s", message)
	}
}

func (c *checker) warn(path, format string, args ...any) {
	c.report(area.Warning, path, c.key(path), fmt.Sprintf(format, args...))
}

func (c *checker) findArea() {
	if !c.isValid("area") || c.areas == nil {
		return
	}
	if a, ok := c.areas.Find(c.e.Area); ok {
		c.area, c.e.quantities = a, a.Parts().Quantities
		c.quantities()
		return
	}
	c.fail("area", "unknown area %s: %s", quote(c.e.Area), KnownAreas(c.areas, c.e.Area))
}

// quantities rejects an area whose own quantities cannot be reported, or hide metrics of tare.
func (c *checker) quantities() {
	for i, q := range c.e.quantities {
		err := q.Valid()
		if _, taken := probe.Known(q.Name, c.e.quantities[:i]...); taken && err == nil {
			err = fmt.Errorf("the name of the quantity %s is taken", q.Name)
		}
		if err != nil {
			c.fail("area", "area %s is defective: %v", c.e.Area, err)
		}
	}
}

// target decodes the area's section, and lets the area check it.
func (c *checker) target() {
	if c.area == nil || !c.given("target") {
		return
	}
	spec := c.area.NewSpec()
	v := reflect.ValueOf(spec)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		c.fail("target", "area %s has no fields for a target", c.e.Area)
		return
	}
	c.decode("target", c.at["target"].value, v.Elem(), rules{})
	c.e.Target, c.decoded = spec, !c.broken("target")
}

// judge lets the area check its section once the treatments are known.
func (c *checker) judge() {
	if c.e.Target == nil || c.broken("target") || !c.isValid("question") {
		return
	}
	for _, f := range c.e.Target.Validate(question.Of(c.e.Question).Asked(), c.known) {
		path := targetPath(f.Path)
		if f.Treatment != "" {
			path = c.levelPath(f.Treatment, f.Factor)
		}
		if f.Severity == area.Error && (f.Path == "url" || f.Factor == "url") {
			c.unplaced = true
		}
		message := f.Message
		if f.Hint != "" {
			message += "; " + f.Hint
		}
		if f.Severity == area.Error {
			c.mark(path)
		}
		if f.Secret {
			c.veil.over(c.source, c.value(path))
		}
		c.report(f.Severity, path, c.value(path), message)
	}
}

// targetPath returns the path in the file of an area's finding; areas may omit "target".
func targetPath(path string) string {
	switch {
	case path == "":
		return "target"
	case path == "target", strings.HasPrefix(path, "target."), strings.HasPrefix(path, "target["):
		return path
	}
	return join("target", path)
}

// question rejects a question that the area cannot answer.
func (c *checker) question() {
	if c.area == nil || !c.isValid("question") {
		return
	}
	o := question.AnsweredBy(c.area.Offers(), c.e.Question)
	switch {
	case o.Given:
	case o.Reason != "":
		c.fail("question", "area %s does not answer %s: %s", c.e.Area, c.e.Question, o.Reason)
	default:
		c.fail("question", "area %s does not answer %s", c.e.Area, c.e.Question)
	}
}
