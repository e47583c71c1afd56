package analyze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/report"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

// small are the records that the fuzzing of damage starts from.
func small() map[string]experiment {
	scale := growing([]float64{1, 2, 4, 8, 16, 32}, func(n float64) float64 { return 1e-6 * n })
	scale.blocks, scale.rounds, scale.budget = 3, 3, []string{"create-pod.cpu <= 10us", "cpu <= +5%"}
	return map[string]experiment{
		"batches": {blocks: 3, rounds: 3, seed: 1, operations: []string{
			"open", "getpid",
		}, negative: []string{"getpid"}, budget: []string{"seccomp: open.cpu <= +5%", "cpu <= 1ms", "open.wall <= +1ms"}},
		"calls": {
			blocks: 3, calls: 60, seed: 1, operations: []string{"token", "other"}, cost: millisecond,
			budget: []string{
				"response.p99 <= +5%", "response <= 1ms at 1000/s", "error <= 1%", "cpu <= +1ms", "response.p90 <= +1ms",
			},
		},
		"scale": scale,
	}
}

// FuzzDamagedComparisons: whatever stands in the journal, there is a report or an error, and the report can be written
// in every form.
func FuzzDamagedComparisons(f *testing.F) {
	dirs := map[uint8]string{}
	for i, name := range []string{"batches", "calls", "scale"} {
		t := &testing.T{}
		dir := small()[name].write(t, f.TempDir())
		b, err := os.ReadFile(filepath.Join(dir, record.JournalFile))
		if err != nil {
			f.Fatal(err)
		}
		dirs[uint8(i)] = dir
		f.Add(uint8(i), b)
		far := farBlock(b) // memory must not grow with its number
		if bytes.Equal(far, b) {
			f.Fatal("the record has no third block")
		}
		f.Add(uint8(i), far)
		for seed := range uint64(4) {
			f.Add(uint8(i), mutated(b, seed))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, journal []byte) {
		defer memtest.Bound(t, 8*len(journal))() // it is reported on in every form
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(dirs[which%3])); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, record.JournalFile), journal, 0o600); err != nil {
			t.Fatal(err)
		}
		survives(t, dir)
	})
}

// A record's report, in all forms, allocates so many bytes at first and for each byte of the journal.
const (
	survivesAtFirst = 16 << 20
	survivesPerByte = 3000
)

func survives(t *testing.T, dir string) {
	t.Helper()
	before := allocated()
	defer func() {
		size := uint64(0)
		for _, name := range []string{record.JournalFile, "calls-*.bin", record.LatencyFile} {
			files, _ := filepath.Glob(filepath.Join(dir, name))
			for _, f := range files {
				if info, err := os.Stat(f); err == nil {
					size += uint64(info.Size())
				}
			}
		}
		took := allocated() - before
		if took > survivesAtFirst+survivesPerByte*size {
			t.Errorf("a record of %d bytes took %d", size, took)
		}
	}()
	r, err := record.Open(dir)
	if err != nil {
		return
	}
	rep, err := Analyze(r, Options{})
	if err != nil {
		return
	}
	var b bytes.Buffer
	if err := report.JSON(&b, rep); err != nil {
		t.Errorf("json: %v", err)
	}
	for _, encode := range report.Encoders() {
		_ = encode(&b, rep) // some forms refuse what they cannot hold; none may panic
	}
	Decide(rep)
	if ExitCode(rep) < 0 {
		t.Error("no exit code")
	}
	_, _ = blockValues(r)
	for i := range rep.Effects {
		if e := &rep.Effects[i]; e.Lo > e.Estimate || e.Hi < e.Estimate || e.Verdict == "" {
			t.Errorf("%+v", e)
		}
	}
}

// allocated are the bytes that this process has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// extremes replace numbers of a journal.
var extremes = []any{0, -1, 1e308, -1e308, 1e-320, 1 << 40, 99_000, "1", nil, []any{}, true, 3}

