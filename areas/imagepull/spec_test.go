package imagepull

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/unit"
	"tare/rigs/areatest"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		title    string
		spec     Spec
		q        design.Question
		levels   [][]string
		path     string
		severity area.Severity
		says     string // empty: nothing is wrong
	}{
		{title: "plain"},
		{title: "scale", q: design.Scale, levels: [][]string{{"records", "10"}, {"records", "100"}, {"records", "1000"}}},
		{title: "all operations", spec: Spec{Operations: names(), Rounds: 5, Span: unit.Duration(time.Second)}},
		{title: "everything", spec: Spec{
			Operations: []string{opCheck, opPull}, Accessor: "LRU:50", Records: new(200), Hits: new(Share(75)), Pattern: "churn",
			Exponent: new(1.5),
			Turnover: new(Share(20)), Concurrency: new(4), Stripes: new(31), Secrets: new(5),
		}},
		{title: "the words of the issue", levels: [][]string{
			{"accessor", "Disabled"},
			{"accessor", "DirectFS"},
			{"accessor", "Cached"},
			{"accessor", "CachedLRU(50)"},
		}},

		{
			title: "an operation's slip", spec: Spec{Operations: []string{"check", "chekc-cold"}}, path: "operations[1]",
			severity: area.Error, says: `did you mean "check-cold"?`,
		},
		{
			title: "no slip", spec: Spec{Operations: []string{"banana"}}, path: "operations[0]", severity: area.Error,
			says: `there is no operation "banana"; there are check, check-cold,`,
		},
		{
			title: "twice", spec: Spec{Operations: []string{"check", "check"}}, path: "operations[1]", severity: area.Error,
			says: "given twice",
		},
		{
			title: "short", spec: Spec{Span: unit.Duration(time.Microsecond)}, path: "span", severity: area.Error,
			says: "1ms to 10s",
		},
		{title: "few rounds", spec: Spec{Rounds: 2}, path: "rounds", severity: area.Error, says: "3 to 1000"},

		{
			title: "a factor's slip", levels: [][]string{{"record", "10"}}, severity: area.Error,
			says: `did you mean "records"?`,
		},
		{
			title: "an accessor's slip", levels: [][]string{{"accessor", "cashed"}}, severity: area.Error,
			says: `did you mean "cached"?`,
		},
		{
			title: "an accessor's slip in the section", spec: Spec{Accessor: "diectfs"}, path: "accessor", severity: area.Error,
			says: `did you mean "directfs"?`,
		},
		{
			title: "a size of cached", levels: [][]string{{"accessor", "cached:10"}}, severity: area.Error,
			says: "only lru has a size",
		},
		{title: "no size", levels: [][]string{{"accessor", "lru:0"}}, severity: area.Error, says: "from 1 to 100000"},
		{
			title: "a size twice", levels: [][]string{{"accessor", "lru:50", "size", "60"}}, severity: area.Error,
			says: "says it already",
		},
		{
			title: "a size twice in the section", spec: Spec{Accessor: "lru:50", Size: new(60)}, path: "size",
			severity: area.Error, says: "says it already",
		},
		{title: "a size that varies", spec: Spec{Accessor: "lru"}, levels: [][]string{{"size", "10"}, {"size", "50"}}},
		{
			title: "a size of nothing", levels: [][]string{{"accessor", "directfs", "size", "60"}}, severity: area.Error,
			says: "belongs to accessor lru",
		},
		{
			title: "an impossible size", spec: Spec{Size: new(60)}, path: "size", severity: area.Error,
			says: "no treatment uses it",
		},
		{
			title: "a size that one has", spec: Spec{Size: new(60)},
			levels: [][]string{{"accessor", "cached"}, {"accessor", "lru"}},
		},
		{
			title: "an exponent of uniform", levels: [][]string{{"exponent", "1.2"}}, severity: area.Error,
			says: "belongs to the patterns zipf and churn",
		},
		{title: "an exponent", levels: [][]string{{"pattern", "zipf", "exponent", "1.2"}}},
		{
			title: "an exponent of 1", levels: [][]string{{"pattern", "zipf", "exponent", "1"}}, severity: area.Error,
			says: "above 1",
		},
		{
			title: "an exponent that is no number", levels: [][]string{{"pattern", "zipf", "exponent", "NaN"}},
			severity: area.Error,
			says:     "above 1",
		},
		{
			title: "a window of scan", levels: [][]string{{"pattern", "scan", "window", "5"}}, severity: area.Error,
			says: "belongs to pattern working-set",
		},
		{
			title: "turnover of zipf", levels: [][]string{{"pattern", "zipf", "turnover", "5%"}}, severity: area.Error,
			says: "belongs to pattern churn",
		},
		{
			title: "a pattern's slip", levels: [][]string{{"pattern", "unifrom"}}, severity: area.Error,
			says: `did you mean "uniform"?`,
		},
		{title: "no records", levels: [][]string{{"records", "0"}}, severity: area.Error, says: "from 1 to 100000"},
		{
			title: "no records in the section", spec: Spec{Records: new(0)}, path: "records", severity: area.Error,
			says: "from 1 to 100000",
		},
		{
			title: "too many records", levels: [][]string{{"records", "100001"}}, severity: area.Error,
			says: "from 1 to 100000",
		},
		{title: "no hits", levels: [][]string{{"hits", "0"}, {"hits", "10%"}, {"hits", "100"}}},
		{title: "more than all", levels: [][]string{{"hits", "101"}}, severity: area.Error, says: "from 0% to 100%"},
		{title: "half a percent", levels: [][]string{{"hits", "0.5"}}},
		{title: "no number", levels: [][]string{{"hits", "1e1"}}, severity: area.Error, says: "from 0% to 100%"},
		{
			title: "too many secrets together", levels: [][]string{{"records", "1000", "secrets", "1001"}}, severity: area.Error,
			says: "are 1001000 secrets",
		},
		{title: "stripes", levels: [][]string{{"stripes", "32"}}, severity: area.Error, says: "kubernetes/kubernetes#138935"},
		{
			title: "stripes in the section", spec: Spec{Stripes: new(64)}, path: "stripes", severity: area.Error,
			says: "panics (kubernetes/kubernetes#138935)",
		},
		{title: "no stripes", levels: [][]string{{"stripes", "0"}}, severity: area.Error, says: "from 1 to 31"},
		{title: "nobody", levels: [][]string{{"concurrency", "0"}}, severity: area.Error, says: "from 1 to 256"},
		{title: "no secrets", levels: [][]string{{"secrets", "0"}}, severity: area.Error, says: "from 1 to 5000"},

		{
			title: "the same in other words", levels: [][]string{{"accessor", "lru"}, {"accessor", "lru:100"}},
			severity: area.Error, says: "in other words",
		},
		{
			title: "a default that all override", spec: Spec{Records: new(5)},
			levels: [][]string{{"records", "10"}, {"records", "20"}},
		},
		{
			title: "a default beside a level", spec: Spec{Records: new(5)},
			levels: [][]string{{"accessor", "cached"}, {"records", "20"}},
		},

		{
			title: "a cache above the clamp", levels: [][]string{{"accessor", "lru:3000", "records", "5000"}},
			severity: area.Warning, says: "2000 records at most",
		},
		{
			title: "a window for all", spec: Spec{Pattern: "working-set"}, levels: [][]string{{"records", "50"}},
			severity: area.Warning, says: "all images are in the working set",
		},
		{title: "a window", spec: Spec{Pattern: "working-set"}, levels: [][]string{{"records", "51"}}},
		{
			title: "hits of nothing", spec: Spec{Operations: []string{"pull"}},
			levels: [][]string{{"hits", "10"}, {"hits", "20"}}, severity: area.Warning, says: "hits acts on check only",
		},
		{
			title: "a pattern of nothing", spec: Spec{Operations: []string{"pull"}, Pattern: "scan"}, severity: area.Warning,
			says: "pattern acts on check and new-namespace only",
		},
	} {
		found := areatest.Validate(&c.spec, c.q, c.levels)
		areatest.WantFinding(t, c.title, found, area.Finding{Path: c.path, Severity: c.severity, Message: c.says})
	}
}

