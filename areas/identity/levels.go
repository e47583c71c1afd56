package identity

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/spelling"
)

// placeFactors are the factors that every experiment has: where the endpoint is, what is asked of it, and who asks.
var placeFactors = []string{"url", "operation", "identities", "account"}

// Under implements area.Spec.
func (s *Spec) Under(t design.Treatment) (area.Spec, error) { return s.under(t.Levels) }

// under returns a copy of s with levels in place of what the section says. A level may be one of placeFactors, a knob
// of the embedded servers, or an option of the adapter by its path ("imds.ttl"). Errors begin with the factor's name,
// or name it.
func (s *Spec) under(levels map[string]string) (*Spec, error) {
	out := *s
	if out.URL == "" {
		out.URL = levels["url"]
	}
	if s.Embedded != nil {
		e := *s.Embedded
		out.Embedded = &e
	}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if err := out.setLevel(name, levels[name]); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// setLevel sets what one level says.
func (s *Spec) setLevel(name, level string) error {
	section, option, isOption := strings.Cut(name, ".")
	switch {
	case name == "url":
		s.URL = level
	case name == "operation":
		s.Operation = OperationName(level)
	case name == "account":
		s.Account = level
	case name == "identities":
		n, err := kit.ParseCount(name, level, 1, maxIdentities)
		if err != nil {
			return err
		}
		s.Identities = n
	case slices.Contains(knobNames(), name) && s.URL != "":
		return fmt.Errorf("%s: the knobs of an endpoint behind a URL are not ours to turn; give each setting an address "+
			"of its own, and vary url", name)
	case slices.Contains(knobNames(), name):
		if s.Embedded == nil {
			s.Embedded = &Embedded{}
		}
		if err := s.Embedded.set(name, level); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case isOption && section != "" && section == s.section():
		if err := s.setOption(section, option, level); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	default:
		return fmt.Errorf("%s: there is no such factor; there are %s%s", name, strings.Join(s.factors(), ", "),
			spelling.DidYouMean(name, s.factors()))
	}
	return nil
}

// section returns the name of the adapter's own options; empty: it has none.
func (s *Spec) section() string {
	a, err := findAdapter(string(s.Adapter))
	if err != nil {
		return ""
	}
	return a.section
}

// factors lists what treatments can vary, as far as the adapter and the place allow.
func (s *Spec) factors() []string {
	out := slices.Clone(placeFactors)
	if section := s.section(); section != "" {
		t := kit.Section(s, section).Type().Elem()
		for f := range t.Fields() {
			if levelled(f.Type) {
				out = append(out, section+"."+kit.FieldName(f))
			}
		}
	}
	if a, err := findAdapter(string(s.Adapter)); s.URL == "" && err == nil && a.reach.embedded {
		out = append(out, knobNames()...)
	}
	return out
}

// setOption sets an option of the adapter, in a copy of its section: other treatments share the original.
func (s *Spec) setOption(section, option, level string) error {
	field := kit.Section(s, section)
	fresh := reflect.New(field.Type().Elem())
	if !field.IsNil() {
		fresh.Elem().Set(field.Elem())
	}
	i := slices.Index(kit.FieldNames(fresh.Elem().Type()), option)
	if i >= 0 {
		if err := assignField(fresh.Elem(), i, level); err != nil {
			return err
		}
		field.Set(fresh)
		return nil
	}
	return fmt.Errorf("%s has no such option; known are %s", section, strings.Join(s.factors(), ", "))
}

// levelled reports whether one level can say what a field holds: neither secrets nor lists.
func levelled(t reflect.Type) bool { return !errors.Is(assign(reflect.New(t).Elem(), ""), errNoLevel) }

// errNoLevel is about fields that a level cannot fill.
var errNoLevel = errors.New("this is a secret or a list, which cannot be a level")

// assignField is assign for field i of a struct, within what the field's schema allows: levels do not pass through the
// schema.
func assignField(v reflect.Value, i int, level string) error {
	var words []string
	for rule := range strings.SplitSeq(v.Type().Field(i).Tag.Get("jsonschema"), ",") {
		key, value, _ := strings.Cut(rule, "=")
		n, errN := strconv.Atoi(level)
		limit, errLimit := strconv.Atoi(value)
		number := errN == nil && errLimit == nil
		switch {
		case key == "enum":
			words = append(words, value)
		case key == "minimum" && number && n < limit:
			return fmt.Errorf("%d is less than %d", n, limit)
		case key == "maximum" && number && n > limit:
			return fmt.Errorf("%d is more than %d", n, limit)
		}
	}
	if len(words) > 0 && !slices.Contains(words, level) {
		return fmt.Errorf("%q is not one of %s", level, strings.Join(words, ", "))
	}
	return assign(v.Field(i), level)
}

// assign reads a level into a field of the section: a word, a whole number, a truth value, or what reads itself from
// text.
func assign(field reflect.Value, level string) error {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch x := field.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return x.UnmarshalText([]byte(level))
	case *bool:
		on, ok := map[string]bool{"true": true, "on": true, "false": false, "off": false}[level]
		if !ok {
			return fmt.Errorf("%q is neither true nor false", level)
		}
		*x = on
	case *int:
		n, err := strconv.Atoi(level)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", level)
		}
		*x = n
	default:
		if field.Kind() != reflect.String {
			return errNoLevel
		}
		field.SetString(level)
	}
	return nil
}
