package record

import (
	"bytes"
	"os"
	"path/filepath"
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
	if !r.Genuine(key) || len(r.Foreign(key)) != 0 {
		t.Errorf("its own: genuine %v, foreign %v", r.Genuine(key), r.Foreign(key))
	}
	for name, k := range map[string]Key{"another key": other, "none": nil} {
		if r.Genuine(k) || len(r.Foreign(k)) != 1 {
			t.Errorf("%s: genuine %v, foreign %v", name, r.Genuine(k), r.Foreign(k))
		}
	}
	// What is added later carries the seal as well, and only with the key.
	for k, want := range map[*Key]int{&key: 0, &other: 1} {
		r, err := Open(journal("x"))
		must(t, err)
		w, err := r.Continue(*k, clock.System{})
		must(t, err)
		again := change
		again.ID = "y"
		must(t, w.Intend(again), w.Close())
		if r, err = Open(r.Dir); err != nil || len(r.Foreign(key)) != want {
			t.Errorf("foreign %v, %v; want %d", r.Foreign(key), err, want)
		}
	}
	// A sealed line of another run of the same user is not valid in this one.
	if r, err = Open(journal("z")); err != nil || len(r.Changes) != 1 || len(r.Foreign(key)) != 0 {
		t.Fatal(err)
	}
	moved := r.Changes[0]
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	r.Changes = append(r.Changes, moved)
	if f := r.Foreign(key); len(f) != 1 || f[0].ID != "z" {
		t.Errorf("a line of another run is taken: %v", f)
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