// TestAdviceFindings checks the notes about settings that are valid and may surprise.
func TestAdviceFindings(t *testing.T) {
	for _, c := range []struct {
		title  string
		spec   Spec
		levels [][]string
		says   string // empty: nothing
	}{
		{title: "plain"},
		{title: "the clamp", levels: [][]string{{"records", "2000"}, {"records", "5000"}}, says: "a step is to be expected"},
		{title: "below the clamp", levels: [][]string{{"records", "1999"}}},
		{title: "no cache", levels: [][]string{{"records", "5000", "accessor", "directfs"}}},
		{title: "a cache for all", levels: [][]string{{"accessor", "lru:300", "records", "100"}}, says: "room for all"},
		{
			title: "pulls without a manager", spec: Spec{Operations: []string{"check", "pull"}},
			levels: [][]string{{"accessor", "disabled"}, {"accessor", "cached"}}, says: "pull measures nothing",
		},
		{title: "one lock", levels: [][]string{{"concurrency", "4"}, {"concurrency", "8"}}, says: "one after another"},
		{title: "locks", levels: [][]string{{"concurrency", "4", "stripes", "4"}}},
	} {
		var treatments []design.Treatment
		for _, l := range c.levels {
			treatments = append(treatments, treatment(l...))
		}
		if found := c.spec.Validate(question.Of(design.Compare).Asked(), treatments); len(found) > 0 {
			t.Errorf("%s: got findings %v, want none", c.title, found)
		}
		found := c.spec.advise(treatments)
		switch {
		case c.says == "" && len(found) > 0:
			t.Errorf("%s: got advice %v, want none", c.title, found)
		case c.says == "":
		case len(found) != 1 || found[0].Severity != area.Info || !strings.Contains(found[0].Message, c.says):
			t.Errorf("%s: %+v, want %q", c.title, found, c.says)
		}
	}
}

