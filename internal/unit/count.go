package unit

import (
	"fmt"
	"strings"
)

// Count prints how many there are of what a noun in the singular names: "1 process", "2 processes", "3 sets of keys".
func Count[N ~int | ~int64 | ~uint64](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, noun))
}

// Plural returns the noun as it stands behind the number n. What follows "of" stays as it is.
func Plural[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return noun
	}
	head, of, has := strings.Cut(noun, " of ")
	if has {
		of = " of " + of
	}
	last := func(ends ...string) bool {
		for _, e := range ends {
			if strings.HasSuffix(head, e) {
				return true
			}
		}
		return false
	}
	switch {
	case last("s", "x", "z", "ch", "sh"):
		head += "es"
	case last("y") && !last("ay", "ey", "oy", "uy"):
		head = strings.TrimSuffix(head, "y") + "ies"
	default:
		head += "s"
	}
	return head + of
}
