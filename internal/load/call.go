// Package load sends load to a target and times every call from its scheduled instant.
package load

import (
	"time"
)

// A Call is the record of one call. Instants are offsets from the opening of its Stream; Intended may be zero, for the
// others zero means that it has not happened. Done is zero while the call is outstanding.
type Call struct {
	Operation uint8  // index into Config.Operations
	Conn      uint32 // number of its connection, from 1; 0: none yet
	Intended  time.Duration
	Ready     time.Duration // a connection was free
	Sent      time.Duration
	FirstByte time.Duration
	Done      time.Duration
	Outcome   Outcome
	Status    uint16 // HTTP status, 0 without one
	Errno     uint16 // errno of a ConnFailed call, 0 if there is none
	Cause     Cause  // why it failed; 0: outcome, status and errno say all
}

// forgetLate drops a first byte that arrived after the call had timed out, but before the timeout was noticed.
func (c *Call) forgetLate() {
	if c.FirstByte > c.Done {
		c.FirstByte = 0
	}
}

// Response returns the user's response time: done − intended. Zero while outstanding.
func (c Call) Response() time.Duration {
	if c.Done == 0 {
		return 0
	}
	return c.Done - c.Intended
}

// Service returns done − sent. Zero while outstanding, and for a call that was never sent.
func (c Call) Service() time.Duration {
	if c.Done == 0 || c.Sent == 0 {
		return 0
	}
	return c.Done - c.Sent
}

// Lateness returns the generator's own delay: sent − max(intended, ready). Zero for a call that was never sent.
func (c Call) Lateness() time.Duration {
	if c.Sent == 0 {
		return 0
	}
	return max(0, c.Sent-max(c.Intended, c.Ready))
}

// PoolWait returns how long the call waited for a free connection: part of the response time, and due to the target.
func (c Call) PoolWait() time.Duration {
	if c.Ready == 0 {
		return 0
	}
	return max(0, c.Ready-c.Intended)
}

// Outstanding reports whether the call had not ended by now.
func (c Call) Outstanding(now time.Duration) bool { return c.Done == 0 || c.Done > now }

// Unsent reports whether a call that has ended was never sent.
func (c Call) Unsent() bool { return c.Sent == 0 }
