package term

import (
	"encoding/json"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"tare/rigs/hosttest"
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
		"a\u200bb\ufeffc\u2028::error::d":    "a�b�c�::error::d",
		"👩\u200d🚀 ##teamcity[message]":       "👩\u200d🚀 #\\#teamcity[message]",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestEscapesKeepValues: what JSON, YAML and XML escape reads back as it was.
func TestEscapesKeepValues(t *testing.T) {
	const value = "::error::\n ::a ##[x] ##vso[y] \u202e\u009b\x7f\u2028\U000e0041 \"'<&"
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var marked strings.Builder
	if err := xml.EscapeText(&marked, []byte(value)); err != nil {
		t.Fatal(err)
	}
	for form, c := range map[string]struct {
		text string
		read func([]byte, any) error
	}{
		"JSON": {JSON(string(quoted)), json.Unmarshal},
		"YAML": {YAML(`"::error::\n ::a ##[x] ##vso[y] ` + "\u202e\u009b\x7f\u2028\U000e0041" + ` \"'<&"`), yaml.Unmarshal},
		"XML":  {XML("<a>" + marked.String() + "</a>"), xml.Unmarshal},
	} {
		var got string
		if err := c.read([]byte(c.text), &got); err != nil || got != value {
			t.Errorf("%s: %q is read as %q: %v", form, c.text, got, err)
		}
		if commanding(c.text) {
			t.Errorf("%s: a command is left in %q", form, c.text)
		}
		if form != "XML" && strings.ContainsFunc(c.text, Hidden) {
			t.Errorf("%s: a hidden character is left in %q", form, c.text)
		}
	}
}

// commanding reports whether a CI system would take something in a text for a command.
func commanding(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			return true
		}
	}
	return regexp.MustCompile(`##[a-zA-Z]*\[`).MatchString(text)
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b]0;x\x07::error::##[x]")
	f.Add("\u2003::a\n###[b]##\u200bvso[c]\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Plain(s)
		if strings.ContainsFunc(got, func(r rune) bool { return Hidden(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q: a hidden character is left in %q", s, got)
		}
		for _, text := range []string{got, Inert(s), XML(s)} {
			if commanding(text) {
				t.Errorf("%q: a command is left in %q", s, text)
			}
		}
		quoted, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal([]byte(JSON(string(quoted))), &back); err != nil ||
			back != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Errorf("%q reads back as %q: %v", s, back, err)
		}
	})
}

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"TERM": "xterm-256color"}, true},
		{map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true},
		{map[string]string{"TERM": "xterm", "CI": "true"}, false},
		{map[string]string{"TERM": "dumb"}, false},
		{map[string]string{}, false},
	} {
		if got := isWanted(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
