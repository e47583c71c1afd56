package record

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tare/area"
	"tare/internal/clock"
)

func TestSealsHoldForTheRunAndItsKeyOnly(t *testing.T) {
	key, other := Key(bytes.Repeat([]byte{1}, keySize)), Key(bytes.Repeat([]byte{2}, keySize))
	change := area.Change{Area: "tool", Kind: "folder", ID: "x", Data: map[string]string{"path": "/tmp/x"}}
	journal := func(id string) string {
		change := change
		change.ID = id
		h := testHeader()
		h.Key = key
		w, err := Create(t.TempDir(), h, []byte("name: x\n"), clock.System{})
		must(t, err)
		must(t, w.Intend(change), w.Close())
		return w.Dir()
	}
	dir := journal("x")
	r, err := Open(dir)
	must(t, err)
	if !r.Genuine(key) || !r.Sealed(key) {
		t.Errorf("its own: genuine %v, sealed %v", r.Genuine(key), r.Sealed(key))
	}
	for name, k := range map[string]Key{"another key": other, "none": nil} {
		if r.Genuine(k) || r.Sealed(k) {
			t.Errorf("%s: genuine %v, sealed %v", name, r.Genuine(k), r.Sealed(k))
		}
	}
	// What is added later carries the seal as well, and only with the key.
	for k, want := range map[*Key]bool{&key: true, &other: false} {
		r, err := Open(journal("x"))
		must(t, err)
		w, err := r.Continue(*k, clock.System{})
		must(t, err)
		again := change
		again.ID = "y"
		must(t, w.Intend(again), w.Close())
		if r, err = Open(r.Dir); err != nil || r.Sealed(key) != want {
			t.Errorf("sealed %v, %v; want %v", r.Sealed(key), err, want)
		}
	}
	// A sealed line of another run of the same user is not valid in this one.
	if r, err = Open(journal("z")); err != nil || len(r.Changes) != 1 || !r.Sealed(key) {
		t.Fatal(err)
	}
	moved := r.seals[0]
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	r.seals = append(r.seals, moved)
	if r.Sealed(key) {
		t.Error("a line of another run is taken")
	}
}

// TestRecordGoesOnAfterItsLastLineOnly: a record that was read before somebody wrote into its journal is not continued,
// which would break its seals; read again it is, and they hold.
func TestRecordGoesOnAfterItsLastLineOnly(t *testing.T) {
	h := testHeader()
	h.Key = Key(bytes.Repeat([]byte{1}, keySize))
	w, err := Create(t.TempDir(), h, nil, clock.System{})
	must(t, err)
	a, b := area.Change{Area: "tool", Kind: "folder", ID: "a"}, area.Change{Area: "tool", Kind: "folder", ID: "b"}
	must(t, w.Intend(a), w.Close())
	stale, err := Open(w.Dir())
	must(t, err)
	undone, err := OpenOwn(w.Dir())
	must(t, err, undone.MarkUndone(h.Key, []area.Change{a}, clock.System{}))
	if _, err := stale.Continue(h.Key, clock.System{}); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("continued from before its last line: %v", err)
	}
	r, err := Open(w.Dir())
	must(t, err)
	w, err = r.Continue(h.Key, clock.System{})
	must(t, err, w.Intend(b), w.Close())
	if r, err = Open(w.Dir()); err != nil || !r.Sealed(h.Key) || len(r.Pending()) != 1 {
		t.Errorf("sealed %v with %d changes pending, %v", r.Sealed(h.Key), len(r.Pending()), err)
	}
}

// TestCutJournalIsNotSealed: a line that was removed, repeated or exchanged shows, but for lines at the end: without
// those the run looks as if it had been killed before.
func TestCutJournalIsNotSealed(t *testing.T) {
	h := testHeader()
	h.Key = Key(bytes.Repeat([]byte{1}, keySize))
	w, err := Create(t.TempDir(), h, nil, clock.System{})
	must(t, err)
	a, b := area.Change{Area: "tool", Kind: "folder", ID: "a"}, area.Change{Area: "tool", Kind: "folder", ID: "b"}
	must(t, w.Intend(a), w.Undone(a), w.Intend(b), w.Undone(b), w.Finish(Finish{Status: Complete}), w.Close())
	r, err := Open(w.Dir())
	must(t, err)
	must(t, r.MarkUndone(h.Key, []area.Change{a}, clock.System{}))
	path := filepath.Join(w.Dir(), JournalFile)
	text, err := os.ReadFile(path)
	must(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	sealed := func(lines []string) bool {
		must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
		r, err := Open(w.Dir())
		must(t, err)
		return r.Sealed(h.Key)
	}
	if !sealed(lines) {
		t.Fatal("the whole journal is not sealed")
	}
	for i := range lines[:len(lines)-1] {
		if !strings.Contains(lines[i], `"seal"`) || i == 0 {
			continue
		}
		cut := slices.Delete(slices.Clone(lines), i, i+1)
		isLast := !strings.Contains(strings.Join(lines[i+1:], ""), `"seal"`)
		if sealed(cut) != isLast {
			t.Errorf("without %s sealed is %v", lines[i], !isLast)
		}
		if sealed(slices.Insert(slices.Clone(lines), i, lines[i])) {
			t.Errorf("with %s twice it is sealed", lines[i])
		}
	}
	if sealed(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, `"undone"`) })) {
		t.Error("without what says that changes are undone it is sealed")
	}
}

func TestKeyIsMadeOnceAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "tare")
	keys := make([]Key, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != keySize || !bytes.Equal(k, keys[0]) {
			t.Fatalf("keys differ: %x and %x", k, keys[0])
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	path := filepath.Join(dir, "key")
	for want, spoil := range map[string]func() error{
		"other users may read it": func() error { return os.Chmod(path, 0o644) },
		"it holds 3 bytes":        func() error { return os.WriteFile(path, []byte("abc"), 0o600) },
	} {
		must(t, os.Remove(path))
		_, err := LoadKey(dir)
		must(t, err, spoil())
		if _, err := LoadKey(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
