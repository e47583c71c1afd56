package admission

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"tare/internal/load"
)

// abreast is how many objects of the stock are made at once.
const abreast = 8

// An item is an object of the stock that stays.
type item struct {
	name string
	body []byte // for update: with a mark for the call's number
}

// doomed begins the names of the objects that delete uses up.
func (p *place) doomed(r resource) string { return fmt.Sprintf("doomed-%s-%d-", r.noun, p.trial) }

// needs reports the kinds of the chosen operations for which one of them needs objects that exist.
func (p *place) needs(is func(operation) bool) (out []resource) {
	for _, r := range resources() {
		if slices.ContainsFunc(p.operations, func(o operation) bool { return o.resource == r && is(o) }) {
			out = append(out, r)
		}
	}
	return out
}

// fill makes the stock that is not there: what update, patch, get and list act upon, and delete as a dry run.
func (p *place) fill(ctx context.Context) error {
	if p.stock == nil {
		p.stock = map[string][]item{}
	}
	for _, r := range p.needs(func(o operation) bool { return o.verb != verbCreate && (o.verb != verbDelete || o.dryRun) }) {
		if p.stock[r.noun] != nil {
			continue
		}
		items := make([]item, p.size)
		err := p.make(ctx, p.maker, r, p.size, func(i int) string { return fmt.Sprintf("stock-%s-%06d", r.noun, i) }, func(i int, name string, body []byte) (err error) {
			items[i].name = name
			items[i].body, err = stored(body)
			return err
		})
		if err != nil {
			return err
		}
		p.stock[r.noun] = items
	}
	return nil
}

// stage makes what delete uses up in the trial that begins.
func (p *place) stage(ctx context.Context) error {
	p.trial++
	if err := p.fill(ctx); err != nil {
		return err
	}
	for _, r := range p.needs(func(o operation) bool { return o.verb == verbDelete && !o.dryRun }) {
		name := func(i int) string { return p.doomed(r) + serial(uint64(i)) } //nolint:gosec // it counts from 0
		if err := p.make(ctx, p.maker, r, p.size, name, nil); err != nil {
			return err
		}
	}
	return nil
}

// make creates n objects, some at once. made is told of each, and may be nil.
func (p *place) make(ctx context.Context, m maker, r resource, n int, name func(int) string, made func(i int, name string, body []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range min(abreast, n) {
		all.Go(func() {
			for i := range next {
				body, err := p.create(ctx, m, r, name(i))
				if err == nil && made != nil {
					err = made(i, name(i), body)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("make %d %s to act upon: %w", n, r.plural, err)
	}
	return nil
}

// create makes one object and returns it as the API server keeps it.
func (p *place) create(ctx context.Context, m maker, r resource, name string) ([]byte, error) {
	body, err := m.object(r, name)
	if err != nil {
		return nil, err
	}
	body = bytes.ReplaceAll(body, []byte(load.CallMark), []byte(serial(0)))
	a, err := p.setter.do(ctx, http.MethodPost, p.prefix+r.path(p.namespace), jsonType, body)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusCreated {
		return nil, fmt.Errorf("create %s: %s", name, a.message())
	}
	return a.body, nil
}

// clear deletes what the trial created, and waits until it is gone. The stock of a kind goes with it, and comes again with the next trial.
func (p *place) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearWithin)
	defer cancel()
	for _, r := range p.needs(func(o operation) bool { return (o.verb == verbCreate || o.verb == verbDelete) && !o.dryRun }) {
		delete(p.stock, r.noun)
		if err := p.admin.Empty(ctx, p.namespace, r.gvr()); err != nil {
			return fmt.Errorf("delete what the trial created: %w", err)
		}
	}
	return nil
}

// clearWithin bounds the deletion of what one trial created.
const clearWithin = 5 * time.Minute
