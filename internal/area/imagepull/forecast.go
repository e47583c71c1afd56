package imagepull

import (
	"fmt"
	"slices"
	"time"

	"tare/internal/design"
)

// What is assumed of times for a forecast, where it is not known: seen with Kubernetes v1.36.3 on ext4 with 30,000 and 100,000 records of one secret. Writing
// took 0.3 ms to 1.2 ms each, finding and decoding them again in a later process 0.1 ms to 0.2 ms, and
// having upstream read all of them 30 µs to 130 µs.
const (
	usualStart = 200 * time.Millisecond // of a process
	writing    = 500 * time.Microsecond // a record, at the beginning
	finding    = 150 * time.Microsecond // a record, in each block
	reading    = 50 * time.Microsecond  // a record, of all that are read by upstream
)

// starts foretells what the treatments take besides their batches: each starts a process that takes so long, at the beginning, where it writes its records,
// and in each block, where it finds them. What operations take that read all records is longer than a span, and is counted here too.
func (s *Spec) starts(treatments []design.Treatment, took time.Duration, source string) (once, block time.Duration, counts string) {
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
	counts = fmt.Sprintf("each of %d process(es) takes %s to start and to end, %s, at the beginning and in each block; it is assumed that a record takes %s to write and %s to find again",
		len(treatments), took.Round(time.Millisecond), source, writing, finding)
	if batches > 0 {
		counts += fmt.Sprintf(", and %s wherever a batch begins with or consists of reading all", reading)
	}
	return once, block, counts
}
