package kit

import (
	"reflect"
	"slices"
	"strings"
)

// FieldName returns the name of a field in the file.
func FieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// FieldNames returns the names of a struct's fields in the file, in order.
func FieldNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		names = append(names, FieldName(f))
	}
	return names
}

// Section returns the field of spec, a pointer to a Spec, that holds an adapter's own options under that name; the zero
// Value without such a field.
func Section(spec any, name string) reflect.Value {
	v := reflect.ValueOf(spec).Elem()
	if i := slices.Index(FieldNames(v.Type()), name); name != "" && i >= 0 {
		return v.Field(i)
	}
	return reflect.Value{}
}

// HasSection reports whether the file gives the section of that name.
func HasSection(spec any, name string) bool {
	v := Section(spec, name)
	return v.IsValid() && !v.IsZero()
}
