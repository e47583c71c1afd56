package cli

import (
	"errors"
	"strings"
	"testing"

	"tare/area"
)

// knowing is an area that knows policies and cannot compare them.
type knowing struct {
	hashing
	why error
}

func (k knowing) Parts() area.Parts {
	return area.Parts{ComparePolicies: func([]string) (x area.Composed, ok bool, err error) { return x, false, k.why }}
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
