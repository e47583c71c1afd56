//go:build linux

package run

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/record"
)

// A world is what changes have made, by ID: true while it stands.
type world map[string]bool

// standing are the IDs of what stands.
func (w world) standing() (out []string) {
	for id, stands := range w {
		if stands {
			out = append(out, id)
		}
	}
	return out
}

// nested makes three changes, each of which needs the one before, and undoes them in the opposite order, as a target
// does: an error ends the making, and never the undoing.
func nested(j area.Journal, w world, undo bool) {
	var made []area.Change
	for i := range 3 {
		c := area.Change{Area: "toy", Kind: "folder", ID: fmt.Sprint(i), Data: map[string]string{"path": "/nowhere"}}
		if j.Intend(c) != nil {
			break
		}
		w[c.ID] = true
		made = append(made, c)
	}
	for i := len(made) - 1; undo && i >= 0; i-- {
		w[made[i].ID] = false
		_ = j.Undone(made[i])
	}
}

// limited runs do while no file of this process can grow beyond size, as on a disk that is full there.
func limited(t *testing.T, size int64, do func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	defer signal.Reset(syscall.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(size), Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// TestDiskFullAnywhere: wherever in the journal the disk is full, a run that goes on undoes everything, and says so if
// its record cannot; of a run that was killed there, the record names all that it made. Once there is room, the record
// takes what was undone.
func TestDiskFullAnywhere(t *testing.T) {
	key, err := record.LoadKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	start := func() (*record.Writer, int64) {
		w, err := record.Create(t.TempDir(), record.Header{
			Key: key, Area: "toy", Question: design.Compare, Experiment: record.Experiment{Name: "x"},
			Started: time.Unix(0, 0),
		}, nil, clock.System{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(w.Dir(), record.JournalFile))
		if err != nil {
			t.Fatal(err)
		}
		return w, info.Size()
	}
	open := func(dir string) *record.Record {
		rec, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	whole, begin := start()
	nested(whole, world{}, true)
	_ = whole.Close()
	text, err := os.ReadFile(filepath.Join(whole.Dir(), record.JournalFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := text[begin:]
	if n := bytes.Count(lines, []byte("\n")); n != 6 {
		t.Fatalf("six changes take %d lines", n)
	}
	for room := range int64(len(lines)) {
		near := lines[max(0, room-3):min(int64(len(lines)), room+4)] // times differ in how many digits they have
		if room%17 != 0 && !bytes.Contains(near, []byte("\n")) {
			continue // a sync takes milliseconds
		}
		for _, undo := range []bool{true, false} {
			w, begin := start()
			j, made := &journal{to: w}, world{}
			limited(t, begin+room, func() { nested(j, made, undo) })
			_ = w.Close()
			rec := open(w.Dir())
			if stands := made.standing(); undo && len(stands) != 0 {
				t.Errorf("room for %d bytes: %v stands", room, stands)
			}
			pending := rec.Pending()
			known := map[string]bool{}
			for _, c := range pending {
				known[c.ID] = true
				if _, wasMade := made[c.ID]; undo && wasMade && j.lost() == nil {
					t.Errorf("room for %d bytes: %s was undone, the record does not say so, and neither does the run", room, c.ID)
				}
			}
			for _, id := range made.standing() {
				if !known[id] {
					t.Errorf("room for %d bytes: %s stands, and the record does not know it", room, id)
				}
			}
			if err := rec.MarkUndone(key, pending, clock.System{}); err != nil {
				t.Errorf("room for %d bytes, and then enough: %v", room, err)
			}
			if pending := open(w.Dir()).Pending(); len(pending) != 0 {
				t.Errorf("room for %d bytes, and then enough: still pending is %v", room, pending)
			}
		}
	}
}
