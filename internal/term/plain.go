package term

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain makes text from any source harmless wherever it is shown: a record of another person, a server, a file. It is
// Visible, and no CI system interprets a line of it as a command.
func Plain(s string) string { return Inert(Visible(s)) }

// Visible replaces hidden characters, except line breaks and tabs, by �.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if Hidden(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Hidden reports whether a character can change how others are shown, or is not shown itself: control characters, those
// that change the direction of text, line separators, and those without a width. The joiners of emoji and of some
// scripts are not hidden.
func Hidden(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp, widthless)
}

// widthless are characters without a width that no script needs: soft hyphen, zero-width space, invisible operators,
// byte order mark, annotations and tags.
var widthless = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1},
		{Lo: 0x200b, Hi: 0x200b, Stride: 1},
		{Lo: 0x2060, Hi: 0x2064, Stride: 1},
		{Lo: 0x206a, Hi: 0x206f, Stride: 1},
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1},
	},
	R32:         []unicode.Range32{{Lo: 0xe0000, Hi: 0xe007f, Stride: 1}},
	LatinOffset: 1,
}

// Inert changes text that a CI system would interpret as a command: it shifts one from the beginning of its line, and
// interrupts one within a line.
func Inert(s string) string {
	s = commandLine.ReplaceAllString(s, `$1\::`)
	return commandInLine.ReplaceAllString(s, `#\#$1[`)
}

// The commands of CI systems: GitHub "::name" at the beginning of a line, and anywhere GitHub "##[name", Azure
// "##vso[name" and TeamCity "##teamcity[name"
// (https://docs.github.com/actions/reference/workflow-commands-for-github-actions,
// https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands,
// https://www.jetbrains.com/help/teamcity/service-messages.html). GitLab's sections and Buildkite's and Jenkins' marks
// need a control character.
var (
	commandLine   = regexp.MustCompile(`(?m)^([\pZ\t\v\f\r\x{85}]*)::`)
	commandInLine = regexp.MustCompile(`##(\w*)\[`)
)

// JSON is Plain for a JSON text, which can express the same values differently: it escapes hidden characters and
// commands. Both occur within strings only.
func JSON(text string) string {
	return escape(text, func(r rune) string {
		var b strings.Builder
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		return b.String()
	})
}

// YAML is JSON for a YAML text with all strings in double quotes.
func YAML(text string) string {
	return escape(text, func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// XML is Inert for an XML or HTML text, which can express the same values differently. Its styles and scripts must not
// contain "##[".
func XML(text string) string {
	text = commandLine.ReplaceAllString(text, `$1&#58;:`)
	return commandInLine.ReplaceAllString(text, `##$1&#91;`)
}

// escape rewrites hidden characters, and the brackets of commands within lines, by as. It keeps line breaks.
func escape(text string, as func(rune) string) string {
	text = commandInLine.ReplaceAllStringFunc(text,
		func(command string) string { return command[:len(command)-1] + as('[') })
	if !strings.ContainsFunc(text, func(r rune) bool { return Hidden(r) && r != '\n' }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if Hidden(r) && r != '\n' {
			b.WriteString(as(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
