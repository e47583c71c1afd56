package imagepull

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
	"tare/rigs/areatest"
)

// specOf reads a section from the fields that it has in a file.
func specOf(t testing.TB, fields string) *Spec {
	t.Helper()
	s := &Spec{}
	d := yaml.NewDecoder(strings.NewReader("{" + fields + "}"))
	d.KnownFields(true)
	if err := d.Decode(s); err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return s
}

// levelsOf reads the levels of treatments from "accessor=lru size=60 | accessor=cached".
func levelsOf(text string) (all [][]string) {
	if text == "" {
		return nil
	}
	for one := range strings.SplitSeq(text, " | ") {
		all = append(all, strings.FieldsFunc(one, func(r rune) bool { return r == ' ' || r == '=' }))
	}
	return all
}

func TestValidate(t *testing.T) {
	for _, c := range []struct{ section, levels, path, says string }{ // nothing said: valid
		{"", "", "", ""},
		{"operations: [" + strings.Join(names(), ", ") + "], rounds: 5, span: 1s", "", "", ""},
		{"operations: [check, pull], accessor: LRU:50, records: 200, hits: 75%, pattern: churn, exponent: 1.5, " +
			"turnover: 20%, concurrency: 4, stripes: 31, secrets: 5", "", "", ""},
		{"", "accessor=Disabled | accessor=DirectFS | accessor=Cached | accessor=CachedLRU(50)", "", ""}, // as in the issue

		{"operations: [check, chekc-cold]", "", "operations[1]", `did you mean "check-cold"?`},
		{"operations: [banana]", "", "operations[0]", `there is no operation "banana"; there are check, check-cold,`},
		{"operations: [check, check]", "", "operations[1]", "given twice"},
		{"span: 1us", "", "span", "1ms to 10s"},
		{"rounds: 2", "", "rounds", "3 to 1000"},

		{"", "record=10", "", `did you mean "records"?`},
		{"", "accessor=cashed", "", `did you mean "cached"?`},
		{"accessor: diectfs", "", "accessor", `did you mean "directfs"?`},
		{"", "accessor=cached:10", "", "only lru has a size"},
		{"", "accessor=lru:0", "", "from 1 to 100000"},
		{"", "accessor=lru:50 size=60", "", "says it already"},
		{"accessor: lru:50, size: 60", "", "size", "says it already"},
		{"accessor: lru", "size=10 | size=50", "", ""},
		{"", "accessor=directfs size=60", "", "belongs to accessor lru"},
		{"size: 60", "", "size", "no treatment uses it"},
		{"size: 60", "accessor=cached | accessor=lru", "", ""},
		{"", "exponent=1.2", "", "belongs to the patterns zipf and churn"},
		{"", "pattern=zipf exponent=1.2", "", ""},
		{"", "pattern=zipf exponent=1", "", "above 1"},
		{"", "pattern=zipf exponent=NaN", "", "above 1"},
		{"", "pattern=scan window=5", "", "belongs to pattern working-set"},
		{"", "pattern=zipf turnover=5%", "", "belongs to pattern churn"},
		{"", "pattern=unifrom", "", `did you mean "uniform"?`},
		{"", "records=0", "", "from 1 to 100000"},
		{"records: 0", "", "records", "from 1 to 100000"},
		{"", "records=100001", "", "from 1 to 100000"},
		{"", "hits=0 | hits=10% | hits=100", "", ""},
		{"", "hits=101", "", "from 0% to 100%"},
		{"", "hits=0.5", "", ""},
		{"", "hits=1e1", "", "from 0% to 100%"},
		{"", "records=1000 secrets=1001", "", "are 1001000 secrets"},
		{"", "stripes=32", "", "kubernetes/kubernetes#138935"},
		{"stripes: 64", "", "stripes", "panics (kubernetes/kubernetes#138935)"},
		{"", "stripes=0", "", "from 1 to 31"},
		{"", "concurrency=0", "", "from 1 to 256"},
		{"", "secrets=0", "", "from 1 to 5000"},

		{"", "accessor=lru | accessor=lru:100", "", "in other words"},
		{"records: 5", "records=10 | records=20", "", ""},
		{"records: 5", "accessor=cached | records=20", "", ""},

		{"", "accessor=lru:3000 records=5000", "", "warning: 2000 records at most"},
		{"pattern: working-set", "records=50", "", "warning: all images are in the working set"},
		{"pattern: working-set", "records=51", "", ""},
		{"operations: [pull]", "hits=10 | hits=20", "", "warning: hits acts on check only"},
		{"operations: [pull], pattern: scan", "", "", "warning: pattern acts on check and new-namespace only"},
	} {
		want := area.Finding{Path: c.path, Severity: area.Error, Message: c.says}
		if says, warns := strings.CutPrefix(c.says, "warning: "); warns {
			want.Severity, want.Message = area.Warning, says
		}
		found := areatest.Validate(specOf(t, c.section), design.Compare, levelsOf(c.levels))
		areatest.WantFinding(t, c.section+" "+c.levels, found, want)
	}
	scale := areatest.Validate(&Spec{}, design.Scale, levelsOf("records=10 | records=100 | records=1000"))
	areatest.WantFinding(t, "scale", scale, area.Finding{})
}

