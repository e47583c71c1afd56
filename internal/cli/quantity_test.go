package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/internal/analyze"
)

// hashing is an area whose batches have quantities that no other area measures.
type hashing struct{ quantities []area.Quantity }

var collisions = area.Quantity{
	Name: "collisions", Unit: area.Ratio, Better: area.Lower,
	Help: "Share of the insertions that found their slot taken, counted by the table.",
}

func (hashing) Name() string        { return "hashing" }
func (hashing) Offers() area.Offers { return area.Offers{} }
func (hashing) NewSpec() area.Spec  { return &hashingSpec{} }
func (h hashing) Parts() area.Parts { return area.Parts{Quantities: h.quantities} }

func (hashing) Preflight(context.Context, area.Spec, area.Env) []area.Finding { return nil }
func (hashing) Undo(context.Context, []area.Change, area.Env) error           { return nil }
func (hashing) Open(context.Context, area.Spec, area.Env) (area.Target, error) {
	return &hashingTarget{}, nil
}

type hashingSpec struct{}

func (*hashingSpec) Validate(area.Asked, []area.Treatment) []area.Finding { return nil }
func (s *hashingSpec) Under(area.Treatment) (area.Spec, error)            { return s, nil }
func (*hashingSpec) Says() area.Says {
	return area.Says{
		Loopback: true, Batches: []area.Batches{{Operation: "insert", Rounds: 4}},
		Forecast: func(area.Asked, area.Treatment) area.Forecast {
			return area.Forecast{Operations: []string{"insert"}, Metrics: []string{"wall", "collisions"}, Rounds: 4}
		},
	}
}

// hashingTarget counts a tenth of the insertions as collisions, and with a narrow table three tenths.
type hashingTarget struct{ batches int }

func (*hashingTarget) Prepare(context.Context, area.Treatment, area.Journal) error { return nil }
func (*hashingTarget) Verify(context.Context, area.Treatment) error                { return nil }
func (*hashingTarget) Close(context.Context) error                                 { return nil }
func (*hashingTarget) Can() area.Can                                               { return area.Can{} }

func (h *hashingTarget) Operations(t area.Treatment) ([]area.Operation, error) {
	share := 0.1
	if t.Levels["table"] == "narrow" {
		share = 0.3
	}
	return []area.Operation{{
		Name: "insert", Weight: 1, Rounds: 4, Most: 4,
		Batch: func(context.Context, int) ([]area.BatchSample, error) {
			h.batches++
			noise := 1 + float64(h.batches%7)/1000
			return []area.BatchSample{{Metric: "wall", Value: 1e-6 * noise}, {Metric: "collisions", Value: share * noise}}, nil
		},
	}}, nil
}

// TestQuantityOfAnArea takes a quantity that only one area measures through a comparison: its effect gets a verdict,
// budgets judge it, and the report comes from the record alone.
func TestQuantityOfAnArea(t *testing.T) {
	t.Chdir(t.TempDir())
	const file = "name: hash\narea: hashing\nquestion: compare\ntarget: {}\nbaseline: {table: wide}\n" +
		"treatments: [{table: narrow}]\nblocks: 12\nseed: 1\n" +
		"budget: [insert.collisions <= 50%, insert.collisions <= 20%]\n"
	if err := os.WriteFile("x.yaml", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	with := []area.Area{hashing{[]area.Quantity{collisions}}}
	if code, out := runWith(t, with, "run", "x.yaml"); code != analyze.ExitBudget {
		t.Errorf("exit code %d, want %d\n%s", code, analyze.ExitBudget, out)
	}
	records, err := filepath.Glob("results/hash-*")
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, error %v", records, err)
	}
	for form, want := range map[string][]string{ // by a tare without the area
		"text": {
			"insert.collisions", "points [", " costs", "insert.collisions <= 50%   narrow      ✓ pass",
			"insert.collisions <= 20%   narrow      ✗ FAIL",
		},
		"json": {
			`"quantities": [`, `"name": "collisions"`, `"better": "lower"`, `"unit": "ratio"`, collisions.Help,
		},
		"benchfmt": {"Unit collisions-ratio better=lower"},
	} {
		_, out := runWith(t, nil, "report", records[0], "-o", form)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s lacks %q:\n%s", form, w, out)
			}
		}
	}
}

// TestQuantitiesAreChecked: what a report could not tell, or would confuse, is refused before a run.
func TestQuantitiesAreChecked(t *testing.T) {
	t.Chdir(t.TempDir())
	const file = "name: hash\narea: hashing\nquestion: compare\ntarget: {}\nbaseline: {table: wide}\n" +
		"treatments: [{table: narrow}]\nbudget: [%s]\n"
	wall, spaced, unitless, aimless := collisions, collisions, collisions, collisions
	wall.Name, spaced.Name, unitless.Unit, aimless.Better = "wall", "two words", "furlongs", ""
	for _, c := range []struct {
		budget string
		has    []area.Quantity
		want   string
	}{
		{"insert.collisions <= 50%", []area.Quantity{collisions}, "x.yaml  ok"},
		{"insert.collisions <= 3ms", []area.Quantity{collisions}, "collisions is measured"},
		{"insert.collision <= 50%", []area.Quantity{collisions}, `did you mean "collisions"`},
		{"insert.collisions <= 50%", nil, "this area does not measure collisions"},
		{"insert.wall <= 1s", []area.Quantity{wall}, "the name of the quantity wall is taken"},
		{"insert.wall <= 1s", []area.Quantity{collisions, collisions}, "the name of the quantity collisions is taken"},
		{"insert.wall <= 1s", []area.Quantity{spaced}, `"two words" is no name of a quantity`},
		{"insert.wall <= 1s", []area.Quantity{unitless}, `the quantity collisions has the unknown unit "furlongs"`},
		{"insert.wall <= 1s", []area.Quantity{aimless}, "want lower or higher"},
	} {
		if err := os.WriteFile("x.yaml", fmt.Appendf(nil, file, c.budget), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, out := runWith(t, []area.Area{hashing{c.has}}, "validate", "x.yaml"); !strings.Contains(out, c.want) {
			t.Errorf("%s with %v: want %q in\n%s", c.budget, c.has, c.want, out)
		}
	}
}
