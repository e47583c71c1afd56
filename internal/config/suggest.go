package config

import (
	"strings"

	"tare/internal/spelling"
)

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
