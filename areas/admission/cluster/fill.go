package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stock is a kind of objects that the load uses.
type Stock string

// The kinds of stock.
const (
	Pods        Stock = "pod"
	Deployments Stock = "deployment"
	ConfigMaps  Stock = "configmap"
)

// Resource returns the stock's resource.
func (s Stock) Resource() schema.GroupVersionResource {
	switch s {
	case Deployments:
		return deploys
	case ConfigMaps:
		return configMaps
	case Pods:
	}
	return pods
}

// JSON returns an object of the stock.
func (s Stock) JSON(name string, shape Shape) []byte {
	switch s {
	case Deployments:
		return DeploymentJSON(name, shape)
	case ConfigMaps:
		return ConfigMapJSON(name, shape)
	case Pods:
	}
	return PodJSON(name, shape)
}

// StockName returns the name of object i of a stock: the prefix and 16 hexadecimal digits, as load.Template writes a
// call's number.
func StockName(prefix string, i uint64) string { return fmt.Sprintf("%s%016x", prefix, i) }

// Fill creates the objects from ≤ i < from+n of a stock, named by StockName, in parallel. It skips existing ones.
func (c *Cluster) Fill(ctx context.Context, s Stock, shape Shape, prefix string, from, n int) error {
	gvr := s.Resource()
	return Each(ctx, n, abreast, func(ctx context.Context, i int) error {
		name := StockName(prefix, uint64(from+i)) //nolint:gosec // Counts are not negative.
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(s.JSON(name, shape)); err != nil {
			return fmt.Errorf("create %s %s: %w", s, name, err)
		}
		return c.create(ctx, kind{GroupVersionResource: gvr, Kind: o.GetKind(), Namespaced: true}, o)
	})
}

// Count returns how many objects of a resource this run has in a namespace ("": everywhere), including those being
// deleted.
func (c *Cluster) Count(ctx context.Context, namespace string, r schema.GroupVersionResource) (int, error) {
	n := 0
	err := c.list(ctx, namespace, r, func(page []metav1.PartialObjectMetadata) (bool, error) {
		n += len(page)
		return true, nil
	})
	if err != nil {
		return 0, c.scrub(fmt.Errorf("count %s on %s: %w", r.GroupResource(), c.location, err))
	}
	return n, nil
}

// Exists reports whether an object exists and belongs to this run.
func (c *Cluster) Exists(ctx context.Context, namespace string, r schema.GroupVersionResource,
	name string,
) (bool, error) {
	o, err := c.of(r, namespace).Get(quiet(ctx), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, c.scrub(fmt.Errorf("get %s %s on %s: %w", r.GroupResource(), name, c.location, err))
	}
	return o.Labels[OwnerLabel] == c.run, nil
}