// mutated changes a few values, drops a few lines and repeats a few.
func mutated(journal []byte, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 3))
	var out []byte
	for line := range bytes.Lines(journal) {
		switch rng.IntN(20) {
		case 0:
			continue
		case 1:
			out = append(out, line...)
		}
		var v any
		if rng.IntN(3) == 0 && json.Unmarshal(line, &v) == nil {
			if b, err := json.Marshal(disturb(v, rng, 0)); err == nil {
				line = slices.Concat(b, []byte("\n"))
			}
		}
		out = append(out, line...)
	}
	return out
}

// disturb changes about one leaf in twelve, below the line's own fields.
func disturb(v any, rng *rand.Rand, depth int) any {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(x) {
			if depth > 0 || k == "data" {
				x[k] = disturb(x[k], rng, depth+1)
			}
		}
		return x
	case []any:
		for i := range x {
			x[i] = disturb(x[i], rng, depth+1)
		}
		return x
	}
	if rng.IntN(12) == 0 {
		return extremes[rng.IntN(len(extremes))]
	}
	return v
}

// TestDamagedComparisons: a hundred damaged journals of each kind, and torn ones, most of which still parse.
func TestDamagedComparisons(t *testing.T) {
	hosttest.SkipIfShort(t)
	for name, x := range small() {
		dir := x.write(t, t.TempDir())
		path := filepath.Join(dir, record.JournalFile)
		whole, err := os.ReadFile(path)
		must(t, err)
		for seed := range uint64(100) {
			must(t, os.WriteFile(path, mutated(whole, seed), 0o600))
			if survives(t, dir); t.Failed() {
				t.Fatalf("%s, seed %d", name, seed)
			}
		}
		for cut := len(whole); cut > 0; cut -= 1 + len(whole)/60 {
			must(t, os.WriteFile(path, whole[:cut], 0o600))
			survives(t, dir)
		}
	}
}

// farBlock gives the last block of a journal a number that is far from those of the others.
func farBlock(journal []byte) []byte {
	return bytes.ReplaceAll(journal, []byte(`"block":2,`), []byte(`"block":99000,`))
}

// TestRemarksAreBounded analyzes a record with 100,000 notes and warnings. The report keeps the first of each, and all
// changes that were not undone.
func TestRemarksAreBounded(t *testing.T) {
	r := experiment{blocks: 10}.record()
	for i := range 100_000 {
		r.Warned = append(r.Warned, record.Warning{Text: fmt.Sprint("warning ", i)})
		r.Notes = append(r.Notes, record.Note{Text: fmt.Sprint("note ", i)})
	}
	r.Changes = []record.Change{{State: record.Intended, Change: area.Change{Area: "tool", Kind: "folder", ID: "x"}}}
	rep := analyzedRecord(t, r)
	told := slices.ContainsFunc(rep.Warnings, func(s string) bool { return strings.Contains(s, "still to be undone") })
	if len(rep.Notes) > mostRemarks+10 || len(rep.Warnings) > mostRemarks+10 || !told {
		t.Errorf("%d notes, %d warnings, the last %q", len(rep.Notes), len(rep.Warnings), rep.Warnings[len(rep.Warnings)-1])
	}
}

// TestPlansWithoutTreatments: a record whose plan was lost says so.
func TestPlansWithoutTreatments(t *testing.T) {
	r := experiment{blocks: 10}.record()
	r.Plan = record.Plan{}
	rep := analyzedRecord(t, r)
	if rep.Verdict != report.Inconclusive || len(rep.Effects) > 0 || ExitCode(rep) != ExitInconclusive {
		t.Errorf("%s (%s)", rep.Verdict, rep.Reason)
	}
	r = experiment{blocks: 10, treatments: []design.Treatment{{ID: "x"}, {ID: "y"}}}.record()
	if rep = analyzedRecord(t, r); len(rep.Effects) > 0 || rep.Verdict != report.Inconclusive {
		t.Errorf("effects without a baseline: %+v, %s (%s)", rep.Effects, rep.Verdict, rep.Reason)
	}
}

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
