package config

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v4"

	"tare/internal/kit"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// A Condition is something that is done to the target under load: by the area, if the file only names it, or by a
// command of the file's own.
type Condition struct {
	Name string
	// Do brings it about, and Undo ends it. Without Undo it ends with Do.
	Do, Undo []string
	// For is the time between Do and Undo.
	For unit.Duration
}

// commands is the form of a condition with commands.
type commands struct {
	Name string        `yaml:"name" json:"name" jsonschema:"required,maxLength=64" jsonschema_description:"A name for the report: small letters, digits and '-'."`
	Do   []string      `yaml:"do" json:"do" jsonschema:"required,minItems=1,maxItems=64" jsonschema_description:"The program that brings the condition about, with its arguments. No shell is involved unless you name one. It must end within a minute."`
	Undo []string      `yaml:"undo,omitempty" json:"undo,omitempty" jsonschema:"minItems=1,maxItems=64" jsonschema_description:"The program that ends it. It is run after an error and an interrupt, too, and by tare undo. Without it the condition ends with do."`
	For  unit.Duration `yaml:"for,omitempty" json:"for,omitempty" jsonschema_description:"Time between do and undo, at most 1m. Default 5s."`
}

// maxHold bounds the time between the two commands of a condition.
const maxHold = time.Minute

var conditionName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func (c *Condition) decodeNode(w *walker, path string, n *yaml.Node) {
	if at, ok := peek(n); ok && at.Kind == yaml.MappingNode {
		w.structure(path, n, reflect.ValueOf((*commands)(c)).Elem())
		return
	}
	if n, ok := w.scalar(path, n, "the name of a condition, or {name, do, undo}"); ok {
		c.Name = n.Value
	}
}

// written is the form of the file.
func (c Condition) written() any {
	if len(c.Do) == 0 {
		return c.Name
	}
	return commands(c)
}

// MarshalYAML writes the form of the file.
func (c Condition) MarshalYAML() (any, error) { return c.written(), nil }

// MarshalJSON writes the form of the file.
func (c Condition) MarshalJSON() ([]byte, error) { return json.Marshal(c.written()) }

// Conditions returns those that a guard brings about under load: names of the area's, which are all that it knows of
// its target if the file names none, and commands.
func (e *Experiment) Conditions() (names []string, own []kit.ByCommand) {
	names, own = e.Load.BroughtAbout()
	if e.Target != nil && names == nil {
		names = e.Target.Says().Conditions
	}
	return names, own
}

// BroughtAbout returns the conditions that the area shall bring about, by name, and those by commands. Without
// conditions in the file names is nil: all that the area can.
func (l *Load) BroughtAbout() (names []string, own []kit.ByCommand) {
	if l.Conditions == nil {
		return nil, nil
	}
	names = []string{}
	for _, c := range l.Conditions {
		if len(c.Do) == 0 {
			names = append(names, c.Name)
		} else {
			own = append(own, kit.ByCommand{Name: c.Name, Do: c.Do, Undo: c.Undo, For: time.Duration(c.For)})
		}
	}
	return names, own
}

// conditionSchema is a name, or commands.
func conditionSchema() *jsonschema.Schema {
	form, _, err := reflectSchema(reflect.TypeFor[commands](), ".")
	if err != nil {
		panic(err) // the type is ours; a test generates the schema
	}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, form}}
}

// conditions rejects what the area cannot bring about on its target, where it says what it can, and commands that
// cannot be run.
func (c *checker) conditions() {
	if !c.decoded {
		return
	}
	known := c.e.Target.Says().Conditions
	var seen []string
	for i, x := range c.e.Load.Conditions {
		path := index("load.conditions", i)
		own := len(x.Do) > 0
		switch {
		case c.broken(path):
		case slices.Contains(seen, x.Name):
			c.fail(path, "the condition %s is given twice", quote(x.Name))
		case own:
			c.commands(path, x, known)
		case len(known) == 0:
			c.fail(path, "tare did not start this target, so it brings about %s only by a command of yours: "+
				"{name: %[2]s, do: [PROGRAM, ARGUMENT]}", quote(x.Name), printed(x.Name))
		case c.cannot(path, x.Name), slices.Contains(known, x.Name):
		default:
			c.fail(path, "%q is not one of %s%s", x.Name, strings.Join(known, ", "), spelling.DidYouMean(x.Name, known))
		}
		seen = append(seen, x.Name)
	}
}

// cannot rejects a condition of which the area says why it cannot be had, and reports whether it does.
func (c *checker) cannot(path, name string) bool {
	whyNot := c.e.Target.Says().WhyNot
	if whyNot == nil {
		return false
	}
	reason := whyNot(name, c.known)
	if reason != "" {
		c.fail(path, "tare cannot bring about %s here: %s", quote(name), reason)
	}
	return reason != ""
}

// commands checks a condition with commands.
func (c *checker) commands(path string, x Condition, known []string) {
	switch {
	case !conditionName.MatchString(x.Name):
		c.fail(path+".name", "want a name of small letters, digits and '-' that begins with a letter")
	case slices.Contains(known, x.Name):
		c.fail(path+".name", "tare has a condition of this name for this target: choose another name")
	case slices.ContainsFunc([][]string{x.Do, x.Undo}, func(line []string) bool { return len(line) > 0 && line[0] == "" }):
		c.fail(path, "a command begins with the name of a program")
	case x.For != 0 && len(x.Undo) == 0:
		c.fail(path+".for", "without undo, the condition ends with do: add undo, or leave out for")
	case x.For < 0 || time.Duration(x.For) > maxHold:
		c.fail(path+".for", "want more than zero and at most %v", maxHold)
	}
}
