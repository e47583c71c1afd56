package drive

import (
	"context"
	"encoding/json"
	"errors"
	"math"
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

// TestSpansInRecords: what was not seen to end has no end in a record either.
func TestSpansInRecords(t *testing.T) {
	c := area.Condition{
		Impose: func(context.Context) (func(context.Context) error, error) { return nil, nil },
		Figures: func() map[string][]area.Span {
			return map[string][]area.Span{"revoke": {{Least: 1, Most: 1.5}, {Least: 60, Most: math.Inf(1)}}, "none": nil}
		},
	}
	i := &imposed{condition: c, now: func() time.Duration { return 0 }}
	var got guard.Condition
	i.before(t.Context(), &got)
	text, err := json.Marshal(got.Spans)
	if want := `{"revoke":[{"least":1,"most":1.5},{"least":60}]}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}
