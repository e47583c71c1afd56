package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// page is the number of objects in one answer to a list.
const page = 500

// definitions is the resource of CustomResourceDefinitions.
const definitions = "customresourcedefinitions"

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	accounts   = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deploys    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// RemoveAll removes this run's objects of the resources in all namespaces, and waits until they are gone. It removes
// what acts on requests first (webhooks, bindings, then policies), definitions and namespaces last, and the rest in the
// order given. A resource that the server no longer has counts as empty; stock that the user may not list goes with its
// namespaces, if these are among the resources. coming are kinds that did not exist before: their objects go after what
// acts on requests, and before what defines them. The error names objects that remain although they were deleted,
// because of finalizers.
func (c *Cluster) RemoveAll(ctx context.Context, resources []schema.GroupVersionResource,
	coming ...schema.GroupVersionKind,
) error {
	came, _, err := c.Lookup(ctx, coming)
	errs := []error{err}
	ordered := slices.Clone(resources)
	slices.SortStableFunc(ordered, func(a, b schema.GroupVersionResource) int { return cmp.Compare(rank(a), rank(b)) })
	first := slices.IndexFunc(ordered, func(r schema.GroupVersionResource) bool { return rank(r) > mostActing })
	if first < 0 {
		first = len(ordered)
	}
	ordered = slices.Insert(ordered, first, came...)
	covered := slices.Contains(resources, namespaces) && !c.bare
	for _, r := range slices.Compact(ordered) {
		err := c.DeleteAll(ctx, "", r)
		if covered && isStock(r) && apierrors.IsForbidden(err) {
			continue // with minimal rights; it is in the run's namespaces only
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func isStock(r schema.GroupVersionResource) bool { return r == pods || r == deploys || r == configMaps }

// mostActing is the highest rank of objects that act on requests.
const mostActing = 2

// rank orders removals: without its binding a policy has no effect, and a namespace can only go after its contents.
func rank(r schema.GroupVersionResource) int {
	switch {
	case strings.HasSuffix(r.Resource, "webhookconfigurations"):
		return 0
	case r.Group == "admissionregistration.k8s.io" && strings.HasSuffix(r.Resource, "bindings"):
		return 1
	case r.Group == "admissionregistration.k8s.io", r.Resource == "podsecuritypolicies":
		return mostActing
	case r.Resource == definitions:
		return 4
	case r == namespaces:
		return 5
	}
	return 3
}

// DeleteAll removes this run's objects of one resource in a namespace ("": everywhere), and waits until they are gone.
func (c *Cluster) DeleteAll(ctx context.Context, namespace string, r schema.GroupVersionResource) error {
	if err := c.deleteAll(ctx, namespace, r); err != nil {
		return c.scrub(fmt.Errorf("remove %s of run %s from %s: %w", r.GroupResource(), c.run, c.location, err))
	}
	return nil
}

func (c *Cluster) deleteAll(ctx context.Context, namespace string, r schema.GroupVersionResource) error {
	progress, before := c.clock.Now(), -1
	told := map[string]bool{} // what the server has accepted to delete
	for {
		left, err := c.list(ctx, namespace, r)
		if err != nil || len(left) == 0 {
			return err
		}
		promised := len(told)
		if err := c.deleteEach(ctx, r, left, told); err != nil {
			return err
		}
		switch now := c.clock.Now(); {
		case len(told) > promised || len(left) != before:
			progress, before = now, len(left)
		case now.Sub(progress) > c.patience:
			return stuck(left)
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return errors.Join(err, stuck(left))
		}
	}
}

// list returns this run's objects of a resource, without their contents. A resource that the server does not have is
// empty.
func (c *Cluster) list(ctx context.Context, namespace string,
	r schema.GroupVersionResource,
) ([]metav1.PartialObjectMetadata, error) {
	ctx = quiet(ctx)
	var all []metav1.PartialObjectMetadata
	o := metav1.ListOptions{LabelSelector: c.Selector(), Limit: page}
	for restarts := 0; ; {
		l, err := c.of(r, namespace).List(ctx, o)
		switch {
		case apierrors.IsNotFound(err) && o.Continue == "":
			c.forget(r.GroupVersion()) // it may have gone with its definition
			has, e := c.Has(ctx, r)
			if e == nil && has {
				e = err // a server that denies a resource it has is not believed
			}
			return nil, e
		case apierrors.IsResourceExpired(err) && restarts < 3:
			all, o.Continue = nil, ""
			restarts++
			continue
		case err != nil:
			return nil, err
		}
		for i := range l.Items {
			if l.Items[i].Labels[OwnerLabel] != c.run {
				return nil, fmt.Errorf("the server was asked for %s, and lists %q, which is not: nothing of it is removed",
					c.Selector(), l.Items[i].Name)
			}
		}
		all = append(all, l.Items...)
		if o.Continue = l.Continue; o.Continue == "" {
			return all, nil
		}
	}
}

func (c *Cluster) of(r schema.GroupVersionResource, namespace string) metadata.ResourceInterface {
	if namespace == "" {
		return c.metadata.Resource(r)
	}
	return c.metadata.Resource(r).Namespace(namespace)
}

// deleteEach requests the deletion of all objects that are not being deleted yet, once each, and by uid, so that a new
// object of the same name stays. It adds those that the server accepted to told.
func (c *Cluster) deleteEach(ctx context.Context, r schema.GroupVersionResource, left []metav1.PartialObjectMetadata,
	told map[string]bool,
) error {
	todo := slices.DeleteFunc(slices.Clone(left), func(o metav1.PartialObjectMetadata) bool {
		return told[identity(&o)] || o.DeletionTimestamp != nil && (r != pods || graceOf(&o) == 0)
	})
	var mu sync.Mutex
	err := Each(ctx, len(todo), abreast, func(ctx context.Context, i int) error {
		o := &todo[i]
		err := c.of(r, o.Namespace).Delete(ctx, o.Name, deleteOptions(r, o, c.bare))
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // gone, or replaced: the next list shows
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		told[identity(o)] = true
		return nil
	})
	if err == nil && c.bare && r == namespaces {
		err = c.finalize(ctx, left)
	}
	return err
}

func identity(o *metav1.PartialObjectMetadata) string {
	return o.Namespace + "/" + o.Name + "/" + string(o.UID)
}

func graceOf(o *metav1.PartialObjectMetadata) int64 {
	if o.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return *o.DeletionGracePeriodSeconds
}

func deleteOptions(r schema.GroupVersionResource, o *metav1.PartialObjectMetadata, bare bool) metav1.DeleteOptions {
	d := metav1.DeleteOptions{}
	if o.UID != "" {
		d.Preconditions = &metav1.Preconditions{UID: &o.UID}
	}
	if r == pods {
		d.GracePeriodSeconds = new(int64)
	}
	how := metav1.DeletePropagationBackground
	if !bare && (r.Group == "apps" || r.Group == "batch") {
		how = metav1.DeletePropagationForeground // their dependents must be gone too
	}
	d.PropagationPolicy = &how
	return d
}

// stuck returns an error that names the objects that remain.
func stuck(left []metav1.PartialObjectMetadata) error {
	const most = 5
	words := make([]string, 0, most)
	for i := range left[:min(most, len(left))] {
		o := &left[i]
		name := o.Name
		if o.Namespace != "" {
			name = o.Namespace + "/" + name
		}
		if len(o.Finalizers) > 0 {
			name += " (finalizers " + strings.Join(o.Finalizers, ", ") + ")"
		}
		words = append(words, name)
	}
	if len(left) > most {
		words = append(words, fmt.Sprintf("and %d more", len(left)-most))
	}
	return fmt.Errorf("%d did not go: %s", len(left), strings.Join(words, ", "))
}
