package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"tare/internal/area"
	"tare/internal/proc"
)

// A child is one of the area's own servers with its journal entry.
type child struct {
	*proc.Child
	name    string
	change  area.Change
	journal area.Journal
}

// startChild runs the server of this name as a child of this binary, and decodes its ready line into ready. The process
// is journaled before it does anything; the config, which may hold a token, goes through its standard input.
func startChild(ctx context.Context, env area.Env, j area.Journal, name string, index int, config, ready any,
	within time.Duration,
) (*child, error) {
	c := &child{name: name, journal: j}
	spec := proc.Spec{
		Name: name, Path: env.Self, Args: []string{"serve", areaName, name}, Config: config, ReadyWithin: within,
		CPUs: env.CPUs,
		Born: func(who proc.ID) error {
			change := area.ProcessChange(areaName, fmt.Sprintf("%s-%d", name, index), who)
			if err := j.Intend(change); err != nil {
				return err
			}
			c.change = change
			return nil
		},
	}
	if env.Dir != "" {
		spec.LogFile = filepath.Join(env.Dir, fmt.Sprintf("%s-%d.log", name, index))
	}
	var err error
	if c.Child, err = proc.Start(ctx, spec); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), c.undone()) // Start has ended the process
	}
	if err := json.Unmarshal(c.Ready, ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: ready: %w", name, err), c.stop(ctx))
	}
	return c, nil
}

// undone journals that the process has ended, if it was journaled.
func (c *child) undone() error {
	if c.change.ID == "" {
		return nil
	}
	return c.journal.Undone(c.change)
}

// stop ends the process. A nil child has none.
func (c *child) stop(ctx context.Context) error {
	if c == nil {
		return nil
	}
	if err := c.Stop(ctx); err != nil {
		return err
	}
	return c.undone()
}

// failed returns why the process has ended by itself; nil: it runs, or there is none.
func (c *child) failed() error {
	if c == nil {
		return nil
	}
	select {
	case <-c.Exited():
	default:
		return nil
	}
	if err := c.Wait(context.Background()); err != nil { // it has ended: this does not wait
		return fmt.Errorf("%s has ended by itself: %w", c.name, err)
	}
	return fmt.Errorf("%s has ended by itself", c.name)
}
