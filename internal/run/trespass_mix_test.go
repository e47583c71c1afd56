package run

import (
	"slices"
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
)

// refusing has a mix of which one operation must be refused.
type refusing struct {
	area.Target
	mix []load.Operation
}

func (r refusing) Operations(design.Treatment) ([]load.Operation, error) { return r.mix, nil }

func (r refusing) Can() area.Can { return area.Can{Trespass: r.Trespasses} }

func (refusing) Trespasses(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "deny", Twin: "permit"}, {Name: "absent", Twin: "permit"}}, nil
}

// TestTrespassesLeaveTheMix: an operation that must be refused is a trespass, and no legitimate call besides; a search
// offers neither. A mix of trespasses alone is an error.
func TestTrespassesLeaveTheMix(t *testing.T) {
	both := []load.Operation{{Name: "permit", Weight: 1}, {Name: "deny", Weight: 1}}
	for _, c := range []struct {
		name        string
		mix         []load.Operation
		share       float64
		onlyAllowed bool
		want        string
	}{
		{"no trespasses", both, 0, false, "permit deny"},
		{"trespasses", both, 0.1, false, "permit deny/permit absent/permit"},
		{"a search", both, 0.1, true, "permit"},
		{"nothing that is allowed", both[1:], 0.1, false, "all operations of the mix must be refused"},
	} {
		x := &Stage{Request: Request{Load: Load{Trespass: c.share}}, Target: refusing{mix: slices.Clone(c.mix)}}
		x.OnlyAllowed = c.onlyAllowed
		ops, err := x.Operations(design.Treatment{ID: "default"})
		var got []string
		for _, op := range ops {
			name := op.Name
			if op.Twin != "" {
				name += "/" + op.Twin
			}
			got = append(got, name)
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if !strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}
