package imagepull

import (
	"fmt"
	"slices"
	"time"

	"tare/internal/design"
	"tare/internal/unit"
)

// The times that a forecast assumes, as measured with Kubernetes v1.36.3 on ext4 with 30,000 and 100,000 records of one
// secret. Writing a record took 0.3 ms to 1.2 ms, finding and decoding it in a later process 0.1 ms to 0.2 ms, and
// reading it by upstream 30 µs to 130 µs.
const (
	usualStart = 200 * time.Millisecond // of a process
	writing    = 500 * time.Microsecond // for a record, at the start of the run
	finding    = 150 * time.Microsecond // for a record, in each block
	reading    = 50 * time.Microsecond  // for a record, when upstream reads all of them
)

// starts estimates the time of the treatments besides their batches. Each starts a process, which takes so long, once
// to write its records and in each block to find them. It includes operations that read all records, which take longer
// than a span.
func (s *Spec) starts(treatments []design.Treatment, took time.Duration, source string) (once, block time.Duration,
	counts string,
) {
	batches := 0
	for _, b := range s.Batches() {
		if slices.Contains([]string{opRestart, opPrune, opCheckCold}, b.Operation) {
			batches += b.Rounds + 1
		}
	}
	for _, t := range treatments {
		once, block = once+took, block+took
		p, err := s.plan(t)
		if err != nil || p.accessor == disabled {
			continue // it writes none
		}
		share := float64(p.records) * float64(recordBytes+secretBytes*p.secrets) / (recordBytes + secretBytes)
		once += time.Duration(share * float64(writing))
		block += time.Duration(share * (float64(finding) + float64(batches)*float64(reading)))
	}
	counts = fmt.Sprintf("each process takes %s to start and to end, %s: %s at the beginning and in each block; "+
		"it is assumed that a record takes %s to write and %s to find again",
		took.Round(time.Millisecond), source, unit.Count(len(treatments), "process"), writing, finding)
	if batches > 0 {
		counts += fmt.Sprintf(", and %s wherever a batch begins with or consists of reading all", reading)
	}
	return once, block, counts
}
