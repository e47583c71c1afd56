package exec

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
)

// Spec is the `target:` section of an experiment with a user's program. The treatments vary factors that the program
// describes.
type Spec struct {
	// Program is the program with its arguments. A name without a slash is looked up by PATH, a relative path from Dir.
	Program []string `yaml:"program" json:"program" jsonschema:"required,minItems=1,maxItems=256" jsonschema_description:"Program and arguments. A name without a slash is looked up by PATH, a relative path from dir. No shell is involved unless one is named: [sh, -c, \"…\"]. Arguments are written into the record: they must hold no secret."`
	// Dir is its working folder; empty: where tare was started.
	Dir string `yaml:"dir,omitempty" json:"dir,omitempty" tare:"path" jsonschema_description:"Working folder of the program. Default: the folder in which tare was started."`
	// Env are the names of variables that it receives besides driver.Usual.
	Env []Variable `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"minItems=1,maxItems=64" jsonschema_description:"Environment variables that it gets besides PATH, HOME, LANG, TMPDIR and USER: their names. Values are taken from tare's own environment and are never written anywhere."`
	// Settings are levels that all treatments share.
	Settings map[string]Setting `yaml:"settings,omitempty" json:"settings,omitempty" jsonschema_description:"What the program is told in every treatment, by name, as it is told the levels of factors. They are written into the record: they must hold no secret."`
	// Operations are the chosen ones; empty: all that the program describes.
	Operations []string `yaml:"operations,omitempty" json:"operations,omitempty" jsonschema:"minItems=1,maxItems=32" jsonschema_description:"Which of its operations to time. Default: all that it describes."`
	// Fresh says how long a process lives.
	Fresh string `yaml:"fresh,omitempty" json:"fresh,omitempty" jsonschema:"enum=block,enum=run" jsonschema_description:"block (default): a new process for every block and treatment, so that the luck of one process (its memory's layout, its hash seed) averages out. run: one process per treatment for the whole run."`
	// DescribeWithin bounds the start.
	DescribeWithin unit.Duration `yaml:"describe_within,omitempty" json:"describe_within,omitempty" jsonschema_description:"How long the program may take to start and to describe itself, from 1s to 10m; one that takes longer is killed. Default 10s."`
	// Patience bounds one request.
	Patience unit.Duration `yaml:"patience,omitempty" json:"patience,omitempty" jsonschema_description:"How long one answer may take, from 1s to 1h; a program that takes longer is killed. Default 2m."`
	// PrepareWithin bounds the preparation.
	PrepareWithin unit.Duration `yaml:"prepare_within,omitempty" json:"prepare_within,omitempty" jsonschema_description:"How long preparing a treatment may take, from 1s to 24h. Default 10m."`
	// Rounds is how many batches each treatment makes in a block.
	Rounds int `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"minimum=3,maximum=1000" jsonschema_description:"Batches of each operation and treatment in a block. Default: what the program says, else 16."`
	// Span is how long a batch lasts.
	Span unit.Duration `yaml:"span,omitempty" json:"span,omitempty" jsonschema_description:"How long a batch of calls lasts, from 1ms to 10s. Default: what the program says, else 5ms. A call that takes longer is a batch of its own."`
}

var _ area.Spec = (*Spec)(nil)

// freshRun is the value of Spec.Fresh for one process per treatment.
const freshRun = "run"

// Under implements area.Spec.
func (s *Spec) Under(area.Treatment) (area.Spec, error) { return s, nil }

// Says implements area.Spec. tare itself sends nothing, and does not know what the program sends.
func (s *Spec) Says() area.Says {
	return area.Says{
		Loopback: true, Batches: s.Batches(), Conditions: s.Conditions(), Forecast: s.Forecast, Creates: s.Creates,
		Untried: func([]area.Treatment) string { return "its program was not started: 'tare plan --try' tries it" },
	}
}

// levels returns the settings, overridden by the treatment's levels.
func (s *Spec) levels(t design.Treatment) map[string]string {
	out := s.settings()
	maps.Copy(out, t.Levels)
	return out
}

func (s *Spec) settings() map[string]string {
	out := make(map[string]string, len(s.Settings))
	for name, setting := range s.Settings {
		out[name] = setting.Text
	}
	return out
}

// A Variable is the name of an environment variable.
type Variable string

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// UnmarshalText implements encoding.TextUnmarshaler. Its errors do not quote the text, which may be a credential.
func (v *Variable) UnmarshalText(b []byte) error {
	*v = Variable(b)
	return v.check()
}

// MayBeSecret says that a malformed name must not be shown.
func (Variable) MayBeSecret() bool { return true }

func (v Variable) check() error {
	switch {
	case strings.Contains(string(v), "="):
		return errors.New("write the name alone: its value is taken from tare's own environment, and must not stand in " +
			"the file")
	case !variableName.MatchString(string(v)):
		return errors.New("want the name of an environment variable, of letters, digits and '_'; it is not shown, since " +
			"it might be a value")
	}
	return nil
}

// A Setting is the value of a setting. It may be text, a number or a boolean; the program receives it as written in the
// file.
type Setting struct{ Text string }

// longestSetting is the longest level, in characters.
const longestSetting = 256

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Setting) UnmarshalText(b []byte) error {
	s.Text = string(b)
	return s.check()
}

// MarshalText implements encoding.TextMarshaler.
func (s Setting) MarshalText() ([]byte, error) { return []byte(s.Text), nil }

func (s Setting) check() error {
	switch {
	case s.Text == "":
		return errors.New("a setting cannot be empty")
	case utf8.RuneCountInString(s.Text) > longestSetting:
		return fmt.Errorf("a setting can be at most %d characters long; put more into a file and name it", longestSetting)
	case strings.ContainsFunc(s.Text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("a setting must be one line of printable text")
	}
	return nil
}
