// Package shell writes command lines as a POSIX shell reads them.
package shell

import "strings"

// Word returns text as one word.
func Word(text string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./,:+=@", c)
	}
	if text != "" && !strings.ContainsFunc(text, func(c rune) bool { return !plain(c) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Words returns each text as one word.
func Words(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = Word(t)
	}
	return out
}

// Line returns words as a command line.
func Line(words []string) string { return strings.Join(Words(words), " ") }
