package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"tare/area"
	"tare/internal/question"
	"tare/internal/unit"
)

// SchemaFile is the name under which the JSON Schema of experiment files is kept.
const SchemaFile = "experiment.v1.json"

// schemaID names the schema; it is not an address.
const schemaID = "urn:tare:schema:experiment:v1"

// Schema generates the JSON Schema (draft 2020-12) of experiment files from the structs that Parse fills, with the
// target of each area. It is weaker than Parse, which also checks fields against each other.
func Schema(areas Areas) ([]byte, error) {
	root, defs, err := reflectSchema(experimentType, "")
	if err != nil {
		return nil, err
	}
	names := areas.Names()
	if p, ok := root.Properties.Get("area"); ok {
		for _, name := range names {
			p.Enum = append(p.Enum, name)
		}
	}
	if p, ok := root.Properties.Get("question"); ok {
		p.Description = describeQuestions()
	}
	for _, name := range names {
		a, ok := areas.Find(name)
		if !ok {
			return nil, fmt.Errorf("area %s is listed, but cannot be found", name)
		}
		target, more, err := reflectSchema(reflect.TypeOf(a.NewSpec()), name+".")
		if err != nil {
			return nil, err
		}
		maps.Copy(defs, more)
		defs["target."+name] = target
		root.AllOf = append(root.AllOf, inArea(a))
	}
	root.AllOf = append(root.AllOf, questionRules()...)
	root.Definitions = defs
	root.ID = schemaID
	root.Title = "tare experiment"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return append(out, '\n'), nil
}

// inArea returns the rules of one area: the form of the target, and the allowed questions.
func inArea(a area.Area) *jsonschema.Schema {
	then := having("target", &jsonschema.Schema{Ref: "#/$defs/target." + a.Name()})
	answered, offers := &jsonschema.Schema{}, a.Offers()
	for _, q := range question.All() {
		if q.Needs(offers).Given {
			answered.Enum = append(answered.Enum, q.Name)
		}
	}
	then.Properties.Set("question", answered)
	return when("area", a.Name(), then)
}

func describeQuestions() string {
	var each []string
	for _, q := range question.All() {
		each = append(each, fmt.Sprintf("%s (%s)", q.Name, q.Asks))
	}
	return "What the experiment asks: " + strings.Join(each, ", ") + "."
}

// questionRules are the requirements of each question, as far as a schema can express them.
func questionRules() (out []*jsonschema.Schema) {
	for _, q := range question.All() {
		l := &q.Form.Load
		load := without(l.Without...)
		load.Required, load.AnyOf, load.DependentRequired = l.Required, either(l.Either...), l.Needs
		if len(l.NotBoth) > 0 {
			load.Not = &jsonschema.Schema{Required: l.NotBoth}
		}
		file := having("load", load)
		file.Required, file.AnyOf = q.Form.Required, either(q.Form.Either...)
		out = append(out, when("question", q.Name, file))
	}
	return out
}

func either(names ...string) (out []*jsonschema.Schema) {
	for _, name := range names {
		out = append(out, &jsonschema.Schema{Required: []string{name}})
	}
	return out
}

// having is a schema for objects whose field has this form.
func having(name string, s *jsonschema.Schema) *jsonschema.Schema {
	p := jsonschema.NewProperties()
	p.Set(name, s)
	return &jsonschema.Schema{Properties: p}
}

// when is a condition on a field that must be present.
func when(name string, value any, then *jsonschema.Schema) *jsonschema.Schema {
	condition := having(name, &jsonschema.Schema{Const: value})
	condition.Required = []string{name}
	return &jsonschema.Schema{If: condition, Then: then}
}

// without is a schema for objects that lack some fields.
func without(names ...string) *jsonschema.Schema {
	p := jsonschema.NewProperties()
	for _, name := range names {
		p.Set(name, jsonschema.FalseSchema)
	}
	return &jsonschema.Schema{Properties: p}
}

// reflectSchema returns the schema of a struct and its definitions, whose names get a prefix.
func reflectSchema(t reflect.Type, prefix string) (schema *jsonschema.Schema, defs jsonschema.Definitions, err error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	defer func() {
		// The reflector panics on a type that JSON does not have; name it for the developer.
		if r := recover(); r != nil {
			err = fmt.Errorf("generate the schema of %s: %v", t, r)
		}
	}()
	r := &jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, RequiredFromJSONSchemaTags: true, FieldNameTag: "yaml",
		Mapper: schemaOf,
		Namer: func(t reflect.Type) string {
			if t.Name() == "" { // lists and maps: the reflector would add the prefix to their name
				return ""
			}
			return prefix + strings.ToLower(t.Name())
		},
	}
	schema = r.ReflectFromType(t)
	defs, schema.Definitions, schema.Version = schema.Definitions, nil, ""
	if prefix == "" {
		schema.Version = jsonschema.Version
	}
	return schema, defs, nil
}

