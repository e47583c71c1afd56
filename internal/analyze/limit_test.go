package analyze

import (
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/load"
)

// TestCallsThatHang counts calls without an answer at the lowest rate at which they are many, and tells those on
// connections that never carried one from the others. A call that has not ended is neither.
func TestCallsThatHang(t *testing.T) {
	const ms = time.Millisecond
	var calls []load.Call
	call := func(conn uint32, at, took time.Duration, o load.Outcome) {
		c := load.Call{Conn: conn, Intended: at, Sent: at, Done: at + took, Outcome: o}
		if o == load.OK {
			c.FirstByte = at + took
		}
		if took == 0 {
			c.Done = 0
		}
		calls = append(calls, c)
	}
	step := func(role capacity.Role, rate float64, from, to time.Duration) capacity.Step {
		return capacity.Step{Role: role, Rate: rate, Segment: load.Segment{Start: from, End: to}}
	}
	for i := range uint32(40) { // few calls hang in the first overload, and many in the second, each on its connection
		at := time.Duration(i) * 10 * ms
		call(1, at, 2*ms, load.OK)
		if i < 5 {
			call(100+i, at, 5*time.Second, load.Timeout)
		}
	}
	for i := range uint32(40) {
		at := time.Second + time.Duration(i)*20*ms
		call(1, at, 3*ms, load.OK)
		call(200+i, at, 5*time.Second, load.Timeout)
		if i < 4 {
			call(1, at, 5*time.Second, load.Timeout)
		}
	}
	call(300, 1990*ms, 0, load.OK)
	trace := &capacity.Trace{
		Timeout: 5 * time.Second, Calls: load.Calls(calls),
		Steps: []capacity.Step{
			step(capacity.RoleOverload, 50, 0, time.Second), step(capacity.RoleOverload, 100, time.Second, 2*time.Second),
			step(capacity.RoleFill, 200, time.Second, 2*time.Second), step(capacity.RoleConfirmLow, 20, 0, 2*time.Second),
		},
	}
	if got, want := hung(trace), (limit.Hung{Rate: 100, Calls: 44, Unserved: 40, Service: 0.003}); got != want {
		t.Errorf("%+v instead of %+v", got, want)
	}
	trace.Steps = trace.Steps[:1]
	if got := hung(trace); got != (limit.Hung{}) {
		t.Errorf("few hang: %+v", got)
	}
}
