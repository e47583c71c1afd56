package kit

import (
	"maps"
	"slices"

	"tare/area"
)

// Named returns words with their help, in the order of the words.
func Named(help map[string]string) (out []area.Named) {
	for _, name := range slices.Sorted(maps.Keys(help)) {
		out = append(out, area.Named{Name: name, Help: help[name]})
	}
	return out
}

// Adapters returns adapters that no address leads to, in the order of their words.
func Adapters(help map[string]string) (out []area.Adapter) {
	for _, n := range Named(help) {
		out = append(out, area.Adapter{Name: n.Name, Help: n.Help})
	}
	return out
}
