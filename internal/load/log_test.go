package load

import (
	"slices"
	"testing"
	"time"
)

// copied hides that calls are in memory.
type copied struct{ Log }

// TestCallsDue: a log yields the calls that were due in a time, its end excluded, and stops when nobody wants more.
func TestCallsDue(t *testing.T) {
	all := Calls{{Intended: 1}, {Intended: 3, Conn: 1}, {Intended: 3, Conn: 2}, {Intended: 7}}
	for _, c := range []struct {
		from, to time.Duration
		want     Calls
	}{
		{0, 8, all}, {3, 7, all[1:3]}, {2, 8, all[1:]}, {4, 7, nil}, {7, 3, nil},
	} {
		var got Calls
		for x := range all.Due(c.from, c.to) {
			got = append(got, *x)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("due in [%d, %d): %v, want %v", c.from, c.to, got, c.want)
		}
	}
	for x := range all.Due(0, 8) {
		if x.Intended > 1 {
			t.Fatal("it goes on after a break")
		}
		break
	}
	if got := CallsOf(copied{all}); !slices.Equal(got, all) {
		t.Errorf("copied %v, want %v", got, all)
	}
	if &CallsOf(all)[0] != &all[0] || CallsOf(nil) != nil {
		t.Error("calls in memory are copied, or there are calls of no log")
	}
}
