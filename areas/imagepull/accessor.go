package imagepull

import (
	"fmt"
	"strconv"
	"strings"

	"tare/internal/spelling"
)

// The accessors: how the pull manager reads its records on disk.
const (
	disabled = "disabled"
	directFS = "directfs"
	cached   = "cached"
	lru      = "lru"
)

func accessors() []string { return []string{disabled, directFS, cached, lru} }

// parseAccessor parses an accessor, in any case: "cached", "lru", "lru:100", "CachedLRU(100)". size is 0 if the text
// has none.
func parseAccessor(text string) (name string, size int, err error) {
	word := strings.ToLower(strings.TrimSpace(text))
	word, number, sized := strings.Cut(word, ":")
	if before, inside, ok := strings.Cut(word, "("); ok && !sized && strings.HasSuffix(inside, ")") {
		word, number, sized = before, strings.TrimSuffix(inside, ")"), true
	}
	switch word = strings.TrimSpace(word); word {
	case disabled, directFS, cached:
		if sized {
			return "", 0, fmt.Errorf("accessor: %q: only lru has a size", text)
		}
		return word, 0, nil
	case lru, "cachedlru":
		if !sized {
			return lru, 0, nil
		}
		size, err := parseCount("size", number, maxSize)
		if err != nil {
			return "", 0, fmt.Errorf("accessor: %q: %w", text, err)
		}
		return lru, size, nil
	}
	return "", 0, fmt.Errorf("accessor: there is no %q; there are %s and lru:100%s", text, strings.Join(accessors(), ", "),
		spelling.DidYouMean(word, append(accessors(), "CachedLRU")))
}

// parseCount parses a level that is a number of at least 1.
func parseCount(name, text string, most int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s: want a whole number from 1 to %d, not %q", name, most, text)
	}
	return n, nil
}
