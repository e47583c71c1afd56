package driver

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/load"
	"tare/internal/stat"
	"tare/internal/unit"
)

// tally keeps the costs of one operation's longest batches: a call costs more in the short batches that calibrate the
// length.
type tally struct {
	calls  int
	values map[string][]float64 // by metric, a call
	passed []float64            // seconds that a request took, by tare's clock
}

// add adds a batch.
func (t *tally) add(calls int, passed float64, samples []load.BatchSample) {
	switch {
	case calls < t.calls:
		return
	case calls > t.calls || t.values == nil:
		*t = tally{calls: calls, values: map[string][]float64{}}
	}
	t.passed = append(t.passed, passed)
	for _, s := range samples {
		t.values[s.Metric] = append(t.values[s.Metric], s.Value)
	}
}

// stopwatch returns the note that times are tare's own, around a request, and how much of them is the request itself.
// asking are the seconds that requests of no calls took.
func (t *tally) stopwatch(name string, asking []float64) string {
	text := fmt.Sprintf("%s: the program does not count wall, so that is tare's stopwatch around each request", name)
	if len(asking) == 0 {
		return text
	}
	ask, batch := stat.Median(asking), stat.Median(t.passed)
	return fmt.Sprintf("%s; asking alone takes %s, which is %s of a batch of %d calls", text, unit.Seconds(ask),
		unit.Share(ask/batch), t.calls)
}

// joinWords joins words as in a sentence: "a, b and c".
func joinWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(slices.Clone(words[:last]), ", ") + " and " + words[last]
}
