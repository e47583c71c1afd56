package term

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes text harmless wherever it is shown: it may come from a record that somebody else made, from a server or
// from a file. It is Visible, and a line that a CI system would take for a command no longer begins like one.
func Plain(s string) string {
	s = commandLine.ReplaceAllString(Visible(s), `$1\::`)
	return commandInLine.ReplaceAllString(s, `#\#$1[`)
}

// Visible puts � in the place of control characters, other than line breaks and tabs, and of those that turn the direction of text.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// What CI systems obey: "::name" at the beginning of a line, and "##[name" and "##vso[name" anywhere
// (https://docs.github.com/actions/reference/workflow-commands-for-github-actions,
// https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands).
var (
	commandLine   = regexp.MustCompile(`(?m)^([\pZ\t]*)::`)
	commandInLine = regexp.MustCompile(`##(vso)?\[`)
)
