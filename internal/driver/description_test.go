package driver

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/rigs/memtest"
)

func TestBadDescriptions(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Description)
		want  string
	}{
		"protocol 2":      {func(d *Description) { d.Protocol = 2 }, "it speaks protocol 2, and this tare speaks 1"},
		"no protocol":     {func(d *Description) { d.Protocol = 0 }, "it speaks protocol 0"},
		"no name":         {func(d *Description) { d.Name = "" }, "no name"},
		"no operations":   {func(d *Description) { d.Operations = nil }, "no operations"},
		"two of a name":   {func(d *Description) { d.Operations[0].Name = "work" }, `two operations are named "work"`},
		"blank in a name": {func(d *Description) { d.Operations[0].Name = "a b" }, `operation "a b"`},
		"nameless":        {func(d *Description) { d.Operations[0].Name = "" }, `operation ""`},
		"long name":       {func(d *Description) { d.Operations[0].Name = strings.Repeat("x", 65) }, "at most 64"},
		"negative span":   {func(d *Description) { d.Operations[1].SpanMS = -1 }, "span_ms is -1"},
		"long span":       {func(d *Description) { d.Operations[1].SpanMS = 1e9 }, "span_ms is 1e+09"},
		"negative rounds": {func(d *Description) { d.Operations[1].Rounds = -1 }, "rounds is -1"},
		"negative most":   {func(d *Description) { d.Operations[1].Most = -1 }, "most is -1"},
		"no such harness": {func(d *Description) { d.Operations[1].Overhead = "none" }, `overhead is "none"`},
		"own harness":     {func(d *Description) { d.Operations[1].Overhead = "work" }, `overhead is "work"`},
		"of a harness":    {func(d *Description) { d.Operations[0].Overhead = "empty" }, `overhead is "empty"`},
		"only a harness":  {func(d *Description) { d.Operations = d.Operations[:1] }, "nothing to measure"},
	} {
		d := goodDescription()
		c.spoil(&d)
		t.Run(name, func(t *testing.T) {
			wantError(t, d.valid(), c.want)
		})
	}
	_, err := Try(t.Context(), (&actor{Describe: &Description{Protocol: 2}}).program(t), 0)
	wantError(t, err, "it describes itself wrongly", "it speaks protocol 2, and this tare speaks 1")
	if err := goodDescription().valid(); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	treat := func(pairs ...string) []design.Treatment {
		out := design.Treatment{ID: "x", Levels: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			out.Levels[pairs[i]] = pairs[i+1]
		}
		return []design.Treatment{out, out} // each finding once
	}
	for name, c := range map[string]struct {
		operations []string
		treatments []design.Treatment
		settings   map[string]string
		none       bool // the program describes no factors
		want       []string
	}{
		"all": {nil, nil, nil, false, nil},
		"chosen": {
			[]string{"work", "empty"},
			treat("mode", "slow", "size", "17"),
			map[string]string{"mode": "fast"},
			false, nil,
		},
		"misspelt operation": {
			[]string{"works"},
			nil, nil, false,
			[]string{`operations: actor has no operation "works"; did you mean "work"?; it has empty, work`},
		},
		"twice": {
			[]string{"work", "work"},
			nil, nil, false,
			[]string{`operations: operation "work" is named twice; name it once`},
		},
		"harness only": {
			[]string{"empty"},
			nil, nil, false,
			[]string{"operations: actor: empty only: it is of the harness, and does nothing; name one that works too"},
		},
		"misspelt factor": {
			nil, treat("moed", "slow"), nil, false,
			[]string{`: actor has no factor "moed"; did you mean "mode"?; it has mode, size`},
		},
		"other level": {
			nil, treat("mode", "slwo"), nil, false,
			[]string{`: factor "mode": actor has no level "slwo"; did you mean "slow"?; it has fast, slow`},
		},
		"misspelt setting": {
			nil, nil,
			map[string]string{"sise": "1"},
			false,
			[]string{`settings.sise: actor has no factor "sise"; did you mean "size"?; it has mode, size`},
		},
		"other setting": {
			nil, nil,
			map[string]string{"mode": ""},
			false,
			[]string{`settings.mode: setting "mode": actor has no level ""; it has fast, slow`},
		},
		"no factors": {nil, treat("mode", "x"), nil, true, []string{
			`: actor does not describe its factors: one that is misspelt would change nothing, and nobody would notice; let it answer describe with "factors": ` +
				`{"<name>": ["<level>", …]}; no levels: any`,
		}},
		"no factors, none used": {nil, []design.Treatment{{ID: "default"}}, nil, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := goodDescription()
			if c.none {
				d.Factors = nil
			}
			var got []string
			for _, f := range d.Check(c.operations, c.treatments, c.settings) {
				got = append(got, f.Path+": "+f.Message+"; "+f.Hint)
				if (f.Severity == area.Error) == c.none {
					t.Errorf("severity %v of %v", f.Severity, f)
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestPrepareChecksTheDescriptionAgain: the program may have changed since preflight.
func TestPrepareChecksTheDescriptionAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{}, func(c *Config) { c.Operations = []string{"works"} })
	defer s.close(t)
	wantError(t, s.Prepare(t.Context(), baseline(), s.ledger), `no operation "works"`, "it has empty, work")
	if made := s.leftInWorld(t); len(made) > 0 {
		t.Error(made)
	}
}

// FuzzAnswer: no line makes the parser panic, and an accepted cost is valid.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"id":7,"ok":{"calls":3,"total":{"wall":1e-3,"cpu":2e-3}}}`, `{"id":7,"error":"no","next":"go"}`,
		`{"id":7,"ok":null}`, `{"id":8,"ok":{}}`, `{"id":7}`,
		`{"id":7,"ok":{},"error":"x"}`, "", "null", "[]", "7", `{"ID":7,"OK":{"Calls":3}}`, `{"id":7,"ok":{"calls":3}} {}`,
		`{"id":-1}`, `{"id":7,"ok":{"calls":3,"total":{"hits":4}}}`,
		`{"id":7,"ok":{"calls":3,"total":{"wall":NaN}}}`, "\xff\xfe", `{"id":7,"ok":{"calls":3,"total":{"wall":-0.0}}}`,
		`{"id":7,"error":""}`, `{"id":7,"ok":{"calls":3,"total":null}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		defer memtest.Bound(t, len(line))()
		ok, err := parseAnswer(line, Request{ID: 7, Do: DoOperate})
		if failure, is := errors.AsType[*Failure](err); is && failure.Said == "" {
			t.Error("a failure without words")
		}
		if err != nil {
			if ok != nil || len(err.Error()) > 4*len(line)+1000 {
				t.Errorf("%q with error %v", ok, err)
			}
			return
		}
		if !json.Valid(ok) {
			t.Fatalf("%q is taken for an answer", ok)
		}
		var c Cost
		if decode(DoOperate, ok, &c) != nil || c.valid(3, 1e9) != nil {
			return
		}
		for _, s := range c.samples() {
			if !(s.Value >= 0) || s.Value > 1e308 {
				t.Errorf("sample %+v", s)
			}
		}
		var d Description
		if decode(DoDescribe, ok, &d) == nil && d.valid() == nil {
			if f := d.Check(nil, nil, nil); len(f) > 0 {
				t.Errorf("valid, and all of it is wrong: %v", f)
			}
		}
	})
}

// TestHarnessIsMeasured beside the chosen operations, if their cost includes it.
func TestHarnessIsMeasured(t *testing.T) {
	d := Description{Operations: []Operation{
		{Name: "loop", Harness: true},
		{Name: "clocks", Harness: true},
		{Name: "read", Overhead: "loop"},
		{Name: "write", Overhead: "clocks"},
		{Name: "either"},
	}}
	for _, c := range []struct{ names, want []string }{
		{nil, []string{"loop", "clocks", "read", "write", "either"}},
		{[]string{"read"}, []string{"read", "loop"}},
		{[]string{"write", "read"}, []string{"write", "read", "loop", "clocks"}},
		{[]string{"clocks", "write"}, []string{"clocks", "write"}},
		{[]string{"either"}, []string{"either", "loop", "clocks"}},
	} {
		if diff := cmp.Diff(c.want, d.chosen(c.names)); diff != "" {
			t.Errorf("chosen of %v (-want +got):\n%s", c.names, diff)
		}
	}
}
