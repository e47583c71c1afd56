package run

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/load"
)

// refuser has a mix, and a request that must be refused.
type refuser struct{ area.Target }

func (refuser) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "permit", Weight: 1}, {Name: "other", Weight: 1}, {Name: "deny", Weight: 1}}, nil
}

func (refuser) Refusals(_ design.Treatment, mix []string) ([]load.Operation, error) {
	if slices.Contains(mix, "deny") {
		return nil, nil
	}
	return []load.Operation{{Name: "deny", Weight: 1}}, nil
}

// TestSoaksAskWhatMustBeRefused: whatever the file's mix leaves out, a hundredth of the mix must be refused; other
// questions have the mix as it is.
func TestSoaksAskWhatMustBeRefused(t *testing.T) {
	for _, c := range []struct {
		name     string
		question design.Question
		weights  map[string]int
		want     map[string]int
	}{
		{
			"left out", design.Soak,
			map[string]int{"permit": 3, "other": 2},
			map[string]int{"permit": 300, "other": 200, "deny": 5},
		},
		{"named", design.Soak, map[string]int{"permit": 3, "deny": 1}, map[string]int{"permit": 3, "deny": 1}},
		{"the target's mix", design.Soak, nil, map[string]int{"permit": 1, "other": 1, "deny": 1}},
		{"another question", design.Compare, map[string]int{"permit": 3}, map[string]int{"permit": 3}},
	} {
		x := &Stage{Request: Request{Question: c.question, Load: Load{Weights: c.weights}}, Target: refuser{}}
		ops, err := x.Operations(design.Treatment{ID: "default"})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, op := range ops {
			got[op.Name] = op.Weight
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
