package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"tare/internal/clock"
)

// shared lets several requests be under way at once. A goroutine reads the answers, in whatever order they come.
type shared struct {
	c *client

	mu      sync.Mutex
	last    uint64
	pending map[uint64]chan heard
	over    *heard // why no answer can be read any more
}

// heard is a line that answers a request, or what was read until an error.
type heard struct {
	line []byte
	at   time.Duration
	err  error
}

// share lets several requests be under way from now on. None may be under way.
func (c *client) share() {
	if c.shared == nil {
		c.shared = &shared{c: c, last: c.last, pending: map[uint64]chan heard{}}
		go c.shared.read()
	}
}

// read hands the answers to those who wait for them, until there are no more.
func (s *shared) read() {
	for {
		line, err := readLine(s.c.lines)
		at, clockErr := monotonic()
		h := heard{line: s.c.child.MaskSecrets(line), at: at, err: err}
		if err == nil {
			h.err = clockErr
		}
		if !s.deliver(h) {
			return
		}
	}
}

// deliver hands out a line, and reports whether another may follow. What is no answer to a request that is under way
// goes to all who wait.
func (s *shared) deliver(h heard) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var to struct {
		ID uint64 `json:"id"`
	}
	_ = json.Unmarshal(h.line, &to) // ask says what is wrong with it
	if one := s.pending[to.ID]; one != nil && h.err == nil {
		delete(s.pending, to.ID)
		one <- h
		return true
	}
	if h.err == nil {
		h.err = errUnasked
	}
	s.over = &h
	for id, one := range s.pending {
		delete(s.pending, id)
		one <- h
	}
	return false
}

// exchange sends a request, which gets its id, and waits for its answer.
func (s *shared) exchange(ctx context.Context, within time.Duration, r *Request) ([]byte, time.Duration, error) {
	answer, asked, err := s.send(within, r)
	if err != nil {
		return nil, 0, err
	}
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case h := <-answer:
		if h.err != nil {
			return nil, 0, s.c.explain(r.Do, h.line, h.err)
		}
		return h.line, h.at - asked, nil
	case <-limit.C:
		return nil, 0, fmt.Errorf("no answer to %s within %s: %w", r.Do, within, ErrLate)
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("%s: %w", r.Do, context.Cause(ctx))
	}
}

// send writes a request, and returns where its answer comes.
func (s *shared) send(within time.Duration, r *Request) (answer chan heard, at time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer = make(chan heard, 1) // deliver never waits
	if s.over != nil {
		answer <- *s.over
		return answer, 0, nil
	}
	s.last++
	r.ID = s.last
	line, err := encode(*r)
	if err != nil {
		return nil, 0, err
	}
	if at, err = monotonic(); err != nil {
		return nil, 0, err
	}
	s.pending[r.ID] = answer
	_ = s.c.child.In.SetWriteDeadline(clock.System{}.Now().Add(within)) // it may be closed already
	if _, err = s.c.child.In.Write(line); err != nil {
		delete(s.pending, r.ID)
		err = s.c.explain(r.Do, nil, err)
	}
	return answer, at, err
}
