package areatest

import (
	"errors"
	"testing"

	"tare/area"
)

func TestJournal(t *testing.T) {
	var j Journal
	folder, process := area.Change{Kind: "folder", ID: "1"}, area.Change{Kind: "process", ID: "1"}
	for _, c := range []area.Change{folder, process} {
		if err := j.Intend(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Intend(folder); err == nil {
		t.Error("a pending change was journaled twice")
	}
	if got := j.Pending(); len(got) != 2 || got[0].Kind != "process" || got[1].Kind != "folder" {
		t.Errorf("pending are %v, want the process and then the folder", got)
	}
	if err := j.Undone(folder); err != nil {
		t.Fatal(err)
	}
	if err := j.Undone(folder); err == nil {
		t.Error("a change was undone twice")
	}
	if err := j.Intend(folder); err != nil {
		t.Errorf("a change that was undone cannot be journaled again: %v", err)
	}
	if all, pending := j.Changes(), j.Pending(); len(all) != 3 || len(pending) != 2 || pending[0].Kind != "folder" {
		t.Errorf("all changes are %v, want 3; pending are %v, want the folder and then the process", all, pending)
	}
	full := errors.New("disk full")
	j.Deny = func(area.Change) error { return full }
	if err := j.Intend(area.Change{Kind: "folder", ID: "2"}); !errors.Is(err, full) || len(j.Changes()) != 3 {
		t.Errorf("a denied change: %v, %d changes; want %v, 3", err, len(j.Changes()), full)
	}
}
