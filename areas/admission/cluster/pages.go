package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// page is the number of objects in one answer to a list, and defaultPass in the pages that one pass of a removal goes
// through: it keeps their names.
const (
	page        = 500
	defaultPass = 100_000
)

// most is how many objects one list has, and how many are removed, at most: a server may go on for ever.
func (c *Cluster) most() int { return 10 * c.pass }

// pages calls get for each page of a list. get returns how many objects the page has, and where the next one begins.
// Pages that are not full, though more are to come, end when patience has: a server may send a few for each.
func (c *Cluster) pages(ctx context.Context, o metav1.ListOptions,
	get func(context.Context, metav1.ListOptions) (n int, next string, err error),
) error {
	o.Limit = page
	for all, progress := 0, c.clock.Now(); ; {
		n, next, err := get(ctx, o)
		if err != nil || next == "" {
			return err
		}
		all += n
		switch now := c.clock.Now(); {
		case all > c.most(), n < page && now.Sub(progress) > c.patience:
			return fmt.Errorf("the server's list does not end: it is given up after %d objects", all)
		case n >= page:
			progress = now
		}
		o.Continue = next
	}
}

// ForEach calls do with the objects of a resource in a namespace ("": everywhere) that the selector selects.
func (c *Cluster) ForEach(ctx context.Context, r schema.GroupVersionResource, namespace, selector string,
	do func(*unstructured.Unstructured),
) error {
	o := metav1.ListOptions{LabelSelector: selector}
	return c.pages(quiet(ctx), o, func(ctx context.Context, o metav1.ListOptions) (int, string, error) {
		l, err := c.dynamic.Resource(r).Namespace(namespace).List(ctx, o)
		if err != nil {
			return 0, "", err
		}
		for i := range l.Items {
			do(&l.Items[i])
		}
		return len(l.Items), l.GetContinue(), nil
	})
}
