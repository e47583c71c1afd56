package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a resource that the server has.
type kind struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// errNoKind says that the server does not have a kind.
var errNoKind = errors.New("the server does not have this kind")

// awaitKind finds a kind. One that may come is waited for: a CustomResourceDefinition is served some time after it was created, and an engine defines
// kinds of its own because of objects that it reads.
func (c *Cluster) awaitKind(ctx context.Context, gvk schema.GroupVersionKind, mayCome bool) (kind, error) {
	for deadline := c.clock.Now().Add(c.patience); ; {
		k, err := c.kindOf(ctx, gvk)
		if !errors.Is(err, errNoKind) || !mayCome {
			return k, err
		}
		if c.clock.Now().After(deadline) {
			return kind{}, fmt.Errorf("%w, %v after what comes before it was created: if an engine defines it, does that run?", err, c.patience)
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return kind{}, err
		}
	}
}

// Sort asks which of the kinds the server has. standing are the resources of those that it has, coming the kinds that it does not have yet, both
// in the order given, each once. Names of resources are never guessed from those of kinds: who defines a kind chooses them freely.
func (c *Cluster) Sort(ctx context.Context, kinds []schema.GroupVersionKind) (standing []schema.GroupVersionResource, coming []schema.GroupVersionKind, err error) {
	for _, gvk := range kinds {
		c.forget(gvk.GroupVersion()) // what has come or gone meanwhile
	}
	for _, gvk := range kinds {
		k, err := c.kindOf(ctx, gvk)
		switch {
		case errors.Is(err, errNoKind):
			if !slices.Contains(coming, gvk) {
				coming = append(coming, gvk)
			}
		case err != nil:
			return nil, nil, c.scrub(fmt.Errorf("ask %s for %s: %w", c.place, gvk.Kind, err))
		case !slices.Contains(standing, k.GroupVersionResource):
			standing = append(standing, k.GroupVersionResource)
		}
	}
	return standing, coming, nil
}

// AwaitGone waits until the server has none of the kinds any more that came with objects of this run: an engine takes its definitions away some time
// after the objects. What stays is named in the error.
func (c *Cluster) AwaitGone(ctx context.Context, coming []schema.GroupVersionKind) error {
	for deadline := c.clock.Now().Add(c.patience); ; {
		_, missing, err := c.Sort(ctx, coming)
		if err != nil || len(missing) == len(coming) {
			return err
		}
		if c.clock.Now().After(deadline) {
			left := slices.DeleteFunc(slices.Clone(coming), func(k schema.GroupVersionKind) bool { return slices.Contains(missing, k) })
			return c.scrub(fmt.Errorf("%s still has %s (%s), which came with what was created, %v after that was removed: "+
				"who defined it did not take it away; remove its CustomResourceDefinition, or define it before the run", c.place, left[0].Kind, left[0].GroupVersion(), c.patience))
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}