// schemaOf returns the schema of types whose form in the file differs from that in Go; nil for all others.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[area.Spec]():
		return &jsonschema.Schema{Type: "object"}
	case secretType:
		return secretSchema()
	case reflect.TypeFor[Levels]():
		return levelsSchema(levelSchema())
	case reflect.TypeFor[Factors]():
		one := uint64(1)
		return levelsSchema(&jsonschema.Schema{Type: "array", Items: levelSchema(), MinItems: &one, UniqueItems: true})
	case reflect.TypeFor[Operations]():
		return operationsSchema()
	case reflect.TypeFor[Condition]():
		return conditionSchema()
	case reflect.TypeFor[CPUs]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "string", Pattern: cpuList.String()},
			{Type: "integer", Minimum: "0", Maximum: "9999"},
		}}
	}
	if words := wordsOf(t); words != nil {
		s := &jsonschema.Schema{Type: "string"}
		for _, word := range words {
			s.Enum = append(s.Enum, word)
		}
		return s
	}
	if u, ok := unitSchemas[t]; ok {
		return &jsonschema.Schema{Type: "string", Pattern: u.pattern, Examples: slices.Clone(u.examples)}
	}
	if reflect.PointerTo(t).Implements(textType) && t.Kind() != reflect.String {
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
	}
	return nil
}

// A unitForm is the text form of a quantity, as package unit reads it; a test compares the two.
type unitForm struct {
	pattern  string
	examples []any
}

const (
	decimal = `([0-9]+[.]?[0-9]*|[.][0-9]+)`
	clock   = `(ns|us|µs|μs|ms|s|m|h)`
	part    = `(` + decimal + clock + `)` // of 1h30m
)

var unitSchemas = map[reflect.Type]unitForm{
	reflect.TypeFor[unit.Duration](): {`^(` + decimal + ` ?d|` + decimal + ` ?` + clock + part + `*|` + part + `+ ` +
		part + `+)$`, []any{"30s", "500ms", "5m"}},
	reflect.TypeFor[unit.Rate](): {
		`^` + decimal + ` *[kMG]? ?/ ?(s|sec|second|min|m|minute|h|hour|d|day)$`,
		[]any{"150/s", "2000/s"},
	},
	reflect.TypeFor[unit.Size]():    {`^` + decimal + ` ?(B|[KMGTP]iB|[kKMGTP]B)$`, []any{"64KiB"}},
	reflect.TypeFor[unit.Percent](): {`^` + decimal + ` ?%$`, []any{"2%"}},
}

func secretSchema() *jsonschema.Schema {
	place := func(name, pattern, description string) *jsonschema.Schema {
		one := uint64(1)
		value := &jsonschema.Schema{Type: "string", MinLength: &one, Pattern: pattern, Description: description}
		return &jsonschema.Schema{
			Type: "object", Properties: having(name, value).Properties, Required: []string{name},
			AdditionalProperties: jsonschema.FalseSchema,
		}
	}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		place("env", envName.String(), "Name of an environment variable that holds the secret."),
		place("file", "", "Path of a file that holds the secret."),
	}}
}

func levelSchema() *jsonschema.Schema {
	one, two, most := uint64(1), uint64(2), uint64(maxLevel)
	plain := []*jsonschema.Schema{
		{Type: "string", MinLength: &one, MaxLength: &most}, {Type: "number"}, {Type: "boolean"},
	}
	combined := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{OneOf: plain}, MinItems: &two}
	return &jsonschema.Schema{OneOf: append(slices.Clone(plain), combined)}
}

func levelsSchema(value *jsonschema.Schema) *jsonschema.Schema {
	most, least := uint64(maxName), uint64(1)
	return &jsonschema.Schema{
		Type: "object", AdditionalProperties: value, MinProperties: &least,
		PropertyNames: &jsonschema.Schema{Pattern: factorName.String(), MaxLength: &most},
	}
}

func operationsSchema() *jsonschema.Schema {
	one := uint64(1)
	return &jsonschema.Schema{Type: "array", MinItems: &one, Items: &jsonschema.Schema{
		Type: "object", MinProperties: &one, MaxProperties: &one,
		AdditionalProperties: &jsonschema.Schema{
			Type: "integer", Minimum: "1", Maximum: json.Number(fmt.Sprint(maxWeight)),
		},
	}}
}
