package proc_test

import (
	"slices"
	"testing"

	"tare/internal/proc"
)

func TestPin(t *testing.T) {
	before, err := proc.Allowed()
	if err != nil || len(before) == 0 {
		t.Fatalf("allowed: %v, %v", before, err)
	}
	defer func() {
		if err := proc.Pin(before); err != nil {
			t.Error(err)
		}
	}()
	if err := proc.Pin(before[:1]); err != nil {
		t.Fatal(err)
	}
	seen := make(chan []int)
	for range 8 { // on whatever thread
		go func() {
			got, _ := proc.Allowed()
			seen <- got
		}()
	}
	for range 8 {
		if got := <-seen; !slices.Equal(got, before[:1]) {
			t.Errorf("a thread may run on %v, want %v", got, before[:1])
		}
	}
	if err := proc.Pin([]int{1000}); err == nil {
		t.Error("pinned to a processor that does not exist")
	}
}
