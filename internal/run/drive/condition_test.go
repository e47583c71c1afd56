package drive

import (
	"context"
	"errors"
	"testing"
	"time"

	"tare/area"
	"tare/internal/guard"
)

// TestIdleCondition: a condition that comes before its load has ended when that begins, and counts from then; one that
// fails says why, and has no instants.
func TestIdleCondition(t *testing.T) {
	now, lifted := time.Second, 0
	c := area.Condition{Idle: true, Hold: time.Hour, Impose: func(context.Context) (func(context.Context) error, error) {
		now += time.Second
		return func(context.Context) error { lifted++; return nil }, nil
	}}
	i := &imposed{condition: c, hold: time.Hour, now: func() time.Duration { return now }}
	var got guard.Condition
	i.before(t.Context(), &got)
	if lifted != 1 || !i.ended() || got.Error != "" || got.Begun != 2*time.Second || got.Imposed != got.Begun ||
		got.Ended != got.Begun {
		t.Errorf("lifted %d times: %+v; want all at 2 s", lifted, got)
	}
	c.Impose = func(context.Context) (func(context.Context) error, error) { return nil, errors.New("no") }
	i, got = &imposed{condition: c, now: i.now}, guard.Condition{}
	i.before(t.Context(), &got)
	if !i.ended() || got.Error != "no" || got.Imposed != 0 || got.Ended != 0 {
		t.Errorf("%+v; want the error and no instants", got)
	}
}
