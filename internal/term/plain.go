package term

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes text harmless wherever it is shown: text may come from a record that somebody else made, from a server or from a file. Control characters, which
// move a terminal's cursor or name its window, become �, and so do characters that turn the direction of text; a line that a CI system would take
// for a command of its own no longer begins like one.
func Plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, s)
	s = commandLine.ReplaceAllString(s, `$1\::`)
	return commandInLine.ReplaceAllString(s, `#\#$1[`)
}

// What CI systems obey: "::name" at the beginning of a line, and "##[name" and "##vso[name" anywhere
// (https://docs.github.com/actions/reference/workflow-commands-for-github-actions,
// https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands).
var (
	commandLine   = regexp.MustCompile(`(?m)^([\pZ\t]*)::`)
	commandInLine = regexp.MustCompile(`##(vso)?\[`)
)
