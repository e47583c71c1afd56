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

// abreast is how many objects of the stock are created concurrently.
const abreast = 8

// An item is an object of the stock that stays.
type item struct {
	name string
	body []byte // for update, with a mark for the call's number
}

// doomed returns the prefix of the names of objects that delete consumes.
func (p *arm) doomed(r resource) string { return fmt.Sprintf("doomed-%s-%d-", r.noun, p.trial) }

// needs returns the kinds of the chosen operations of which one needs existing objects.
func (p *arm) needs(is func(operation) bool) (out []resource) {
	for _, r := range resources() {
		if slices.ContainsFunc(p.operations, func(o operation) bool { return o.resource == r && is(o) }) {
			out = append(out, r)
		}
	}
	return out
}

// fill creates the missing stock: the objects of update, patch, get and list, and of delete as a dry run.
func (p *arm) fill(ctx context.Context) error {
	if p.stock == nil {
		p.stock = map[string][]item{}
	}
	for _, r := range p.needs(func(o operation) bool {
		return o.verb != verbCreate &&
			(o.verb != verbDelete || o.dryRun)
	}) {
		if p.stock[r.noun] != nil {
			continue
		}
		items := make([]item, p.size)
		err := p.make(ctx, p.maker, r, p.size, func(i int) string { return fmt.Sprintf("stock-%s-%06d", r.noun, i) },
			func(i int, name string, body []byte) (err error) {
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

// fillDoomed creates the objects that delete consumes in the next trial.
func (p *arm) fillDoomed(ctx context.Context) error {
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

// make creates n objects, several concurrently. It calls made for each, unless nil.
func (p *arm) make(ctx context.Context, m maker, r resource, n int, name func(int) string,
	made func(i int, name string, body []byte) error,
) error {
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

// create creates one object and returns it as stored by the API server.
func (p *arm) create(ctx context.Context, m maker, r resource, name string) ([]byte, error) {
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

// clear deletes what the trial created, and waits until it is gone. The stock of that kind goes with it; the next trial
// creates it again.
func (p *arm) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearWithin)
	defer cancel()
	for _, r := range p.needs(func(o operation) bool {
		return (o.verb == verbCreate ||
			o.verb == verbDelete) && !o.dryRun
	}) {
		delete(p.stock, r.noun)
		if err := p.admin.DeleteAll(ctx, p.namespace, r.gvr()); err != nil {
			return fmt.Errorf("delete what the trial created: %w", err)
		}
	}
	return nil
}

// clearWithin bounds the deletion of what one trial created.
const clearWithin = 5 * time.Minute
