package report

import (
	"slices"
	"testing"
)

// TestTreatmentsAreCalledProved only if there was a proof: where nothing that must be refused was asked, the table says
// what was seen.
func TestTreatmentsAreCalledProved(t *testing.T) {
	const said = "the endpoint answers as expected; nothing that must be refused was asked"
	all := treatments(&Report{Treatments: []Treatment{
		{ID: "a", Verified: true}, {ID: "b", Unproved: said}, {ID: "c", NotInForce: "it permits everything"},
	}})
	last := all.table[len(all.table)-1]
	if want := []string{"✓ verified", "? " + said, "✗ not verified"}; !slices.Equal(last.cells, want) {
		t.Errorf("%q, want %q", last.cells, want)
	}
}
