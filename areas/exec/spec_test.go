package exec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
	"tare/rigs/areatest"
)

// settings returns settings from pairs of name and value.
func settings(pairs ...string) map[string]Setting {
	out := map[string]Setting{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = Setting{pairs[i+1]}
	}
	return out
}

func TestValidate(t *testing.T) {
	program := []string{"./my-program", "--fast"}
	for _, c := range []struct {
		title  string
		spec   Spec
		q      design.Question
		levels [][]string
		path   string
		says   string // empty: nothing is wrong
	}{
		{title: "plain", spec: Spec{Program: program}},
		{title: "all fields", spec: Spec{
			Program: program, Dir: "x", Env: []Variable{"MY_TOKEN", "_x1"}, Settings: settings("size", "1", "a.b-c_d", "x y"),
			Operations: []string{"load", "a-b_c.d"},
			Fresh:      freshRun, Patience: unit.Duration(time.Minute), PrepareWithin: unit.Duration(time.Hour), Rounds: 3,
			Span: unit.Duration(time.Second),
		}, levels: [][]string{{"check", "none"}, {"check", "sha256"}}},
		{
			title: "any factor", spec: Spec{Program: program}, q: design.Scale,
			levels: [][]string{{"n", "1"}, {"n", "2"}, {"n", "3"}},
		},
		{title: "no program", path: "program", says: "name the program"},
		{title: "an empty program", spec: Spec{Program: []string{" "}}, path: "program", says: "name the program"},
		{
			title: "a command line in one word", spec: Spec{Program: []string{"python3 my.py"}}, path: "program[0]",
			says: "each argument is an item",
		},
		{title: "a name with a space, and an argument", spec: Spec{Program: []string{"./my program", "x"}}},
		{title: "a zero byte", spec: Spec{Program: []string{"a", "b\x00c"}}, path: "program[1]", says: "zero byte"},
		{title: "a zero byte in dir", spec: Spec{Program: program, Dir: "\x00"}, path: "dir", says: "zero byte"},

		{
			title: "a secret as an argument", spec: Spec{Program: []string{"./a", "--api-key", "hunter2"}}, path: "program[2]",
			says: "after --api-key",
		},
		{
			title: "a file with a secret as an argument",
			spec:  Spec{Program: []string{"./a", "--password-file", "x", "--password", "$PW"}},
		},
		{
			title: "a variable with its value", spec: Spec{Program: program, Env: []Variable{"A", "TOKEN=hunter2"}},
			path: "env[1]", says: "write the name alone",
		},
		{
			title: "no variable's name", spec: Spec{Program: program, Env: []Variable{"hunter-2"}}, path: "env[0]",
			says: "want the name of an environment variable",
		},
		{
			title: "an empty variable", spec: Spec{Program: program, Env: []Variable{""}}, path: "env[0]",
			says: "want the name of an environment variable",
		},
		{
			title: "a variable twice", spec: Spec{Program: program, Env: []Variable{"A", "B", "A"}}, path: "env[2]",
			says: "A is named twice",
		},
		{
			title: "a usual variable", spec: Spec{Program: program, Env: []Variable{"HOME"}}, path: "env[0]",
			says: "every program gets HOME",
		},

		{
			title: "a setting's name", spec: Spec{Program: program, Settings: settings("a b", "1")}, path: "settings",
			says: "want a name of letters",
		},
		{
			title: "a long setting's name", spec: Spec{Program: program, Settings: settings(strings.Repeat("a", 65), "1")},
			path: "settings", says: "want a name of letters",
		},
		{
			title: "an empty setting", spec: Spec{Program: program, Settings: settings("a", "")}, path: "settings.a",
			says: "cannot be empty",
		},
		{
			title: "a setting of two lines", spec: Spec{Program: program, Settings: settings("a", "x\ny")}, path: "settings.a",
			says: "one line",
		},
		{
			title: "a long setting", spec: Spec{Program: program, Settings: settings("a", strings.Repeat("ä", 257))},
			path: "settings.a", says: "at most 256",
		},
		{title: "the longest setting", spec: Spec{Program: program, Settings: settings("a", strings.Repeat("ä", 256))}},
		{
			title: "a setting that is varied", spec: Spec{Program: program, Settings: settings("n", "1", "m", "2")},
			levels: [][]string{{"k", "1"}, {"k", "2", "n", "3"}}, path: "settings.n", says: "a factor already",
		},

		{
			title: "an operation's name", spec: Spec{Program: program, Operations: []string{"a b"}}, path: "operations[0]",
			says: "so that budgets can name them",
		},
		{
			title: "a long operation's name", spec: Spec{Program: program, Operations: []string{strings.Repeat("a", 65)}},
			path: "operations[0]", says: "so that budgets",
		},
		{
			title: "an operation twice", spec: Spec{Program: program, Operations: []string{"a", "a"}}, path: "operations[1]",
			says: "named twice",
		},

		{
			title: "a short span", spec: Spec{Program: program, Span: unit.Duration(time.Microsecond)}, path: "span",
			says: "want 1ms to 10s",
		},
		{
			title: "a long span", spec: Spec{Program: program, Span: unit.Duration(11 * time.Second)}, path: "span",
			says: "want 1ms to 10s",
		},
		{
			title: "little patience", spec: Spec{Program: program, Patience: unit.Duration(time.Millisecond)}, path: "patience",
			says: "want 1s to 1h",
		},
		{
			title: "much patience", spec: Spec{Program: program, Patience: unit.Duration(2 * time.Hour)}, path: "patience",
			says: "want 1s to 1h",
		},
		{title: "less patience than a batch", spec: Spec{
			Program: program, Patience: unit.Duration(10 * time.Second),
			Span: unit.Duration(2 * time.Second),
		}, path: "patience", says: "allow at least 16s"},
		{
			title: "a long preparation", spec: Spec{Program: program, PrepareWithin: unit.Duration(25 * time.Hour)},
			path: "prepare_within", says: "want 1s to 24h",
		},
		{title: "few rounds", spec: Spec{Program: program, Rounds: 2}, path: "rounds", says: "want 3 to 1000"},
	} {
		found := areatest.Validate(&c.spec, c.q, c.levels)
		areatest.WantFinding(t, c.title, found, area.Finding{Path: c.path, Severity: area.Error, Message: c.says})
		for _, f := range found {
			if strings.Contains(fmt.Sprint(f), "hunter") {
				t.Errorf("%s: %v shows what may be a credential", c.title, f)
			}
		}
	}
}

