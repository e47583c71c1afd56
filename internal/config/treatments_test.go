package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"go.yaml.in/yaml/v4"

	"tare/internal/design"
	"tare/internal/load"
)

func TestTreatments(t *testing.T) {
	for name, c := range map[string]struct {
		e    Experiment
		want []design.Treatment
	}{
		"nothing is varied": {
			Experiment{},
			[]design.Treatment{{ID: "default", Baseline: true}},
		},
		"only fixed levels": {
			Experiment{Fixed: Levels{"position": "last"}},
			[]design.Treatment{{ID: "default", Baseline: true, Levels: map[string]string{"position": "last"}}},
		},
		"the baseline comes first": {
			Experiment{Baseline: Levels{"enforcer": "none"}, Alternatives: []Levels{
				{"enforcer": "a", "mode": "full"},
				{"enforcer": "b"},
			}},
			[]design.Treatment{
				{ID: "enforcer=none", Baseline: true, Levels: map[string]string{"enforcer": "none"}},
				{ID: "enforcer=a mode=full", Levels: map[string]string{"enforcer": "a", "mode": "full"}},
				{ID: "enforcer=b", Levels: map[string]string{"enforcer": "b"}},
			},
		},
		"without a baseline none is one": {
			Experiment{Alternatives: []Levels{{"n": "64"}, {"n": "256"}}},
			[]design.Treatment{
				{ID: "n=64", Levels: map[string]string{"n": "64"}},
				{ID: "n=256", Levels: map[string]string{"n": "256"}},
			},
		},
		"factors are crossed, the last fastest": {
			Experiment{
				Baseline: Levels{"on": "no"}, Alternatives: []Levels{{"on": "yes"}}, Fixed: Levels{"f": "x"},
				Factors: Factors{{Name: "n", Levels: []string{"1", "2"}}, {Name: "m", Levels: []string{"a"}}},
			},
			[]design.Treatment{
				{ID: "m=a n=1 on=no", Baseline: true, Levels: map[string]string{"m": "a", "n": "1", "on": "no", "f": "x"}},
				{ID: "m=a n=2 on=no", Baseline: true, Levels: map[string]string{"m": "a", "n": "2", "on": "no", "f": "x"}},
				{ID: "m=a n=1 on=yes", Levels: map[string]string{"m": "a", "n": "1", "on": "yes", "f": "x"}},
				{ID: "m=a n=2 on=yes", Levels: map[string]string{"m": "a", "n": "2", "on": "yes", "f": "x"}},
			},
		},
	} {
		if diff := cmp.Diff(c.want, c.e.Treatments()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestArmsHaveAnAAArmWhereTheyAreCompared(t *testing.T) {
	e := Experiment{Question: design.Compare, Baseline: Levels{"on": "no"}, Alternatives: []Levels{{"on": "yes"}}}
	arms := e.Arms()
	if last := arms[len(arms)-1]; len(arms) != 3 || last.Control != design.AA || last.Of != "on=no" {
		t.Errorf("compare: %+v", arms)
	}
	e.Question = design.Capacity
	if len(e.Arms()) != 2 {
		t.Errorf("capacity: %+v", e.Arms())
	}
}

func TestKeeping(t *testing.T) {
	e := &Experiment{
		Question: design.Compare, Baseline: Levels{"engine": "a"},
		Alternatives: []Levels{{"engine": "b"}, {"engine": "c"}},
	}
	all := e.Treatments()
	kept := e.Keeping([]design.Treatment{all[0], all[2]})
	if got := kept.Treatments(); len(got) != 2 || got[0].ID != all[0].ID || got[1].ID != all[2].ID {
		t.Errorf("kept %+v", got)
	}
	if len(kept.Arms()) != 3 || len(kept.WithDefaults().Treatments()) != 2 {
		t.Errorf("arms %+v", kept.Arms())
	}
	if len(e.Treatments()) != 3 {
		t.Error("Keeping changes its receiver")
	}
}

func TestWithDefaults(t *testing.T) {
	away := &fakeSpec{URL: "http://192.0.2.1"}
	in := Experiment{Question: design.Capacity, Target: away, Load: Load{SLO: &SLO{Limit: dur("1s")}}}
	e := in.WithDefaults()
	want := Load{
		Arrivals: Constant, Engine: Auto, Timeout: dur("30s"), MaxConnections: 4096,
		Abort: &Abort{Error: percent("50%"), For: dur("10s")}, SLO: &SLO{Limit: dur("1s"), Share: percent("1%")},
	}
	if diff := cmp.Diff(want, e.Load); diff != "" {
		t.Errorf("capacity off this machine (-want +got):\n%s", diff)
	}
	if in.Load.SLO.Share != 0 || in.Load.Abort != nil {
		t.Error("WithDefaults changes its receiver")
	}
	in = Experiment{Question: design.Soak, Target: &fakeSpec{}, Load: Load{
		Closed: &Closed{Workers: 3}, Timeout: dur("2s"),
		Engine: Std, Duration: dur("1h"),
	}}
	want = Load{Closed: &Closed{Workers: 3}, Engine: Std, Timeout: dur("2s"), MaxConnections: 256, Duration: dur("1h")}
	if diff := cmp.Diff(want, in.WithDefaults().Load); diff != "" {
		t.Errorf("closed soak on this machine (-want +got):\n%s", diff)
	}
	in = Experiment{Question: design.Soak, Target: away, Load: Load{Closed: &Closed{Workers: 300}, Duration: dur("1h")}}
	if l := in.WithDefaults().Load; l.MaxConnections != 300 || l.Abort == nil || l.Abort.For != dur("5m") {
		t.Errorf("a soak off this machine outlives a restart, and each worker has a connection: %+v, abort %+v", l, l.Abort)
	}
}

func TestLoadBecomesEngineConfig(t *testing.T) {
	l := Load{
		Engine: Std, Timeout: dur("2s"), MaxConnections: 7, MaxRate: rate("9/s"), Shards: 2, Spin: dur("60us"), Precise: true,
		Duration: dur("4s"), Arrivals: Poisson,
	}
	want := load.Config{
		Engine: load.Std, Timeout: 2 * time.Second, MaxConns: 7, MaxRate: 9, Shards: 2, Spin: 60 * time.Microsecond,
		Precise: true, Seed: 5,
	}
	if got := l.Config(5); !reflect.DeepEqual(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for arrivals, want := range map[Arrivals]load.Process{
		"":       load.Constant{Rate: 3, Duration: 4 * time.Second},
		Constant: load.Constant{Rate: 3, Duration: 4 * time.Second},
		Poisson:  load.Poisson{Rate: 3, Duration: 4 * time.Second, Seed: 5},
		Ramp:     load.Ramp{To: 3, Duration: 4 * time.Second},
	} {
		l.Arrivals = arrivals
		if diff := cmp.Diff(want, l.Process(3, 5)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", arrivals, diff)
		}
	}
	for _, engine := range []Engine{"", Auto} {
		if got := (Load{Engine: engine}).Config(0).Engine; got != load.Auto {
			t.Errorf("engine %q becomes %q", engine, got)
		}
	}
}

func TestPeak(t *testing.T) {
	for _, c := range []struct {
		e    Experiment
		want float64
	}{
		{Experiment{Question: design.Capacity, Load: Load{Rate: 5, MaxRate: 100}}, 100},
		{Experiment{Question: design.Capacity, Load: Load{Rates: rates("5/s", "80/s", "7/s"), MaxRate: 100}}, 80},
		{Experiment{Question: design.Soak, Load: Load{Rate: 5, MaxRate: 100}}, 5},
		{Experiment{Question: design.Soak, Load: Load{Closed: &Closed{Workers: 2}, MaxRate: 100}}, 0},
	} {
		if got := c.e.Peak(); got != c.want {
			t.Errorf("%+v: peak %v, want %v", c.e.Load, got, c.want)
		}
	}
}

func TestCPUs(t *testing.T) {
	for in, want := range map[CPUs][]int{"": nil, "0": {0}, "3,1-2,2": {1, 2, 3}, "0-3": {0, 1, 2, 3}} {
		got, err := in.List()
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("%q: %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []CPUs{"a", "1-", "-1", "2-1", "1,,2", "12345", "0 1"} {
		if got, err := in.List(); err == nil {
			t.Errorf("%q is read as %v", in, got)
		}
	}
}

func TestLevelPath(t *testing.T) {
	for _, c := range []struct {
		title, text, id, factor, want string
	}{
		{"a treatment's level", "baseline: {a: x}\ntreatments: [{a: y}, {a: z}]", "a=z", "a", "treatments[1].a"},
		{"the baseline's", "baseline: {a: x}\ntreatments: [{a: y}]", "a=x", "a", "baseline.a"},
		{"a treatment", "baseline: {a: x}\ntreatments: [{a: y}]", "a=y", "", "treatments[0]"},
		{"crossed", "baseline: {a: x}\ntreatments: [{a: y}]\nfactors: {n: [1, 2]}", "a=y n=2", "a", "treatments[0].a"},
		{"a factor's", "baseline: {a: x}\ntreatments: [{a: y}]\nfactors: {n: [1, 2]}", "a=y n=2", "n", "factors.n[1]"},
		{"without a baseline", "treatments: [{a: y}, {a: z}]", "a=z", "a", "treatments[1].a"},
		{"fixed", "baseline: {a: x}\ntreatments: [{a: y}]\nfixed: {k: v}", "a=y", "k", "fixed.k"},
		{"unknown", "baseline: {a: x}\ntreatments: [{a: y}]", "a=w", "a", "target"},
	} {
		root, faults := readSource([]byte(c.text))
		if faults != nil {
			t.Fatal(faults)
		}
		w := &walker{
			at: map[string]place{"": {root, root}}, bad: map[string]bool{}, within: map[string]bool{},
			veil: veil{from: map[int]int{}, seen: map[*yaml.Node]bool{}},
		}
		e := &Experiment{}
		w.decode("", root, reflect.ValueOf(e).Elem(), rules{})
		k := &checker{walker: w, e: e}
		if got := k.levelPath(c.id, c.factor); got != c.want {
			t.Errorf("%s: %q, want %q", c.title, got, c.want)
		}
	}
}
