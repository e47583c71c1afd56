package design

import (
	"slices"
	"testing"
)

func TestLooks(t *testing.T) {
	for blocks, want := range map[int][]int{
		0: nil, 4: {4}, 10: {10}, 15: {10, 15}, 40: {10, 20, 40}, 160: {10, 20, 40, 80, 160}, 500: {10, 20, 40, 80, 500},
	} {
		if got := Looks(blocks); !slices.Equal(got, want) {
			t.Errorf("looks of %d blocks: %v, want %v", blocks, got, want)
		}
	}
	for blocks, want := range map[int]int{1: 10, 10: 10, 11: 20, 160: 160, 161: 0} {
		if got := NextLook(blocks); got != want {
			t.Errorf("the next look from %d blocks is %d, want %d", blocks, got, want)
		}
	}
}

func TestArms(t *testing.T) {
	arms := Arms([]Treatment{{ID: "a"}, {ID: "b", Baseline: true, Levels: map[string]string{"mode": "off"}}, {ID: "c"}})
	last := arms[len(arms)-1]
	if len(arms) != 4 || last.ID != AAArm || last.Control != AA || last.Of != "b" || last.Levels["mode"] != "off" ||
		last.Baseline {
		t.Errorf("the A/A arm is %+v", last)
	}
	if of := Arms([]Treatment{{ID: "a"}, {ID: "b"}})[2].Of; of != "a" {
		t.Errorf("without a baseline the A/A arm repeats %q, want the first treatment", of)
	}
	if Arms(nil) != nil {
		t.Error("an arm of nothing")
	}
}