// TestInvalidVariableNamesAreNotPrinted: an invalid name may be a secret value, so the error does not contain it.
func TestInvalidVariableNamesAreNotPrinted(t *testing.T) {
	if !Variable("").MayBeSecret() {
		t.Error("what is no name may be shown")
	}
	for text, good := range map[string]bool{
		"A": true, "_": true, "My_Var2": true, "": false, "2A": false, "A=b": false, "=": false, "A-B": false,
		"hunter 2": false, "hünter2": false, "A\n": false,
	} {
		var v Variable
		err := v.UnmarshalText([]byte(text))
		if (err == nil) != good {
			t.Errorf("name %q: got %v, want error %t", text, err, !good)
		}
		if err == nil {
			continue
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("name %q: the error contains the value: %v", text, err)
		}
	}
}

// TestSpecSurvivesTheRecord: a spec that is written into the record is read back unchanged when a run is resumed.
func TestSpecSurvivesTheRecord(t *testing.T) {
	want := Spec{
		Program: []string{"python3", "x.py"}, Env: []Variable{"TOKEN"}, Settings: settings("size", "65536", "deep", "true"),
		Operations: []string{"load"},
		Fresh:      freshRun, Patience: unit.Duration(time.Minute), Rounds: 5, Span: unit.Duration(time.Second),
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Spec
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("read back %s: %v", text, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read back %s (-want +got):\n%s", text, d)
	}
	if !strings.Contains(string(text), `"size":"65536"`) {
		t.Errorf("a setting is its text: %s", text)
	}
}

func TestLevelsAreSettingsAndFactors(t *testing.T) {
	s := Spec{Settings: settings("size", "10", "mode", "x")}
	got := s.levels(treatment("check", "none", "mode", "y"))
	if d := cmp.Diff(map[string]string{"size": "10", "check": "none", "mode": "y"}, got); d != "" {
		t.Error(d)
	}
	got["size"] = "99"
	if s.Settings["size"].Text != "10" {
		t.Error("a treatment's levels are the spec's own map")
	}
}

func TestForecastOfBatches(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want []area.Batches
	}{
		{Spec{}, []area.Batches{{Rounds: area.UsualRounds, Span: area.UsualSpan}}},
		{
			Spec{Operations: []string{"a", "b"}},
			[]area.Batches{
				{Operation: "a", Rounds: area.UsualRounds, Span: area.UsualSpan},
				{Operation: "b", Rounds: area.UsualRounds, Span: area.UsualSpan},
			},
		},
		{Spec{Rounds: 5, Span: unit.Duration(time.Second)}, []area.Batches{{Rounds: 5, Span: time.Second}}},
	} {
		if d := cmp.Diff(c.want, c.spec.Batches()); d != "" {
			t.Error(d)
		}
	}
}

func TestLoopback(t *testing.T) {
	if !(&Spec{}).Says().Loopback {
		t.Error("tare itself sends nothing")
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 24 * time.Hour: "24h", 90 * time.Minute: "1h30m", time.Minute: "1m", time.Second: "1s",
		time.Millisecond: "1ms", 10 * time.Second: "10s", 20 * time.Minute: "20m",
	} {
		if got := short(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func FuzzVariable(f *testing.F) {
	for _, s := range []string{"A", "A=b", "", "a b", "_0", "\x00", "Ä"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v Variable
		err := v.UnmarshalText([]byte(text))
		if err == nil && (strings.ContainsAny(text, "= \n\x00") || text == "") {
			t.Errorf("%q is taken for a name", text)
		}
		// "=" makes it no name, whatever follows: nothing of it may be shown.
		if err := v.UnmarshalText([]byte("hunter2=" + text)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("hunter2=%q: got %v, want an error without the value", text, err)
		}
	})
}

func FuzzSetting(f *testing.F) {
	for _, s := range []string{"1", "", "x y", "\x1b[31m", strings.Repeat("a", 257), "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s Setting
		if s.UnmarshalText([]byte(text)) != nil {
			return
		}
		b, err := s.MarshalText()
		var again Setting
		if err != nil || again.UnmarshalText(b) != nil || again != s || s.Text != text {
			t.Errorf("%q comes back as %q", text, b)
		}
		if strings.ContainsAny(text, "\n\x1b\x00") {
			t.Errorf("%q is no line of printable text", text)
		}
	})
}
