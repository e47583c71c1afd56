package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Labelled is an object that has a label.
type Labelled struct {
	Resource              schema.GroupVersionResource
	Kind, Namespace, Name string
	Labels                map[string]string
}

// Labelled returns the objects of all kinds that have a label, but for those that runs of tare have made.
func (c *Cluster) Labelled(ctx context.Context, label string) (out []Labelled, err error) {
	versions, err := c.versions(ctx)
	if err != nil {
		return nil, err
	}
	for _, gv := range versions {
		kinds, err := c.kindsOf(ctx, gv)
		if err != nil {
			return nil, err
		}
		for _, k := range kinds {
			o := metav1.ListOptions{LabelSelector: label}
			err := c.pages(quiet(ctx), o, func(ctx context.Context, o metav1.ListOptions) (int, string, error) {
				l, err := c.of(k.GroupVersionResource, "").List(ctx, o)
				if err != nil {
					return 0, "", err
				}
				for i := range l.Items {
					o := &l.Items[i]
					if _, made := o.Labels[OwnerLabel]; !made {
						out = append(out, Labelled{k.GroupVersionResource, k.Kind, o.Namespace, o.Name, o.Labels})
					}
				}
				return len(l.Items), l.Continue, nil
			})
			switch {
			case apierrors.IsMethodNotSupported(err), apierrors.IsNotFound(err): // no kind of objects that are kept, or gone
				continue
			case err != nil:
				return nil, c.scrub(fmt.Errorf("list %s on %s: %w", k.GroupResource(), c.location, err))
			}
		}
	}
	return out, nil
}

// versions are the versions of the server's groups that it prefers.
func (c *Cluster) versions(ctx context.Context) ([]schema.GroupVersion, error) {
	const path = "/apis"
	text, err := c.get(ctx, path, jsonType)
	if err != nil {
		return nil, err
	}
	var list metav1.APIGroupList
	if err := json.Unmarshal(text, &list); err != nil || list.Kind != "APIGroupList" {
		return nil, c.scrub(fmt.Errorf("get %s of %s: %w", path, c.location,
			errors.New("the answer is not the list of groups that an API server gives")))
	}
	out := []schema.GroupVersion{{Version: "v1"}}
	for i := range list.Groups {
		g := &list.Groups[i]
		out = append(out, schema.GroupVersion{Group: g.Name, Version: g.PreferredVersion.Version})
	}
	return out, nil
}
