package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a resource of the server.
type kind struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// errNoKind means that the server does not have a kind.
var errNoKind = errors.New("the server does not have this kind")

// awaitKind finds a kind. With mayCome it waits for one: a CustomResourceDefinition is served some time after its
// creation, and an engine may create definitions because of objects that it reads.
func (c *Cluster) awaitKind(ctx context.Context, gvk schema.GroupVersionKind, mayCome bool) (kind, error) {
	for deadline := c.clock.Now().Add(c.patience); ; {
		k, err := c.kindOf(ctx, gvk)
		if !errors.Is(err, errNoKind) || !mayCome {
			return k, err
		}
		if c.clock.Now().After(deadline) {
			return kind{}, fmt.Errorf("%w, %v after what comes before it was created: if an engine defines it, does that run?",
				err, c.patience)
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return kind{}, err
		}
	}
}

// Lookup returns which of the kinds the server has: standing are the resources of existing kinds, coming the kinds that
// do not exist yet, both in the order given, each once. It never derives the name of a resource from that of a kind:
// the definition chooses both freely.
func (c *Cluster) Lookup(ctx context.Context, kinds []schema.GroupVersionKind) (standing []schema.GroupVersionResource,
	coming []schema.GroupVersionKind, err error,
) {
	for _, gvk := range kinds {
		c.forget(gvk.GroupVersion()) // it may have appeared or disappeared meanwhile
	}
	for _, gvk := range kinds {
		k, err := c.kindOf(ctx, gvk)
		switch {
		case errors.Is(err, errNoKind):
			if !slices.Contains(coming, gvk) {
				coming = append(coming, gvk)
			}
		case err != nil:
			return nil, nil, c.scrub(fmt.Errorf("ask %s for %s: %w", c.location, gvk.Kind, err))
		case !slices.Contains(standing, k.GroupVersionResource):
			standing = append(standing, k.GroupVersionResource)
		}
	}
	return standing, coming, nil
}

// AwaitGone waits until the server has none of the kinds that appeared with objects of this run: an engine removes its
// definitions some time after its objects. The error names those that remain.
func (c *Cluster) AwaitGone(ctx context.Context, coming []schema.GroupVersionKind) error {
	for deadline := c.clock.Now().Add(c.patience); ; {
		_, missing, err := c.Lookup(ctx, coming)
		if err != nil || len(missing) == len(coming) {
			return err
		}
		if c.clock.Now().After(deadline) {
			left := slices.DeleteFunc(slices.Clone(coming),
				func(k schema.GroupVersionKind) bool { return slices.Contains(missing, k) })
			return c.scrub(fmt.Errorf("%s still has %s (%s), which came with what was created, %v after that was removed: "+
				"who defined it did not take it away; remove its CustomResourceDefinition, or define it before the run", c.location,
				left[0].Kind, left[0].GroupVersion(), c.patience))
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}
