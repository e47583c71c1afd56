package kit

import (
	"context"
	"testing"
	"time"

	"tare/internal/load"
)

// TestWaitForACaller: the wait for a free caller is no lateness of the generator, and a call that did not wait has the
// engine's own instants.
func TestWaitForACaller(t *testing.T) {
	c := NewCallers(struct{}{})
	call := func(do func()) load.Result {
		return c.Call(t.Context(), func(context.Context, struct{}) load.Result {
			sent := time.Now()
			do()
			return load.Result{Outcome: load.OK, Sent: sent}
		})
	}
	first, begun, end := make(chan load.Result), make(chan struct{}), make(chan struct{})
	go func() {
		first <- call(func() {
			close(begun)
			<-end
		})
	}()
	<-begun
	time.AfterFunc(20*time.Millisecond, func() { close(end) })
	second := call(func() {})
	if r := <-first; !r.Ready.IsZero() || r.Sent.IsZero() {
		t.Errorf("without a wait: %+v", r)
	}
	if second.Ready.IsZero() || !second.Ready.Equal(second.Sent) {
		t.Errorf("after a wait: %+v", second)
	}
}
