package signature

import (
	"testing"
	"time"

	"tare/internal/load"
)

// TestLeftBehind: calls were left behind if later ones were answered meanwhile, and not if earlier ones were. A damaged
// record, here with a negative timeout, does not make it panic.
func TestLeftBehind(t *testing.T) {
	call := func(sent, done time.Duration) load.Call {
		return load.Call{Intended: sent, Sent: sent, Done: done, Outcome: load.OK}
	}
	const ms = time.Millisecond
	late := call(100*ms, 900*ms)
	of := []answer{{late.Sent, late.Done}}
	var newest, inOrder load.Calls
	for i := range 50 {
		then := time.Duration(200+10*i) * ms
		inOrder = append(inOrder, call(time.Duration(i)*ms, then))
		newest = append(newest, call(then, then+5*ms))
	}
	if newest = append(load.Calls{late}, newest...); !leftBehind(newest, of, time.Second) {
		t.Error("later calls were answered meanwhile: it was left behind")
	}
	if inOrder = append(inOrder, late); leftBehind(inOrder, of, time.Second) {
		t.Error("earlier calls were answered meanwhile: it was not left behind")
	}
	leftBehind(load.Calls{call(10*ms, 20*ms), late, call(950*ms, 960*ms)}, of, -time.Hour)
}
