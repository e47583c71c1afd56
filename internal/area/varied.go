package area

import (
	"fmt"
	"strconv"

	"tare/internal/design"
)

// A Varied is a Spec whose treatments may change where the target is, or whether it is on this machine: one endpoint
// against another.
type Varied interface {
	Spec
	// Under is the section as treatment t has it: its levels in place of what the file says for all. It fails where
	// Validate does.
	Under(t design.Treatment) (Spec, error)
}

// Worded is a type of a field of a Spec, a string, that holds one of some words. The reader of files and the JSON
// Schema take them from there.
type Worded interface {
	Words() []string
}

// Specs returns the sections of all treatments: s itself where they cannot change it, or where there are none. A
// treatment that Validate refuses is left out.
func Specs(s Spec, treatments []design.Treatment) []Spec {
	v, ok := s.(Varied)
	if !ok || len(treatments) == 0 {
		return []Spec{s}
	}
	var out []Spec
	for _, t := range treatments {
		if under, err := v.Under(t); err == nil {
			out = append(out, under)
		}
	}
	return out
}

// Loopback reports whether all traffic of all treatments stays on this machine.
func Loopback(s Spec, treatments []design.Treatment) bool {
	for _, x := range Specs(s, treatments) {
		if !x.Loopback() {
			return false
		}
	}
	return true
}

// ParseCount reads a level that is a number from least to most.
func ParseCount(factor, level string, least, most int) (int, error) {
	n, err := strconv.Atoi(level)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s: %q is not a number from %d to %d", factor, level, least, most)
	}
	return n, nil
}
