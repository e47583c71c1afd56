package fga

import "sync"

// mostKnown is how many stores are remembered.
const mostKnown = 8

// known are the stores that were read last: large ones take seconds, and a command asks for them more than once.
var known cache

// A cache holds stores by their files.
type cache struct {
	mu   sync.Mutex
	read map[string]*reader
}

// of is the store of a file, if no file that makes it has changed since it was read; nil: it is to be read.
func (c *cache) of(file string) *Store {
	c.mu.Lock()
	before := c.read[file]
	c.mu.Unlock()
	if before == nil {
		return nil
	}
	now := newReader(file)
	for name, sum := range before.sums {
		if _, _, err := now.read(name); err != nil || now.sums[name] != sum {
			return nil
		}
	}
	return before.store
}

// keep remembers what was read.
func (c *cache) keep(file string, r *reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil || len(c.read) >= mostKnown {
		c.read = map[string]*reader{}
	}
	c.read[file] = r
}
