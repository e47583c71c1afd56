package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFakeMovesOnlyWhenSleptOn(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := NewFake(start)
	if err := f.Sleep(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	f.Advance(time.Minute)
	if got, want := f.Now(), start.Add(61*time.Minute); !got.Equal(want) {
		t.Errorf("now %v, want %v", got, want)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]Clock{"system": System{}, "fake": NewFake(time.Time{})} {
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
	}
	if err := (System{}).Sleep(t.Context(), -1); err != nil {
		t.Errorf("a sleep into the past: %v", err)
	}
}
