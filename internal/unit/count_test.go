package unit_test

import (
	"testing"

	"tare/internal/unit"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"1 point":            unit.Count(1, "point"),
		"0 points":           unit.Count(0, "point"),
		"2 processes":        unit.Count(2, "process"),
		"1 process":          unit.Count(1, "process"),
		"3 policies":         unit.Count(3, "policy"),
		"2 replays":          unit.Count(2, "replay"),
		"2 batches":          unit.Count(uint64(2), "batch"),
		"2 sets of keys":     unit.Count(2, "set of keys"),
		"1 set of keys":      unit.Count(1, "set of keys"),
		"4 source addresses": unit.Count(4, "source address"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