// TestLevels: the program receives the treatment's levels, and the section's where the treatment has none.
func TestLevels(t *testing.T) {
	usual := map[string]string{
		"accessor": "cached", "records": "100", "hits": "100", "pattern": "uniform", "concurrency": "1", "stripes": "1",
		"secrets": "1",
	}
	for _, c := range []struct {
		title  string
		spec   Spec
		levels []string
		differ map[string]string
	}{
		{title: "defaults"},
		{
			title: "the section", spec: Spec{Accessor: "DirectFS", Hits: new(Share(0)), Secrets: new(7)},
			differ: map[string]string{"accessor": "directfs", "hits": "0", "secrets": "7"},
		},
		{
			title: "above the section", spec: Spec{Records: new(5), Hits: new(Share(10))}, levels: []string{"records", "7"},
			differ: map[string]string{"records": "7", "hits": "10"},
		},
		{title: "lru", levels: []string{"accessor", "lru"}, differ: map[string]string{"accessor": "lru", "size": "100"}},
		{
			title: "a size below the accessor", spec: Spec{Size: new(60)}, levels: []string{"accessor", "lru"},
			differ: map[string]string{"accessor": "lru", "size": "60"},
		},
		{
			title: "a size in the accessor", spec: Spec{Size: new(60)}, levels: []string{"accessor", "CachedLRU(30)"},
			differ: map[string]string{"accessor": "lru", "size": "30"},
		},
		{
			title: "a size above the accessor", spec: Spec{Accessor: "lru:30"}, levels: []string{"size", "40"},
			differ: map[string]string{"accessor": "lru", "size": "40"},
		},
		{
			title: "zipf", levels: []string{"pattern", "Zipf", "exponent", "1.25"},
			differ: map[string]string{"pattern": "zipf", "exponent": "1.25"},
		},
		{title: "working set", levels: []string{"pattern", "working-set"}, differ: map[string]string{
			"pattern": "working-set",
			"window":  "50",
		}},
		{
			title: "churn", levels: []string{"pattern", "churn", "turnover", "25%"},
			differ: map[string]string{"pattern": "churn", "exponent": "1.1", "turnover": "25"},
		},
		{title: "hits as they are published", levels: []string{"hits", "75"}, differ: map[string]string{"hits": "75"}},
		{title: "odd hits", levels: []string{"hits", "99.5%"}, differ: map[string]string{"hits": "99.5"}},
		{title: "hits with a sign", levels: []string{"hits", "75 %"}, differ: map[string]string{"hits": "75"}},
	} {
		p, err := c.spec.plan(treatment(c.levels...))
		if err != nil {
			t.Errorf("%s: got %v, want no error", c.title, err)
			continue
		}
		want := maps.Clone(usual)
		maps.Copy(want, c.differ)
		if d := cmp.Diff(want, p.levels()); d != "" {
			t.Errorf("%s: levels (-want +got):\n%s", c.title, d)
		}
	}
}

// FuzzPlan: levels lead to a plan within all limits, whose words lead to the same plan, or to an error in one line.
func FuzzPlan(f *testing.F) {
	f.Add("lru:100", "100", "75%", "zipf", "1.1", "31", "")
	f.Add("CachedLRU(5)", "1", "0", "churn", "2e0", "1", "9")
	f.Add(" cached ", "+5", "-0", "scan", "Inf", "32", "1")
	f.Fuzz(func(t *testing.T, accessor, records, hits, pattern, exponent, stripes, size string) {
		levels := map[string]string{}
		for factor, level := range map[string]string{
			factorAccessor: accessor, factorRecords: records, factorHits: hits, factorPattern: pattern, factorExponent: exponent,
			factorStripes: stripes, factorSize: size,
		} {
			if level != "" {
				levels[factor] = level
			}
		}
		p, err := new(Spec).plan(design.Treatment{ID: "x", Levels: levels})
		if err != nil {
			factor, _, _ := strings.Cut(err.Error(), ":")
			if !slices.Contains(factors(), factor) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: %q names no factor in one line", levels, err)
			}
			return
		}
		if p.records < 1 || p.records > maxRecords || p.hits < 0 || p.hits > 100 || p.stripes < 1 || p.stripes > maxStripes ||
			p.size < 1 || p.size > maxSize ||
			p.exponent <= 1 || p.exponent > maxExponent || !slices.Contains(patterns(), p.pattern) ||
			!slices.Contains(accessors(), p.accessor) {
			t.Errorf("%v gives %+v", levels, p)
		}
		again, err := new(Spec).plan(design.Treatment{ID: "x", Levels: p.levels()})
		if d := cmp.Diff(p.levels(), again.levels()); err != nil || d != "" {
			t.Errorf("%v is read back as another: %v %s", p.levels(), err, d)
		}
	})
}

