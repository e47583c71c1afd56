package decision

import (
	"context"
	"errors"
	"testing"
	"time"

	"tare/internal/clock"
)

func TestPacerKeepsBelowTheRate(t *testing.T) {
	p := newPacer(clock.System{}, 50)
	begin := time.Now()
	const n = 11
	for range n {
		if err := p.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("%d requests in %v, want no more than 50 a second", n, took)
	}
	free := newPacer(clock.System{}, 0)
	begin = time.Now()
	for range 1000 {
		if err := free.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("without a bound 1000 requests waited for %v", took)
	}
}

func TestPacerEndsWithItsContext(t *testing.T) {
	p := newPacer(clock.System{}, 0.001)
	if err := p.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
}
