package kit

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"tare/area"
	"tare/internal/design"
)

// TestJudgeEach: every treatment is checked, or a single one without levels if there is none; no finding is repeated.
func TestJudgeEach(t *testing.T) {
	judge := func(tr design.Treatment) []area.Finding {
		return []area.Finding{area.Fault("url", errors.New("url: bad"), ""), area.Fault("", errors.New(tr.ID), "")}
	}
	for _, c := range []struct {
		treatments []design.Treatment
		want       []string
	}{
		{nil, []string{"url: bad", design.ID(nil)}},
		{[]design.Treatment{{ID: "a"}, {ID: "b"}, {ID: "a"}}, []string{"url: bad", "a", "b"}},
	} {
		var got []string
		for _, f := range JudgeEach(c.treatments, judge) {
			got = append(got, f.Message)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d treatments: %q, want %q", len(c.treatments), got, c.want)
		}
	}
}

// TestFaultIn: a finding is about a field of the file, or about the treatment whose level is wrong.
func TestFaultIn(t *testing.T) {
	err := errors.New("policies: 0 is too few")
	treatment := design.Treatment{ID: "x", Levels: map[string]string{"policies": "0"}}
	for name, c := range map[string]struct {
		t             design.Treatment
		path          string
		where, saying string
	}{
		"a field": {design.Treatment{ID: "x"}, "policies", "policies", "policies: 0 is too few"},
		"a level": {treatment, "policies", "", `treatment "x": policies: 0 is too few`},
		"another's level": {
			design.Treatment{ID: "x", Levels: map[string]string{"url": "y"}},
			"policies", "policies",
			"policies: 0 is too few",
		},
		"no field":         {treatment, "", "", `treatment "x": policies: 0 is too few`},
		"nothing of these": {design.Treatment{ID: "x"}, "", "", "policies: 0 is too few"},
	} {
		if f := FaultIn(c.t, c.path, err); f.Path != c.where || f.Message != c.saying || f.Severity != area.Error {
			t.Errorf("%s: got %+v, want %q at %q", name, f, c.saying, c.where)
		}
	}
}

// TestTrimMissing drops treatments that need something missing, and looks for it once.
func TestTrimMissing(t *testing.T) {
	of := func(names ...string) (out []design.Treatment) {
		for i, name := range names {
			out = append(out, design.Treatment{ID: fmt.Sprint(name, i), Levels: map[string]string{"needs": name}})
		}
		return out
	}
	base := func(all []design.Treatment) []design.Treatment {
		all[0].Baseline = true
		return all
	}
	for name, c := range map[string]struct {
		treatments []design.Treatment
		kept       int
		want       []string
	}{
		"all there": {of("", "here", "here"), 3, nil},
		"some missing": {
			base(of("", "gone", "here", "lost", "gone")), 2,
			[]string{"left out: lost3: no lost", "left out: gone1; gone4: no gone"},
		},
		"many missing": {
			of("here", "gone", "gone", "gone", "gone"), 1,
			[]string{"left out: gone1; gone2; and 2 more: no gone"},
		},
		"the baseline": {
			base(of("gone", "here")), 2,
			[]string{"the baseline needs a thing that this host cannot have: no gone"},
		},
		"nothing remaining": {of("gone", "lost"), 2, []string{"no lost", "no gone"}},
	} {
		looked := map[string]int{}
		need := func(tr design.Treatment) Need {
			thing := tr.Levels["needs"]
			return Need{thing, func() error {
				if looked[thing]++; thing == "here" {
					return nil
				}
				return errors.New("no " + thing)
			}}
		}
		explain := func(err error) area.Finding { return area.Fault("", err, "") }
		kept, out := TrimMissing("a thing", []string{"lost", "gone"}, c.treatments, need, explain)
		var got []string
		for _, f := range out {
			got = append(got, f.Message)
		}
		if len(kept) != c.kept || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d kept, %q; want %d and %q", name, len(kept), got, c.kept, c.want)
		}
		for thing, n := range looked {
			if n != 1 || thing == "" {
				t.Errorf("%s: %q was looked for %d times", name, thing, n)
			}
		}
	}
}

func TestFaultShowsTheHintThatTheErrorCarries(t *testing.T) {
	err := fmt.Errorf("find it: %w", area.WithHint(errors.New("no engine"), "install it"))
	for name, c := range map[string]struct {
		err        error
		hint, want string
	}{
		"an error's own":       {err, "", "install it"},
		"the caller's instead": {err, "build it", "build it"},
		"none":                 {errors.New("no engine"), "", ""},
	} {
		if f := area.Fault("embedded", c.err, c.hint); f.Hint != c.want || f.Severity != area.Error ||
			f.Message != c.err.Error() {
			t.Errorf("%s: %+v, want hint %q", name, f, c.want)
		}
	}
}

func TestAtLeastOne(t *testing.T) {
	if got := AtLeastOne(nil); len(got) != 1 || got[0].ID != design.ID(nil) || got[0].Levels != nil {
		t.Errorf("without treatments: %+v, want one without levels", got)
	}
	two := []design.Treatment{{ID: "a"}, {ID: "b"}}
	if got := AtLeastOne(two); len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
		t.Errorf("%+v, want the two treatments as they were", got)
	}
}
