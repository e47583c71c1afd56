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
	own := func(s Spec) Spec { s.Program = []string{"./my-program", "--fast"}; return s }
	env := func(names ...Variable) Spec { return own(Spec{Env: names}) }
	set := func(name, value string) Spec { return own(Spec{Settings: settings(name, value)}) }
	run := func(words ...string) Spec { return Spec{Program: words} }
	does := func(names ...string) Spec { return own(Spec{Operations: names}) }
	second := unit.Duration(time.Second)
	for _, c := range []struct {
		title      string
		spec       Spec
		path, says string // nothing said: nothing is wrong
	}{
		{"plain", own(Spec{}), "", ""},
		{"all fields", own(Spec{
			Dir: "x", Env: []Variable{"MY_TOKEN", "_x1"}, Settings: settings("size", "1", "a.b-c_d", "x y"),
			Operations: []string{"load", "a-b_c.d"}, Fresh: freshRun, Patience: 60 * second, PrepareWithin: 3600 * second,
			Rounds: 3, Span: second,
		}), "", ""},
		{"no program", Spec{}, "program", "name the program"},
		{"an empty program", run(" "), "program", "name the program"},
		{"a command line in one word", run("python3 my.py"), "program[0]", "each argument is an item"},
		{"a name with a space, and an argument", run("./my program", "x"), "", ""},
		{"a zero byte", run("a", "b\x00c"), "program[1]", "zero byte"},
		{"a zero byte in dir", own(Spec{Dir: "\x00"}), "dir", "zero byte"},

		{"a secret as an argument", run("./a", "--api-key", "hunter2"), "program[2]", "after --api-key"},
		{"a file with a secret as an argument", run("./a", "--password-file", "x", "--password", "$PW"), "", ""},
		{"a variable with its value", env("A", "TOKEN=hunter2"), "env[1]", "write the name alone"},
		{"no variable's name", env("hunter-2"), "env[0]", "want the name of an environment variable"},
		{"an empty variable", env(""), "env[0]", "want the name of an environment variable"},
		{"a variable twice", env("A", "B", "A"), "env[2]", "A is named twice"},
		{"a usual variable", env("HOME"), "env[0]", "every program gets HOME"},

		{"a setting's name", set("a b", "1"), "settings", "want a name of letters"},
		{"a long setting's name", set(strings.Repeat("a", 65), "1"), "settings", "want a name of letters"},
		{"an empty setting", set("a", ""), "settings.a", "cannot be empty"},
		{"a setting of two lines", set("a", "x\ny"), "settings.a", "one line"},
		{"a long setting", set("a", strings.Repeat("ä", 257)), "settings.a", "at most 256"},
		{"the longest setting", set("a", strings.Repeat("ä", 256)), "", ""},

		{"an operation's name", does("a b"), "operations[0]", "so that budgets can name them"},
		{"a long operation's name", does(strings.Repeat("a", 65)), "operations[0]", "so that budgets"},
		{"an operation twice", does("a", "a"), "operations[1]", "named twice"},

		{"a short span", own(Spec{Span: second / 1e6}), "span", "want 1ms to 10s"},
		{"a long span", own(Spec{Span: 11 * second}), "span", "want 1ms to 10s"},
		{"little patience", own(Spec{Patience: second / 1000}), "patience", "want 1s to 1h"},
		{"much patience", own(Spec{Patience: 7200 * second}), "patience", "want 1s to 1h"},
		{"less patience than a batch", own(Spec{Patience: 10 * second, Span: 2 * second}), "patience", "allow at least 16s"},
		{"a long preparation", own(Spec{PrepareWithin: 90_000 * second}), "prepare_within", "want 1s to 24h"},
		{"few rounds", own(Spec{Rounds: 2}), "rounds", "want 3 to 1000"},
	} {
		found := areatest.Validate(&c.spec, design.Compare, nil)
		areatest.WantFinding(t, c.title, found, area.Finding{Path: c.path, Severity: area.Error, Message: c.says})
		if strings.Contains(fmt.Sprint(found), "hunter") {
			t.Errorf("%s: %v shows what may be a credential", c.title, found)
		}
	}
	both := own(Spec{Settings: settings("n", "1", "m", "2")})
	for _, levels := range [][][]string{{{"check", "none"}, {"check", "sha256"}}, {{"k", "1"}, {"k", "2"}, {"k", "3"}}} {
		areatest.WantFinding(t, "any factor", areatest.Validate(&both, design.Scale, levels), area.Finding{})
	}
	varied := areatest.Validate(&both, design.Compare, [][]string{{"k", "1"}, {"k", "2", "n", "3"}})
	areatest.WantFinding(t, "a setting that is varied", varied,
		area.Finding{Path: "settings.n", Severity: area.Error, Message: "a factor already"})
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
		Operations: []string{"load"}, Fresh: freshRun, Patience: unit.Duration(time.Minute), Rounds: 5,
		Span: unit.Duration(time.Second),
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
	of := func(name string) area.Batches {
		return area.Batches{Operation: name, Rounds: area.UsualRounds, Span: area.UsualSpan}
	}
	for _, c := range []struct {
		spec Spec
		want []area.Batches
	}{
		{Spec{}, []area.Batches{of("")}},
		{Spec{Operations: []string{"a", "b"}}, []area.Batches{of("a"), of("b")}},
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
