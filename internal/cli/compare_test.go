package cli

import (
	"errors"
	"strings"
	"testing"

	"tare/area"
)

// knowing is an area that knows policies, and takes them or cannot compare them.
type knowing struct {
	hashing
	takes bool
	why   error
}

func (k knowing) Parts() area.Parts {
	return area.Parts{ComparePolicies: func([]string) (x area.Composed, ok bool, err error) { return x, k.takes, k.why }}
}

// TestComparePoliciesSaysWhy: where an area knows what a folder holds, its reason is given, and otherwise which areas
// there are.
func TestComparePoliciesSaysWhy(t *testing.T) {
	why := area.Usage("x holds no policy: left aside is %w", errors.New("DeletingPolicy d"))
	for want, of := range map[string]error{
		"x holds no policy: left aside is DeletingPolicy d": why,
		"no policies that this tare can compare":            nil,
	} {
		code, out := runWith(t, []area.Area{knowing{}, knowing{why: of}}, "compare", "--policies", t.TempDir())
		if code != 2 || !strings.Contains(out, want) || strings.Contains(out, "it was built with") != (of == nil) {
			t.Errorf("%d: %s; want %q", code, out, want)
		}
	}
}

// TestComparePoliciesOfSeveralAreas: what two areas take is refused, whatever one says of it: a run would compare the
// policies of the other one alone. What the first only knows is left to the one that takes it.
func TestComparePoliciesOfSeveralAreas(t *testing.T) {
	one, wrong := knowing{takes: true}, knowing{takes: true, why: area.Usage("line 3: broken")}
	knows := knowing{why: area.Usage("x.rego: write an experiment file")}
	const both = "these are policies of hashing and hashing"
	for _, c := range []struct {
		areas []area.Area
		want  string
	}{
		{[]area.Area{one, one}, both},
		{[]area.Area{wrong, one}, both},
		{[]area.Area{one, wrong}, both},
		{[]area.Area{knows, wrong}, "line 3: broken"},
		{[]area.Area{wrong, knows}, "line 3: broken"},
		{[]area.Area{knows, knowing{}}, "write an experiment file"},
	} {
		code, out := runWith(t, c.areas, "compare", "--policies", t.TempDir())
		if code != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%v: %d: %s; want %q", c.areas, code, out, c.want)
		}
	}
}
