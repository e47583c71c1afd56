package record

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
)

func TestTornTail(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Note(Note{Text: "the last line"}), w.Close())
	path := filepath.Join(w.Dir(), JournalFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for cut := last + 1; cut < len(whole); cut++ {
		must(t, os.WriteFile(path, whole[:cut], 0o600))
		r := open(t, w.Dir())
		complete := cut == len(whole)-1 // only the line break is missing
		if got := len(r.Notes) == 1; got != complete {
			t.Fatalf("cut at %d: note read %v", cut, got)
		}
		if torn := len(r.Warnings) == 1 && strings.Contains(r.Warnings[0], "torn"); torn == complete {
			t.Fatalf("cut at %d: warnings %q", cut, r.Warnings)
		}
		if len(r.Trials) != 1 {
			t.Fatalf("cut at %d: %d trials", cut, len(r.Trials))
		}
	}
}

func TestAppendRepairsTornTail(t *testing.T) {
	for name, c := range map[string]struct {
		cut     int
		notes   int
		warning bool
	}{"torn": {7, 0, true}, "no line break": {1, 1, false}, "whole": {0, 1, false}} {
		t.Run(name, func(t *testing.T) {
			w, _ := create(t)
			must(t, w.Note(Note{Text: "the last line"}), w.Close())
			path := filepath.Join(w.Dir(), JournalFile)
			whole, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, whole[:len(whole)-c.cut], 0o600))
			again, err := appendTo(w.Dir(), clock.NewFake(epoch), resumption{ID: "ABCDEFGHIJKLMNOP"})
			must(t, err)
			must(t, again.Finish(Finish{Status: Complete}), again.Close())
			r := open(t, w.Dir())
			if len(r.Warnings) > 0 || len(r.Notes) != c.notes || r.Finish == nil || len(r.Resumed) != 1 {
				t.Errorf("reading: %q, notes %d, finish %v, resumed %d", r.Warnings, len(r.Notes), r.Finish, len(r.Resumed))
			}
			if (len(r.Warned) == 1) != c.warning {
				t.Errorf("recorded warnings %v", r.Warned)
			}
		})
	}
}

func TestDamagedMiddleLine(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Note(Note{Text: "x"}), w.Step("a", 0, "step", 1), w.Close())
	path := filepath.Join(w.Dir(), JournalFile)
	b, err := os.ReadFile(path)
	must(t, err)
	lines := strings.Split(string(b), "\n")
	lines[1] = lines[1][:20] // the trial's beginning
	lines[2] = `{"schema":"tare.record/v1","kind":"future","at":"2026-03-01T12:00:00Z","data":{"a":[1]}}`
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	r := open(t, w.Dir())
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], "record.jsonl:2 is damaged") ||
		!strings.Contains(r.Warnings[1], `"a" in block 0 is missing`) {
		t.Errorf("warnings %q", r.Warnings)
	}
	if len(r.Unknown) != 1 || r.Unknown[0].Kind != "future" {
		t.Errorf("unknown %v", r.Unknown)
	}
	if len(r.Trials) != 1 || len(r.Trials[0].Steps) != 1 {
		t.Errorf("the trial's step was lost: %+v", r.Trials)
	}
}

func TestNewerVersionIsRejected(t *testing.T) {
	w, _ := create(t)
	must(t, w.Close())
	path := filepath.Join(w.Dir(), JournalFile)
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(
		string(b)+`{"schema":"tare.record/v2","kind":"note","at":"2026-03-01T12:00:00Z"}`+"\n"), 0o600))
	_, err = Open(w.Dir())
	var newer *NewerError
	if !errors.As(err, &newer) || !strings.Contains(err.Error(), "newer tare") {
		t.Errorf("error %v", err)
	}
}

func TestNotARecord(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, JournalFile), []byte("{}\nhello\n"), 0o600))
	if _, err := Open(dir); !errors.Is(err, errNoHeader) {
		t.Errorf("no header: %v", err)
	}
}

func TestDamagedCalls(t *testing.T) {
	calls := randomCalls(3*chunkCalls, 9)
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, calls), w.Close())
	path := filepath.Join(w.Dir(), "calls-0000.bin")
	whole, err := os.ReadFile(path)
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		b := append([]byte(nil), whole[:rng.IntN(len(whole)-1)+1]...)
		if rng.IntN(2) == 0 {
			b = append([]byte(nil), whole...)
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		must(t, os.WriteFile(path, b, 0o600))
		r := open(t, w.Dir())
		got, err := r.Trials[0].Calls()
		must(t, err)
		if len(r.Warnings) != 1 || len(got)%chunkCalls != 0 || len(got) == len(calls) {
			t.Fatalf("%d bytes: %d calls, warnings %q", len(b), len(got), r.Warnings)
		}
		if !slices.Equal(calls[:len(got)], got) {
			t.Fatalf("wrong calls:\n%s", cmp.Diff(calls[:len(got)], got))
		}
	}
	must(t, os.Remove(path))
	if r := open(t, w.Dir()); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "missing") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestCallsFileOutsideTheRecord(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.put(KindCalls, callsRef{Treatment: "a", File: "../../calls-0000.bin"}),
		w.put(KindCalls, callsRef{Treatment: "a", File: "/etc/passwd"}), w.Close())
	r := open(t, w.Dir())
	if len(r.Warnings) != 2 || r.Trials[0].HasCalls() {
		t.Errorf("warnings %q, calls %v", r.Warnings, r.Trials[0].calls)
	}
}

