// Package spelling finds the word that somebody meant.
package spelling

import (
	"fmt"
	"strings"
)

// Longest is the length, in letters, up to which words are compared: the effort grows with the square.
const Longest = 64

// DidYouMean is the end of a message that names the nearest of words, or nothing.
func DidYouMean(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest returns the word at the smallest distance, in any case, if that is small for a word of this length; else "".
func Nearest(word string, words []string) string {
	word = strings.ToLower(word)
	best, at := "", 3
	for _, candidate := range words {
		limit := 2
		if min(len(word), len(candidate)) <= 3 {
			limit = 1
		}
		if d := Distance(word, strings.ToLower(candidate)); d <= limit && d < at {
			best, at = candidate, d
		}
	}
	return best
}

// Distance is the number of letters to insert, drop, change or exchange with their neighbour to turn a into b (optimal
// string alignment: V. I. Levenshtein, 1966, with F. J. Damerau's transpositions, 1964). It is Longest if one of them
// is longer than that.
func Distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > Longest || len(t) > Longest {
		return Longest
	}
	var rows [Longest + 1][Longest + 1]int
	for i := range len(s) + 1 {
		for j := range len(t) + 1 {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			change := rows[i-1][j-1]
			if s[i-1] != t[j-1] {
				change++
			}
			best := min(rows[i-1][j]+1, rows[i][j-1]+1, change)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				best = min(best, rows[i-2][j-2]+1)
			}
			rows[i][j] = best
		}
	}
	return rows[len(s)][len(t)]
}
