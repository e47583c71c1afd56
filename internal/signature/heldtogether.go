package signature

import "time"

// A bunch counts calls that were due and unsent at the same time, though connections were free: a generator that was
// stopped for a moment sends them together. The zero value is ready to use.
type bunch struct {
	sent    []time.Duration // of the calls that may still be unsent, in the order in which they were due
	most, n int
}

// add takes in a call, in the order in which calls were due. free says that a connection was free when it was due.
func (b *bunch) add(due, sent time.Duration, free bool) {
	gone := 0
	for gone < len(b.sent) && b.sent[gone] <= due {
		gone++
	}
	b.sent = b.sent[gone:]
	if !free || sent <= due {
		return
	}
	b.sent = append(b.sent, sent)
	switch waiting := len(b.sent); {
	case waiting == 2:
		b.n += 2
	case waiting > 2:
		b.n++
	}
	b.most = max(b.most, len(b.sent))
}
