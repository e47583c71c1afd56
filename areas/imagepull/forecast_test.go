package imagepull

import (
	"strings"
	"testing"
	"time"

	"tare/internal/design"
)

// TestForecast: processes start once and in each block; records are written once and read in each block, if there are
// any.
func TestForecast(t *testing.T) {
	t.Parallel()
	arm := func(accessor, records string) design.Treatment {
		return design.Treatment{ID: accessor + records, Levels: map[string]string{"accessor": accessor, "records": records}}
	}
	const took = 100 * time.Millisecond
	for name, c := range map[string]struct {
		spec        Spec
		arms        []design.Treatment
		once, block time.Duration
		says        string
	}{
		"no records": {
			Spec{},
			[]design.Treatment{arm("disabled", "1000")},
			took, took,
			"each process takes 100ms to start and to end, as just now: 1 process at",
		},
		"records": {
			Spec{},
			[]design.Treatment{arm("disabled", "1000"), arm("cached", "1000")},
			2*took + 1000*writing,
			2*took + 1000*finding, ": 2 processes at the beginning",
		},
		"all of them": {
			Spec{Operations: []string{"check", "restart"}, Rounds: 3},
			[]design.Treatment{arm("cached", "1000")},
			took + 1000*writing, took + 1000*finding + 4*1000*reading, "reading all",
		},
		"many secrets": {
			Spec{Secrets: new(12)}, []design.Treatment{arm("cached", "704")}, took + (recordBytes+12*secretBytes)*writing, took +
				(recordBytes+12*secretBytes)*finding, "assumed",
		},
	} {
		once, block, counts := c.spec.starts(c.arms, took, "as just now")
		if !near(once, c.once) || !near(block, c.block) || !strings.Contains(counts, c.says) {
			t.Errorf("%s: %v and %v, %q; want %v and %v, %q", name, once, block, counts, c.once, c.block, c.says)
		}
	}
}

// near reports whether two times differ by rounding only.
func near(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }
