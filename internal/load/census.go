package load

import "sync/atomic"

// census counts the connections of engine std, those that are being made and those that are established, in one word: a connection that
// goes from one to the other is never seen as both, nor as neither, and their sum never passes the pool's bound.
type census struct{ both atomic.Int64 }

// aDial is one connection that is being made; the lower half of the word counts the established ones.
const aDial = 1 << 32

func (c *census) dialing() { c.both.Add(aDial) }
func (c *census) failed()  { c.both.Add(-aDial) }
func (c *census) made()    { c.both.Add(1 - aDial) }
func (c *census) closed()  { c.both.Add(-1) }

// read returns both counts as they were at one instant.
func (c *census) read() (established, connecting int) {
	n := c.both.Load()
	return int(n & (aDial - 1)), int(n >> 32)
}
