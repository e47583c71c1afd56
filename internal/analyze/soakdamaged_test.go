package analyze

import (
	"os"
	"path/filepath"
	"testing"

	"tare/internal/record"

	"tare/rigs/hosttest"
)

// smallSoak is the record that the fuzzing of damaged soaks starts from.
func smallSoak(t *testing.T, dir string) (folder string, journal []byte) {
	folder = endurance{
		warm: 4, measured: 60, rate: 2, restarts: []float64{31}, outage: [2]float64{30, 34},
		budget: []string{
			"rss drift <= 1MiB/h", "error <= 5%", "deny.response.p50 <= 50ms", "cpu <= 10ms", "goodput >= 1/s", "rss <= 1GiB",
		},
		answers: func(map[string]uint64) record.Answers { return record.Answers{After: map[string]float64{"deny": 3}} },
	}.write(t, dir)
	b, err := os.ReadFile(filepath.Join(folder, record.JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	return folder, b
}

// damaged analyzes a record with another journal.
func damaged(t *testing.T, folder string, journal []byte) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(folder)), os.WriteFile(filepath.Join(dir, record.JournalFile), journal, 0o600))
	survives(t, dir)
	if r, err := record.Open(dir); err == nil {
		Windows(r, "")
	}
}

// TestDamagedSoaks: seeded damage to every part of the journal.
func TestDamagedSoaks(t *testing.T) {
	hosttest.SkipIfShort(t)
	folder, journal := smallSoak(t, t.TempDir())
	for seed := range uint64(60) {
		damaged(t, folder, mutated(journal, seed))
	}
}

// FuzzDamagedSoaks: whatever stands in the journal, there is a report or an error.
func FuzzDamagedSoaks(f *testing.F) {
	folder, journal := smallSoak(&testing.T{}, f.TempDir())
	f.Add(journal)
	for seed := range uint64(4) {
		f.Add(mutated(journal, seed))
	}
	f.Fuzz(func(t *testing.T, journal []byte) { damaged(t, folder, journal) })
}
