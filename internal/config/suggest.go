package config

import (
	"fmt"
	"slices"
	"strings"
)

// unknown reports a field that nobody reads, with the field that was probably meant.
func (w *walker) unknown(f field, parent string, known []structField) {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	hint := didYouMean(f.name, names)
	if hint == "" {
		hint = elsewhere(f.name, parent)
	}
	if hint == "" && parent != "" {
		hint = "; " + printed(parent) + " has " + strings.Join(names, ", ")
	}
	w.guard(f)
	for _, k := range known {
		if k.secret && k.name == nearest(f.name, names) {
			w.veil.over(w.source, f.value)
		}
	}
	w.errorAt(f.path, f.key, "unknown field %s%s", quote(f.name), hint)
}

// elsewhere finds a field that exists, but not here.
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

// didYouMean is the end of a message that names the nearest of words, or nothing.
func didYouMean(word string, words []string) string {
	if near := nearest(word, words); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// nearest returns the word at the smallest edit distance, if that is small for a word of this length.
func nearest(word string, words []string) string {
	word = strings.ToLower(word)
	best, at := "", 3
	for _, candidate := range words {
		limit := 2
		if min(len(word), len(candidate)) <= 3 {
			limit = 1
		}
		if d := distance(word, strings.ToLower(candidate)); d <= limit && d < at {
			best, at = candidate, d
		}
	}
	return best
}

// maxWord is the longest word for which distances are computed: the effort grows with the square.
const maxWord = 64

// distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal string
// alignment; Damerau 1964).
func distance(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return maxWord
	}
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range t {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return slices.Max(rows[len(s)][len(t):])
}
