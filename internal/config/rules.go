package config

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tare/area"
	"tare/internal/design"
	"tare/internal/question"
)

// A structField is a field of a Go struct as the file names it.
type structField struct {
	name     string
	index    []int
	rules    rules
	secret   bool // a Secret, or a map or list of Secrets
	isTarget bool
}

// rules are the rules in a field's `jsonschema` tag, so that the JSON Schema and the parser cannot disagree.
type rules struct {
	required           bool
	enum               []string
	pattern            *regexp.Regexp
	minimum, maximum   *float64
	minItems, maxItems int
	maxLength          int
	isPath             bool // by the tag `tare:"path"`: ~/ is the user's home folder
}

// fieldsOf lists the fields of t in order, including those of embedded structs.
func fieldsOf(t reflect.Type) []structField {
	var out []structField
	for f := range t.Fields() {
		name, inline := fileName(f)
		switch {
		case name == "-" || (!f.IsExported() && !f.Anonymous):
			continue
		case inline && f.Type.Kind() == reflect.Struct:
			for _, sub := range fieldsOf(f.Type) {
				sub.index = append(slices.Clone(f.Index), sub.index...)
				out = append(out, sub)
			}
		case f.IsExported():
			r := rulesOf(f.Tag.Get("jsonschema"))
			r.isPath = f.Tag.Get("tare") == "path"
			if words := wordsOf(f.Type); words != nil {
				r.enum = words
			}
			out = append(out, structField{
				name: name, index: f.Index, rules: r,
				secret: holdsSecret(f.Type), isTarget: f.Type == reflect.TypeFor[area.Spec](),
			})
		}
	}
	return out
}

// fileName returns the field's name in the file: from its yaml tag, else from its json tag.
func fileName(f reflect.StructField) (name string, inline bool) {
	for _, key := range []string{"yaml", "json"} {
		tag, ok := f.Tag.Lookup(key)
		if !ok {
			continue
		}
		parts := strings.Split(tag, ",")
		if slices.Contains(parts[1:], "inline") {
			return "", true
		}
		if parts[0] != "" {
			return parts[0], false
		}
	}
	if f.Anonymous {
		return "", true
	}
	return strings.ToLower(f.Name), false
}

// wordsOf are the words that a field of that type may hold; nil: the type does not say.
func wordsOf(t reflect.Type) []string {
	if t == reflect.TypeFor[design.Question]() {
		return question.Names(nil)
	}
	if w, ok := reflect.TypeAssert[area.Worded](reflect.Zero(t)); ok && t.Kind() == reflect.String {
		return w.Words()
	}
	return nil
}

func holdsSecret(t reflect.Type) bool {
	if k := t.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Map {
		return holdsSecret(t.Elem())
	}
	return t == secretType
}

// rulesOf parses a tag. Unknown parts are for the schema only.
func rulesOf(tag string) rules {
	var r rules
	for part := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "required":
			r.required = true
		case "enum":
			r.enum = append(r.enum, value)
		case "pattern":
			if p, err := regexp.Compile(value); err == nil {
				r.pattern = p
			}
		case "minimum":
			r.minimum = number(value)
		case "maximum":
			r.maximum = number(value)
		case "minItems":
			r.minItems, _ = strconv.Atoi(value)
		case "maxItems":
			r.maxItems, _ = strconv.Atoi(value)
		case "maxLength":
			r.maxLength, _ = strconv.Atoi(value)
		}
	}
	return r
}

func number(s string) *float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return &x
}
