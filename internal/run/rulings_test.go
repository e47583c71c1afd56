package run

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/record"
)

// deciding is a target whose controls decide about requests once all treatments are prepared.
type deciding struct {
	area.Target
	prepared []string
}

func (d *deciding) Prepare(_ context.Context, t design.Treatment, _ area.Journal) error {
	d.prepared = append(d.prepared, t.ID)
	return nil
}

func (d *deciding) Can() area.Can {
	return area.Can{Rulings: func(context.Context) (map[string]area.Rulings, error) {
		if !slices.Equal(d.prepared, []string{"main", "pr"}) {
			return nil, errors.New("not all are prepared")
		}
		return map[string]area.Rulings{
			"main": {Of: []area.Ruling{{Request: "a", Refused: true}, {Request: "b", Undecided: true}}},
			"pr": {
				Of:      []area.Ruling{{Request: "a", Known: true, Changes: []string{"x = 1"}}, {Request: "b"}},
				Unasked: []string{"namespaces differ"},
			},
		}, nil
	}}
}

// TestRulingsComeWhenAllArePrepared: what is decided differently can only be asked again then.
func TestRulingsComeWhenAllArePrepared(t *testing.T) {
	w, err := record.Create(t.TempDir(), record.Header{
		Area: "toy", Question: design.Compare, Experiment: record.Experiment{Name: "x"}, Started: time.Unix(0, 0),
	}, nil, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	target := &deciding{}
	x := &Stage{Request: Request{
		Treatments: []design.Treatment{{ID: "main", Baseline: true}, {ID: "pr"}}, Writer: w,
		Env: area.Env{Clock: clock.System{}},
	}, Target: target, journal: journal{to: w}}
	for _, tr := range x.Treatments {
		err = errors.Join(err, x.prepare(t.Context(), tr))
	}
	if err := errors.Join(err, x.rule(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	rec, err := record.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Prepare{
		{Treatment: "main"},
		{Treatment: "pr"},
		{Treatment: "main", Refused: []string{"a"}, Undecided: []string{"b"}},
		{
			Treatment: "pr", Permitted: []string{"a", "b"}, Changed: map[string][]string{"a": {"x = 1"}},
			Unasked: []string{"namespaces differ"},
		},
	}
	if d := cmp.Diff(want, rec.Prepared, cmpopts.IgnoreFields(record.Prepare{}, "Seconds")); d != "" {
		t.Errorf("prepared (-want +got):\n%s", d)
	}
}
