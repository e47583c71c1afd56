package kit

import (
	"context"
	"syscall"

	"tare/internal/load"
)

// Callers make calls for a load, each one at a time: connections to processes that answer one request after another.
type Callers[C any] struct {
	free chan C
	all  int
}

// NewCallers returns callers that are all free.
func NewCallers[C any](all ...C) *Callers[C] {
	c := &Callers[C]{free: make(chan C, len(all)), all: len(all)}
	for _, one := range all {
		c.free <- one
	}
	return c
}

// Call lets a caller perform do once one is free. It waits for neither longer than ctx: the call has been abandoned
// then, and the caller is free again when do returns. do has a context that does not end with the call's. A call that
// had to wait is ready once a caller is free: the wait is the target's, and not the generator's.
func (c *Callers[C]) Call(ctx context.Context, do func(context.Context, C) load.Result) load.Result {
	gone := load.Result{Outcome: load.ConnFailed, Errno: uint16(syscall.ECONNABORTED), Cause: load.CauseAbandoned}
	var one C
	waited := false
	select {
	case one = <-c.free:
	default:
		waited = true
		select {
		case one = <-c.free:
		case <-ctx.Done():
			return gone
		}
	}
	if ctx.Err() != nil {
		c.free <- one
		return gone
	}
	answered := make(chan load.Result, 1)
	go func() {
		defer func() { c.free <- one }()
		r := do(context.WithoutCancel(ctx), one)
		if waited && r.Ready.IsZero() {
			r.Ready = r.Sent
		}
		answered <- r
	}()
	select {
	case r := <-answered:
		return r
	case <-ctx.Done():
		return gone
	}
}

// Hold waits until no call is under way, and keeps calls waiting until Release. It returns all callers, or fails when
// ctx ends before.
func (c *Callers[C]) Hold(ctx context.Context) ([]C, error) {
	var held []C
	for len(held) < c.all {
		select {
		case one := <-c.free:
			held = append(held, one)
		case <-ctx.Done():
			c.Release(held...)
			return nil, ctx.Err()
		}
	}
	return held, nil
}

// Release lets calls go on, with as many callers as were held.
func (c *Callers[C]) Release(all ...C) {
	for _, one := range all {
		c.free <- one
	}
}
