package record

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/internal/load"
	"tare/internal/metric"
)

// TestEachCount: the cells are those of the library.
func TestEachCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, lowest := range []int64{1, 2, 1000} {
		h := hdrhistogram.New(lowest, 1<<50, digits)
		for range 3000 {
			if err := h.RecordValue(rng.Int64N(1 << (1 + rng.IntN(49)))); err != nil {
				t.Fatal(err)
			}
		}
		type cell struct {
			Value int64
			N     uint64
		}
		var want, got []cell
		for _, b := range h.Distribution() {
			if b.Count > 0 {
				want = append(want, cell{b.From + (b.To-b.From)/2, uint64(b.Count)})
			}
		}
		eachCount(h.Export(), func(v int64, n uint64) { got = append(got, cell{v, n}) })
		if d := cmp.Diff(want, got); d != "" || len(got) < 1000 {
			t.Errorf("lowest %d, %d cells (-want +got):\n%.400s", lowest, len(got), d)
		}
	}
}

// TestAddSlice: a slice is not changed later, has no spare capacity, and shares its names with the one before.
func TestAddSlice(t *testing.T) {
	one := func() Slice {
		x := Slice{
			Treatment: strings.Clone("a"), Operations: make([]SliceOperation, 0, 8),
			Samples: make([]metric.Sample, 0, 32),
		}
		x.Operations = append(x.Operations, SliceOperation{
			Operation: strings.Clone("deny"),
			Outcomes:  make([]SliceOutcome, 1, 4),
		})
		x.Operations[0].Outcomes[0] = SliceOutcome{
			Outcome: load.Wrong, Count: 2,
			Causes: append(make([]load.CauseCount, 0, 4), load.CauseCount{Status: 200, Count: 2}),
		}
		x.Samples = append(x.Samples, metric.Sample{
			Subject: strings.Clone("pdp"), Metric: strings.Clone("gc_count"),
			Part: strings.Clone("young"), Value: 3,
		})
		return x
	}
	var trial Trial
	for range 2 {
		trial.addSlice(one())
	}
	trial.addSlice(Slice{Treatment: "b", Samples: []metric.Sample{{Subject: "other"}, {Subject: "more"}}})
	if d := cmp.Diff([]Slice{
		one(), one(),
		{Treatment: "b", Samples: []metric.Sample{{Subject: "other"}, {Subject: "more"}}},
	}, trial.Slices); d != "" {
		t.Error(d)
	}
	x, y := &trial.Slices[0], &trial.Slices[1]
	if cap(y.Operations) != 1 || cap(y.Samples) != 1 || cap(y.Operations[0].Outcomes) != 1 ||
		cap(y.Operations[0].Outcomes[0].Causes) != 1 {
		t.Errorf("there is room to grow: %d, %d", cap(y.Operations), cap(y.Samples))
	}
	for name, pair := range map[string][2]string{
		"operation": {x.Operations[0].Operation, y.Operations[0].Operation},
		"part":      {x.Samples[0].Part, y.Samples[0].Part},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("the name of the %s is kept twice", name)
		}
	}
}
