package load

import "sync/atomic"

// census counts the connections of engine std, dialing and established ones, in one word: a connection that changes
// from one to the other is never counted as both or neither, and the sum never exceeds the pool's bound.
type census struct{ both atomic.Int64 }

// oneDialing is one connection that is dialing; the lower half of the word counts established ones.
const oneDialing = 1 << 32

func (c *census) dialing() { c.both.Add(oneDialing) }
func (c *census) failed()  { c.both.Add(-oneDialing) }
func (c *census) made()    { c.both.Add(1 - oneDialing) }
func (c *census) closed()  { c.both.Add(-1) }

// read returns both counts at one instant.
func (c *census) read() (established, connecting int) {
	n := c.both.Load()
	return int(n & (oneDialing - 1)), int(n >> 32)
}
