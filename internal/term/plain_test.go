package term

import (
	"strings"
	"testing"
	"unicode"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"holds 163.6/s\n\tso":                "holds 163.6/s\n\tso",
		"a\x1b[31mb":                         "a�[31mb",
		"a\rb\x07\x7f\u009b":                 "a�b���",
		"ab\u202ecd":                         "ab�cd",
		"::set-output name=x::y":             `\::set-output name=x::y`,
		"ok\n  ::error::x\n":                 "ok\n  \\::error::x\n",
		"a ::b":                              "a ::b",
		"x ##[command]y ##vso[task.setvar]z": `x #\#[command]y #\#vso[task.setvar]z`,
		"\xff\xfe":                           "��",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b]0;x\x07::error::##[x]")
	f.Fuzz(func(t *testing.T, s string) {
		got := Plain(s)
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q: a control character is left in %q", s, got)
		}
		for line := range strings.Lines(got) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
				t.Errorf("%q: a command is left in %q", s, got)
			}
		}
	})
}
