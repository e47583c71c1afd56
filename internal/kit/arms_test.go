package kit

import (
	"context"
	"errors"
	"testing"

	"tare/internal/design"
)

// A testArm may not be ready, and fails to close.
type testArm struct {
	index  int
	ready  bool
	closed int
	err    error
}

func (h *testArm) Ready() bool { return h.ready }

func (h *testArm) Close(context.Context) error {
	h.closed++
	return h.err
}

func TestArms(t *testing.T) {
	var arms Arms[*testArm]
	create := func(id string, ready bool, err error) *testArm {
		h, e := arms.Add(design.Treatment{ID: id},
			func(index int) *testArm { return &testArm{index: index, ready: ready, err: err} })
		if e != nil {
			t.Fatal(e)
		}
		return h
	}
	broken := errors.New("cannot be closed")
	b, a, c := create("b", true, nil), create("a", true, broken), create("c", false, nil)
	if b.index != 0 || a.index != 1 || c.index != 2 {
		t.Errorf("numbers %d, %d, %d", b.index, a.index, c.index)
	}
	if _, err := arms.Add(design.Treatment{ID: "c"}, func(int) *testArm { return &testArm{} }); err == nil {
		t.Error("a treatment is prepared twice")
	}
	if got, err := arms.Of(design.Treatment{ID: "b"}); err != nil || got != b {
		t.Errorf("arm of b: got %v, %v", got, err)
	}
	for _, id := range []string{"c", "d"} {
		if got, err := arms.Of(design.Treatment{ID: id}); err == nil || got != nil {
			t.Errorf("%s, which is not prepared: %v, %v", id, got, err)
		}
	}
	if ready := arms.Ready(); len(ready) != 2 || ready[0] != a || ready[1] != b {
		t.Errorf("ready are %v", ready)
	}
	if err := arms.Close(t.Context()); !errors.Is(err, broken) || a.closed+b.closed+c.closed != 3 {
		t.Errorf("closed %d times: %v", a.closed+b.closed+c.closed, err)
	}
	if err := arms.Close(t.Context()); err != nil || a.closed != 1 || len(arms.Ready()) != 0 {
		t.Errorf("closed again: %v, %d times", err, a.closed)
	}
}
