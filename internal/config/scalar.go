package config

import (
	"encoding"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"tare/internal/kit"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// text decodes a scalar into a type that implements encoding.TextUnmarshaler.
func (w *walker) text(path string, n *yaml.Node, v reflect.Value) {
	unitOf := unitFor(v.Type())
	n, ok := w.scalar(path, n, unitOf.want)
	if !ok {
		w.conceal(v.Type(), n)
		return
	}
	if ratio, err := strconv.ParseFloat(n.Value, 64); err == nil && unitOf.suffix != "" {
		if unitOf.suffix == "%" && math.Abs(ratio) < 1 {
			w.errorAt(path, n, "%s%s what? write %s%%, or %s%%", label(path), n.Value, unit.Number(100*ratio), n.Value)
			return
		}
		w.errorAt(path, n, "%s%s what? write %s%s", label(path), n.Value, n.Value, unitOf.suffix)
		return
	}
	u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	if !ok {
		return
	}
	if err := u.UnmarshalText([]byte(n.Value)); err != nil {
		w.conceal(v.Type(), n)
		w.errorAt(path, n, "%s%v", label(path), err)
	}
}

// A quantity describes the expected form of a unit type.
type quantity struct{ want, suffix string }

func unitFor(t reflect.Type) quantity {
	switch t {
	case reflect.TypeFor[unit.Duration]():
		return quantity{"a duration such as 10s", "s"}
	case reflect.TypeFor[unit.Rate]():
		return quantity{"a rate such as 150/s", "/s"}
	case reflect.TypeFor[unit.Size]():
		return quantity{"a size such as 64KiB", "KiB"}
	case reflect.TypeFor[unit.Percent]():
		return quantity{"a percentage such as 2%", "%"}
	}
	return quantity{want: "text"}
}

// basic decodes a scalar into a string, number or boolean.
func (w *walker) basic(path string, n *yaml.Node, v reflect.Value, rules rules) {
	switch kind := v.Kind(); {
	case kind == reflect.String:
		w.str(path, n, v, rules)
	case kind == reflect.Bool:
		w.boolean(path, n, v)
	case v.CanInt(), v.CanUint():
		w.integer(path, n, v, rules)
	case v.CanFloat():
		w.float(path, n, v, rules)
	default:
		w.errorAt(path, n, "%sa field of type %s cannot be read from a file", label(path), v.Type())
	}
}

func (w *walker) str(path string, n *yaml.Node, v reflect.Value, rules rules) {
	n, ok := w.scalar(path, n, "text")
	if !ok {
		return
	}
	switch {
	case len(rules.enum) > 0:
		w.enum(path, n, rules)
	case n.Tag != "!!str":
		w.errorAt(path, n, "%swant text, not %s; put it in quotes", label(path), kindOf(n))
	case rules.pattern != nil && !rules.pattern.MatchString(n.Value):
		w.errorAt(path, n, "%s%s does not match %s", label(path), quote(n.Value), rules.pattern)
	case rules.maxLength > 0 && utf8.RuneCountInString(n.Value) > rules.maxLength:
		w.errorAt(path, n, "%sat most %d characters are allowed", label(path), rules.maxLength)
	}
	v.SetString(n.Value)
	if rules.isPath {
		v.SetString(w.path(path, n, n.Value))
	}
}

// path returns a path with ~ expanded.
func (w *walker) path(path string, n *yaml.Node, value string) string {
	out, err := kit.ExpandHome(value)
	if err != nil {
		w.errorAt(path, n, "%s%v", label(path), err)
	}
	return out
}

func (w *walker) enum(path string, n *yaml.Node, rules rules) {
	for _, word := range rules.enum {
		if n.Value == word && n.Tag == "!!str" {
			return
		}
	}
	w.errorAt(path, n, "%s%s is not one of %s%s", label(path), quote(n.Value), strings.Join(rules.enum, ", "),
		spelling.DidYouMean(n.Value, rules.enum))
}

func (w *walker) boolean(path string, n *yaml.Node, v reflect.Value) {
	n, ok := w.scalar(path, n, "true or false")
	if !ok {
		return
	}
	switch n.Value {
	case "true":
		v.SetBool(true)
	case "false":
		v.SetBool(false)
	default:
		w.errorAt(path, n, "%swant true or false, not %s", label(path), quote(n.Value))
	}
}

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

func (w *walker) integer(path string, n *yaml.Node, v reflect.Value, rules rules) {
	n, ok := w.scalar(path, n, "a whole number")
	if !ok {
		return
	}
	if n.Tag == "!!str" || !wholeNumber.MatchString(n.Value) {
		w.errorAt(path, n, "%swant a whole number in decimal digits, not %s", label(path), quote(n.Value))
		return
	}
	var err error
	var value float64
	if v.CanUint() {
		var u uint64
		u, err = strconv.ParseUint(n.Value, 10, v.Type().Bits())
		v.SetUint(u)
		value = float64(u)
	} else {
		var i int64
		i, err = strconv.ParseInt(n.Value, 10, v.Type().Bits())
		v.SetInt(i)
		value = float64(i)
	}
	if err != nil {
		w.errorAt(path, n, "%s%s is out of range", label(path), n.Value)
		return
	}
	w.inRange(path, n, value, rules)
}

func (w *walker) float(path string, n *yaml.Node, v reflect.Value, rules rules) {
	n, ok := w.scalar(path, n, "a number")
	if !ok {
		return
	}
	value, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || (n.Tag != "!!int" && n.Tag != "!!float") || value-value != 0 { // infinity − infinity is not 0 either
		w.errorAt(path, n, "%swant a number, not %s", label(path), quote(n.Value))
		return
	}
	v.SetFloat(value)
	w.inRange(path, n, value, rules)
}

func (w *walker) inRange(path string, n *yaml.Node, value float64, rules rules) {
	switch {
	case rules.minimum != nil && value < *rules.minimum:
		w.errorAt(path, n, "%s%s is too small; the least is %v", label(path), n.Value, *rules.minimum)
	case rules.maximum != nil && value > *rules.maximum:
		w.errorAt(path, n, "%s%s is too large; the most is %v", label(path), n.Value, *rules.maximum)
	}
}