// TestAdviceFindings checks the notes about settings that are valid and may surprise.
func TestAdviceFindings(t *testing.T) {
	for _, c := range []struct{ section, levels, says string }{ // nothing said: no advice
		{"", "", ""},
		{"", "records=2000 | records=5000", "a step is to be expected"},
		{"", "records=1999", ""},
		{"", "records=5000 accessor=directfs", ""},
		{"", "accessor=lru:300 records=100", "room for all"},
		{"operations: [check, pull]", "accessor=disabled | accessor=cached", "pull measures nothing"},
		{"", "concurrency=4 | concurrency=8", "one after another"},
		{"", "concurrency=4 stripes=4", ""},
	} {
		s, levels, title := specOf(t, c.section), levelsOf(c.levels), c.section+" "+c.levels
		areatest.WantFinding(t, title, areatest.Validate(s, design.Compare, levels), area.Finding{})
		var treatments []design.Treatment
		for _, l := range levels {
			treatments = append(treatments, treatment(l...))
		}
		areatest.WantFinding(t, title, s.advise(treatments), area.Finding{Severity: area.Info, Message: c.says})
	}
}

// TestLevels: the program receives the treatment's levels, and the section's where the treatment has none.
func TestLevels(t *testing.T) {
	const usual = "accessor=cached records=100 hits=100 pattern=uniform concurrency=1 stripes=1 secrets=1 "
	for _, c := range []struct{ section, levels, differ string }{
		{"", "", ""},
		{"accessor: DirectFS, hits: 0%, secrets: 7", "", "accessor=directfs hits=0 secrets=7"},
		{"records: 5, hits: 10%", "records=7", "records=7 hits=10"},
		{"", "accessor=lru", "accessor=lru size=100"},
		{"size: 60", "accessor=lru", "accessor=lru size=60"},
		{"size: 60", "accessor=CachedLRU(30)", "accessor=lru size=30"},
		{"accessor: lru:30", "size=40", "accessor=lru size=40"},
		{"", "pattern=Zipf exponent=1.25", "pattern=zipf exponent=1.25"},
		{"", "pattern=working-set", "pattern=working-set window=50"},
		{"", "pattern=churn turnover=25%", "pattern=churn exponent=1.1 turnover=25"},
		{"", "hits=75", "hits=75"}, // as it is published
		{"", "hits=99.5%", "hits=99.5"},
	} {
		p, err := specOf(t, c.section).plan(treatment(slices.Concat(levelsOf(c.levels)...)...))
		if err != nil {
			t.Errorf("%s, %s: got %v, want no error", c.section, c.levels, err)
			continue
		}
		want := treatment(levelsOf(usual + c.differ)[0]...).Levels
		if d := cmp.Diff(want, p.levels()); d != "" {
			t.Errorf("%s, %s: levels (-want +got):\n%s", c.section, c.levels, d)
		}
	}
	if p, err := new(Spec).plan(treatment("hits", "75 %")); err != nil || p.levels()["hits"] != "75" {
		t.Errorf("with a space before the sign: %v, %v", p.levels(), err)
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