// TestCallsFilesAreOfOneTrial: a journal that names one file many times does not read its calls as often.
func TestCallsFilesAreOfOneTrial(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, randomCalls(100, 1)))
	for range 3 {
		must(t, w.put(KindCalls, callsRef{Treatment: "a", File: "calls-0000.bin"}))
	}
	must(t, w.TrialBegin(begin("b", 0)), w.put(KindCalls, callsRef{Treatment: "b", File: "calls-0000.bin"}), w.Close())
	r := open(t, w.Dir())
	calls, err := r.Trials[0].Calls()
	must(t, err)
	if len(calls) != 100 || r.Trials[1].HasCalls() || len(r.Damaged) != 4 {
		t.Errorf("%d calls, those of the other: %v, damaged lines %v", len(calls), r.Trials[1].HasCalls(), r.Damaged)
	}
}

// TestCompressedHistogramsAreBounded: a short line could expand to any number of values by compression, which no
// measurement does.
func TestCompressedHistogramsAreBounded(t *testing.T) {
	encode := func(values int64) string {
		h := hdrhistogram.New(1, 1<<62, digits)
		for v := range values {
			must(t, h.RecordValue(v))
		}
		h.SetTag("a|0|x|ok|response")
		var b strings.Builder
		must(t, hdrhistogram.NewHistogramLogWriter(&b).OutputIntervalHistogram(h))
		return strings.TrimSpace(b.String())
	}
	if iv, err := parseInterval(encode(100)); err != nil || iv.Hist.Count() != 100 {
		t.Errorf("a hundred values: %v", err)
	}
	if _, err := parseInterval(encode(2000)); err == nil || !strings.Contains(err.Error(), "unfold") {
		t.Errorf("two thousand equally frequent values in %d bytes: %v", len(encode(2000)), err)
	}
}

// TestDamagedLinesAreCounted: a journal full of damage does not get a sentence for each line.
func TestDamagedLinesAreCounted(t *testing.T) {
	w, _ := create(t)
	must(t, w.Close())
	f, err := os.OpenFile(filepath.Join(w.Dir(), JournalFile), os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	_, err = f.WriteString(strings.Repeat("x\n", 10_000))
	must(t, err, f.Close())
	r := open(t, w.Dir())
	if len(r.Damaged) != 10_000 || len(r.Warnings) != mostWarned+1 ||
		!strings.Contains(r.Warnings[mostWarned], "9980 more lines") {
		t.Errorf("%d damaged, warnings %q", len(r.Damaged), r.Warnings)
	}
}

// TestPipesAndDevicesAreNotRead: a foreign record may have a pipe or a device in place of a file, or a file that the
// kernel shows, which must not be read forever.
func TestPipesAndDevicesAreNotRead(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"a pipe":                       func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":                     func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder":                     func(path string) error { return os.Mkdir(path, 0o700) },
		"a file that the kernel shows": func(path string) error { return os.Symlink("/proc/self/status", path) },
	} {
		w, _ := create(t)
		must(t, w.TrialBegin(begin("a", 0)), w.Calls("a", 0, randomCalls(10, 1)), w.Cells("a", 0, testCells(10)), w.Close())
		r := open(t, w.Dir())
		ended := make(chan error)
		for file, read := range map[string]func() error{
			"calls-0000.bin": func() error { _, err := r.Trials[0].Calls(); return err },
			LatencyFile:      func() error { _, err := r.Trials[0].Histograms(func(*Interval) {}); return err },
			ExperimentFile:   func() error { _, err := r.File(); return err },
			JournalFile:      func() error { _, err := Open(r.Dir); return err },
		} {
			path := filepath.Join(r.Dir, file)
			must(t, os.RemoveAll(path), place(path))
			go func() { ended <- read() }()
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), "is "+name) {
					t.Errorf("%s in place of %s: %v", name, file, err)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s in place of %s is read forever", name, file)
			}
		}
	}
}

func TestDamagedHistogram(t *testing.T) {
	w, _ := create(t)
	must(t, w.TrialBegin(begin("a", 0)), w.Cells("a", 0, testCells(100)),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	path := filepath.Join(w.Dir(), LatencyFile)
	b, err := os.ReadFile(path)
	must(t, err)
	b[len(b)-40] = '!'
	must(t, os.WriteFile(path, b, 0o600))
	n := 0
	damaged, err := open(t, w.Dir()).Trials[0].Histograms(func(*Interval) { n++ })
	must(t, err)
	if damaged != 1 || n != 1 {
		t.Errorf("damaged %d, read %d, want 1 and 1", damaged, n)
	}
	must(t, os.Truncate(path, int64(len(b)/2)))
	if damaged, err := open(t, w.Dir()).Trials[0].Histograms(func(*Interval) {}); err != nil || damaged == 0 {
		t.Errorf("truncated: damaged %d, %v", damaged, err)
	}
}
