package fga

import "sync"

// mostKnown is how many stores are remembered.
const mostKnown = 8

// known are the stores that were read last: large ones take seconds, and a command asks for them more than once.
var known memory

// A memory holds stores by their files.
type memory struct {
	mu   sync.Mutex
	read map[string]*reader
}

// of is the store of a file, if no file that makes it has changed since it was read; nil: it is to be read.
func (m *memory) of(file string) *Store {
	m.mu.Lock()
	before := m.read[file]
	m.mu.Unlock()
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
func (m *memory) keep(file string, r *reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil || len(m.read) >= mostKnown {
		m.read = map[string]*reader{}
	}
	m.read[file] = r
}
