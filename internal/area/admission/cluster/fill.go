package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stock is a kind of objects that load acts upon.
type Stock string

// The kinds of stock.
const (
	Pods        Stock = "pod"
	Deployments Stock = "deployment"
	ConfigMaps  Stock = "configmap"
)

// Resource is the stock's resource.
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

// JSON is an object of the stock.
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

// StockName is the name of object i of a stock: 16 hexadecimal digits after the prefix, as load.Template writes a call's number.
func StockName(prefix string, i uint64) string { return fmt.Sprintf("%s%016x", prefix, i) }

// Fill creates the objects from ≤ i < from+n of a stock, named by StockName, in parallel. What is there already stays.
func (c *Cluster) Fill(ctx context.Context, s Stock, shape Shape, prefix string, from, n int) error {
	gvr := s.Resource()
	return each(ctx, n, abreast, func(ctx context.Context, i int) error {
		name := StockName(prefix, uint64(from+i)) //nolint:gosec // Counts are not negative.
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(s.JSON(name, shape)); err != nil {
			return fmt.Errorf("create %s %s: %w", s, name, err)
		}
		return c.create(ctx, kind{GroupVersionResource: gvr, Kind: o.GetKind(), Namespaced: true}, o)
	})
}

// Count is how many objects of this run there are of a resource in a namespace ("": everywhere). Those that are going count.
func (c *Cluster) Count(ctx context.Context, namespace string, r schema.GroupVersionResource) (int, error) {
	all, err := c.list(ctx, namespace, r)
	if err != nil {
		return 0, c.scrub(fmt.Errorf("count %s on %s: %w", r.GroupResource(), c.place, err))
	}
	return len(all), nil
}

// Exists reports whether an object is there and is this run's.
func (c *Cluster) Exists(ctx context.Context, namespace string, r schema.GroupVersionResource, name string) (bool, error) {
	o, err := c.of(r, namespace).Get(quiet(ctx), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, c.scrub(fmt.Errorf("get %s %s on %s: %w", r.GroupResource(), name, c.place, err))
	}
	return o.Labels[OwnerLabel] == c.run, nil
}