// FuzzShare: a share is written as it was read.
func FuzzShare(f *testing.F) {
	for _, s := range []string{"0", "100%", " 7 %", "101", "-0", "+1", "1e1", "١"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseShare(text)
		if err != nil {
			return
		}
		back, err := parseShare(s.String())
		if err != nil || back != s || s < 0 || s > 100 {
			t.Errorf("%q gives %v, and that %v: %v", text, s, back, err)
		}
		digits, _, _ := strings.Cut(strings.TrimSpace(text), "%")
		if want, err := strconv.ParseFloat(strings.TrimSpace(digits), 64); err != nil || float64(s) != want {
			t.Errorf("%q gives %v", text, s)
		}
	})
}

// TestOperations: the harness's own operation is present exactly once, and the forecast counts it.
func TestOperations(t *testing.T) {
	for _, c := range []struct{ chosen, want []string }{
		{nil, []string{opCheck, opEmpty}},
		{[]string{opPull, opCheck}, []string{opPull, opCheck, opEmpty, opEmptyTimed}},
		{[]string{opNewNamespace, opEmptyTimed}, []string{opNewNamespace, opEmptyTimed, opEmpty}},
		{[]string{opEmpty, opCheck}, []string{opEmpty, opCheck}},
	} {
		s := &Spec{Operations: c.chosen, Rounds: 7, Span: unit.Duration(3 * time.Millisecond)}
		if d := cmp.Diff(c.want, s.operations()); d != "" {
			t.Error(d)
		}
		var of []string
		for _, b := range s.Batches() {
			of = append(of, b.Operation)
			if b.Rounds != 7 || b.Span != 3*time.Millisecond+collecting {
				t.Errorf("got batches %+v, want 7 rounds of 3 ms", b)
			}
		}
		if d := cmp.Diff(c.want, of); d != "" {
			t.Error(d)
		}
	}
	for _, b := range new(Spec).Batches() {
		if b.Rounds != 16 || b.Span != 20*time.Millisecond+collecting {
			t.Errorf("got batches %+v, want 16 rounds of 20 ms", b)
		}
	}
}

// TestDescriptionsListWords: editors show what the descriptions list.
func TestDescriptionsListWords(t *testing.T) {
	for field, words := range map[string][]string{
		"Operations": names()[:6], "Accessor": accessors(),
		"Pattern": patterns(),
	} {
		f, ok := reflect.TypeFor[Spec]().FieldByName(field)
		if !ok {
			t.Fatalf("there is no field %s", field)
		}
		for _, w := range words {
			if !strings.Contains(f.Tag.Get("jsonschema_description"), w) {
				t.Errorf("the description of %s lacks %s", field, w)
			}
		}
	}
	for _, factor := range factors() {
		found := false
		for f := range reflect.TypeFor[Spec]().Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			found = found || name == factor
		}
		if !found {
			t.Errorf("the section has no field for the factor %s", factor)
		}
	}
}

// TestSectionSetsLevels: the section's field of every factor sets a level.
func TestSectionSetsLevels(t *testing.T) {
	s := &Spec{
		Accessor: "lru", Size: new(1), Records: new(2), Hits: new(Share(3)), Pattern: "churn", Exponent: new(4.5),
		Window: new(5), Turnover: new(Share(6)),
		Concurrency: new(7), Stripes: new(8), Secrets: new(9), Policy: neverPreloaded,
	}
	want := map[string]string{
		"accessor": "lru", "size": "1", "records": "2", "hits": "3%", "pattern": "churn", "exponent": "4.5", "window": "5",
		"turnover":    "6%",
		"concurrency": "7", "stripes": "8", "secrets": "9", "policy": neverPreloaded,
	}
	if d := cmp.Diff(want, s.given()); d != "" {
		t.Error(d)
	}
}
