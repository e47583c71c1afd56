package record

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
)

// written returns the only trial of a record that holds calls, read back.
func written(t *testing.T, calls []load.Call) *Trial {
	t.Helper()
	w, err := Create(t.TempDir(), Header{Experiment: Experiment{Name: "log"}}, nil, clock.NewFake(epoch))
	must(t, err)
	trial := design.Trial{Treatment: "a"}
	must(t, w.Plan(Plan{Trials: []design.Trial{trial}}), w.TrialBegin(TrialBegin{Trial: trial}), w.Calls("a", 0, calls),
		w.TrialEnd(TrialEnd{Treatment: "a", Status: Complete}), w.Close())
	r, err := Open(w.Dir())
	must(t, err)
	return r.Trials[0]
}

// TestLogYieldsWhatIsDue: a log yields the same calls from files as from memory, also when it has to forget chunks,
// and holds no more chunks than it may.
func TestLogYieldsWhatIsDue(t *testing.T) {
	want := load.Calls(randomCalls((keptChunks+3)*chunkCalls+100, 5))
	log := written(t, want).Log()
	if log.Len() != len(want) {
		t.Fatalf("%d calls, want %d", log.Len(), len(want))
	}
	end := want[len(want)-1].Intended
	for _, part := range [][2]float64{{0, 2}, {0, 0}, {0.1, 0.1001}, {0.5, 0.75}, {0.9, 2}, {0.3, 0.2}, {0, 0.01}} {
		from, to := time.Duration(part[0]*float64(end)), time.Duration(part[1]*float64(end))
		var got []load.Call
		for c := range log.Due(from, to) {
			got = append(got, *c)
		}
		var due []load.Call
		for c := range want.Due(from, to) {
			due = append(due, *c)
		}
		if !slices.Equal(got, due) {
			t.Errorf("%d calls are due in [%s, %s), want %d", len(got), from, to, len(due))
		}
		if len(log.kept) > keptChunks {
			t.Errorf("%d chunks are in memory", len(log.kept))
		}
	}
	if err := log.Err(); err != nil {
		t.Error(err)
	}
}

// TestLogReadWhileItIsRead: calls stay what they are while they are yielded, though a reading within reads so many
// others that these are forgotten.
func TestLogReadWhileItIsRead(t *testing.T) {
	want := load.Calls(randomCalls((keptChunks+3)*chunkCalls, 7))
	log := written(t, want).Log()
	i := 0
	for c := range log.Due(0, math.MaxInt64) {
		if *c != want[i] {
			t.Fatalf("call %d is %v, want %v", i, *c, want[i])
		}
		if i%(chunkCalls*keptChunks/2) == 100 {
			n := 0
			for range log.Due(0, math.MaxInt64) {
				n++
			}
			if n != len(want) || *c != want[i] {
				t.Fatalf("after a reading within of %d calls, want %d, call %d is %v, want %v", n, len(want), i, *c, want[i])
			}
		}
		i++
	}
	if i != len(want) || log.Err() != nil {
		t.Errorf("%d calls, want %d; error %v", i, len(want), log.Err())
	}
}

// TestLogOfAnUnreadableFile: a file that was replaced by something that is no file ends the calls, with an error.
func TestLogOfAnUnreadableFile(t *testing.T) {
	trial := written(t, randomCalls(100, 6))
	log := trial.Log()
	path := filepath.Join(trial.dir, trial.calls[0])
	must(t, os.Remove(path), os.Mkdir(path, 0o700))
	for range log.Due(0, time.Hour) {
		t.Fatal("it yields a call")
	}
	if log.Err() == nil {
		t.Error("no error")
	}
}
