package area

import (
	"context"
	"errors"
	"testing"
	"time"

	"tare/internal/clock"
)

func TestPaceKeepsBelowTheRate(t *testing.T) {
	p := NewPace(clock.System{}, 50)
	begin := time.Now()
	const n = 11
	for range n {
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("%d requests in %v, want no more than 50 a second", n, took)
	}
	free := NewPace(clock.System{}, 0)
	begin = time.Now()
	for range 1000 {
		if err := free.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("without a bound 1000 requests waited for %v", took)
	}
}

func TestPaceEndsWithItsContext(t *testing.T) {
	p := NewPace(clock.System{}, 0.001)
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
}
