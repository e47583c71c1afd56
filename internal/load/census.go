package load

import "sync/atomic"

// census counts the connections of engine std, dialing and established ones, in one word: a connection that changes
// from one to the other is never counted as both or neither, and the sum never exceeds the pool's bound.
type census struct{ both atomic.Int64 }

// aDial is one connection that is dialing; the lower half of the word counts established ones.
const aDial = 1 << 32

func (c *census) dialing() { c.both.Add(aDial) }
func (c *census) failed()  { c.both.Add(-aDial) }
func (c *census) made()    { c.both.Add(1 - aDial) }
func (c *census) closed()  { c.both.Add(-1) }

// read returns both counts at one instant.
func (c *census) read() (established, connecting int) {
	n := c.both.Load()
	return int(n & (aDial - 1)), int(n >> 32)
}
