package config

import (
	"errors"
	"strings"
	"testing"

	"tare/area"
)

// shyWord accepts "good" only. Anything else may be a secret.
type shyWord string

func (shyWord) MayBeSecret() bool { return true }

func (s *shyWord) UnmarshalText(b []byte) error {
	if *s = shyWord(b); *s != "good" {
		return errors.New("want another word")
	}
	return nil
}

type shySpec struct {
	Words []shyWord `yaml:"words"`
	fakeSpec
}

type shyArea struct{ fakeArea }

func (shyArea) NewSpec() area.Spec { return &shySpec{} }

// TestRejectedSecretsAreNotPrinted: a rejected value that may be a secret is neither in the message nor in the quoted
// source line.
func TestRejectedSecretsAreNotPrinted(t *testing.T) {
	areas := fakeAreas{shyArea{fakeArea{"shy", area.Offers{AnyRate: area.Yes}}}}
	for words, says := range map[string]string{
		"[good, KEY=hunter2]":                      "want another word",
		"[hunter2, good]":                          "want another word",
		"\n    - KEY=hunter2\n    - good":          "want another word",
		"[\"hun\\\n  ter2\"]":                      "want another word",
		"{KEY: hunter2}":                           "want a list",
		"\n    KEY: hunter2\n    ANOTHER: hunter2": "want a list",
		"hunter2":              "want a list",
		"[{KEY: hunter2}]":     "want text, not fields",
		"\n    - KEY: hunter2": "want text, not fields",
		"[[hunter2]]":          "want text, not a list",
	} {
		src := []byte("name: x\narea: shy\nquestion: capacity\ntarget:\n  words: " + words + "\n")
		_, ds := Parse("x.yaml", src, areas)
		var out strings.Builder
		for _, d := range ds {
			if err := d.Write(&out, src); err != nil {
				t.Fatal(err)
			}
		}
		if !HasErrors(ds) || !strings.Contains(out.String(), says) || strings.Contains(out.String(), "ter2") {
			t.Errorf("%s: want an error without the value:\n%s", words, &out)
		}
	}
	if _, ds := Parse("x.yaml", []byte("name: x\narea: shy\nquestion: capacity\ntarget: {words: [good]}\n"),
		areas); HasErrors(ds) {
		t.Errorf("an accepted value has findings %v", ds)
	}
}
