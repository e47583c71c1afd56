package kit

import (
	"fmt"
	"strconv"

	"tare/area"
	"tare/internal/design"
)

// Specs returns the sections of all treatments: s itself where there are none. A treatment that Validate refuses is
// left out.
func Specs(s area.Spec, treatments []design.Treatment) []area.Spec {
	if len(treatments) == 0 {
		return []area.Spec{s}
	}
	var out []area.Spec
	for _, t := range treatments {
		if under, err := s.Under(t); err == nil {
			out = append(out, under)
		}
	}
	return out
}

// Loopback reports whether all traffic of all treatments stays on this machine.
func Loopback(s area.Spec, treatments []design.Treatment) bool {
	for _, x := range Specs(s, treatments) {
		if !x.Says().Loopback {
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
