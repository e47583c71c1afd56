package capacity

import (
	"time"

	"tare/internal/load"
)

const (
	// heldBackFrom is the lateness from which on a call counts as held back by a stop of the generator or its host.
	heldBackFrom = time.Millisecond
	// clearing is how long calls that came together disturb those that are sent after them.
	clearing = 50 * time.Millisecond
)

// A heldBack tells the calls that came together, because the generator had been stopped, and those that were sent soon
// after them: what became of them says nothing about the rate. It is asked about calls in the order in which they were
// due; the zero value is ready to use.
type heldBack struct {
	before time.Duration // when the call before was due
	until  time.Duration
	any    bool
}

// disturbs reports whether c is such a call. A call that was late by less than the time since the one before came to the
// target alone, as it should.
func (h *heldBack) disturbs(c *load.Call) bool {
	gap := c.Intended - h.before
	if !h.any {
		gap = 0
	}
	h.before, h.any = c.Intended, true
	if late := c.Lateness(); late >= heldBackFrom && late > gap {
		h.until = max(h.until, c.Sent+clearing)
	}
	return h.until > 0 && max(c.Sent, c.Intended) <= h.until
}

// undisturbed returns the calls that were not held back; all of them where hardly any is left.
func undisturbed(calls []load.Call) []load.Call {
	var h heldBack
	out := make([]load.Call, 0, len(calls))
	for i := range calls {
		if !h.disturbs(&calls[i]) {
			out = append(out, calls[i])
		}
	}
	if 4*len(out) < len(calls) {
		return calls
	}
	return out
}
