package analyze

import (
	"testing"

	"tare/internal/record"
)

// TestOnlyWholeBlocksCountAsRenewed: where one treatment kept its processes, the block compares with old ones.
func TestOnlyWholeBlocksCountAsRenewed(t *testing.T) {
	t.Parallel()
	trial := func(renewed bool) *record.Trial {
		return &record.Trial{TrialBegin: record.TrialBegin{Renewed: renewed}}
	}
	for _, c := range []struct{ a, b, want bool }{
		{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false},
	} {
		if got := renewed(map[string]*record.Trial{"a": trial(c.a), "b": trial(c.b)}); got != c.want {
			t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
