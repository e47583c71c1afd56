package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

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
	progress, least, removed := c.clock.Now(), math.MaxInt, 0
	told := map[string]bool{} // what the server has accepted to delete, of what was left
	for {
		n, promised, still := 0, 0, map[string]bool{}
		var names []string
		err := c.list(ctx, namespace, r, func(left []metav1.PartialObjectMetadata) (bool, error) {
			for i := range left[:min(len(left), mostNamed-len(names))] {
				names = append(names, remnant(&left[i]))
			}
			accepted, err := c.deleteEach(ctx, r, left, told, still)
			n, promised = n+len(left), promised+accepted
			return n < c.pass, err
		})
		cut := n > 0 && apierrors.IsResourceExpired(err) // the next pass goes on
		if err != nil && !cut || n == 0 {
			return err
		}
		told = still
		if removed += promised; removed > c.most() {
			return fmt.Errorf("there are ever more: %d were removed; if the run made as many, undo it once more", removed)
		}
		switch now := c.clock.Now(); {
		case promised > 0 || n < least && !cut:
			progress, least = now, n
		case now.Sub(progress) > c.patience:
			return stuck(n, names)
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return errors.Join(err, stuck(n, names))
		}
	}
}

// list calls do with pages of this run's objects of a resource, without their contents, until do returns false. A
// resource that the server does not have is empty.
func (c *Cluster) list(ctx context.Context, namespace string, r schema.GroupVersionResource,
	do func(page []metav1.PartialObjectMetadata) (more bool, err error),
) error {
	o := metav1.ListOptions{LabelSelector: c.Selector()}
	return c.pages(quiet(ctx), o, func(ctx context.Context, o metav1.ListOptions) (int, string, error) {
		l, err := c.of(r, namespace).List(ctx, o)
		if apierrors.IsNotFound(err) && o.Continue == "" {
			c.forget(r.GroupVersion()) // it may have gone with its definition
			has, e := c.Has(ctx, r)
			if e == nil && has {
				e = err // a server that denies a resource it has is not believed
			}
			return 0, "", e
		}
		if err != nil {
			return 0, "", err
		}
		for i := range l.Items {
			switch id := identity(&l.Items[i]); {
			case l.Items[i].Labels[OwnerLabel] != c.run:
				return 0, "", fmt.Errorf("the server was asked for %s, and lists %q, which is not: nothing of it is removed",
					c.Selector(), l.Items[i].Name)
			case len(id) > mostIdentity:
				return 0, "", fmt.Errorf("the server lists an object whose name has %d bytes", len(id))
			}
		}
		if more, err := do(l.Items); !more || err != nil {
			return 0, "", err
		}
		return len(l.Items), l.Continue, nil
	})
}

func (c *Cluster) of(r schema.GroupVersionResource, namespace string) metadata.ResourceInterface {
	if namespace == "" {
		return c.metadata.Resource(r)
	}
	return c.metadata.Resource(r).Namespace(namespace)
}

// deleteEach requests the deletion of all objects that are not being deleted yet, once each, and by uid, so that a new
// object of the same name stays. It adds to still those that the server accepts, or accepted before: they are in told.
func (c *Cluster) deleteEach(ctx context.Context, r schema.GroupVersionResource, left []metav1.PartialObjectMetadata,
	told, still map[string]bool,
) (accepted int, err error) {
	todo := slices.DeleteFunc(slices.Clone(left), func(o metav1.PartialObjectMetadata) bool {
		id := identity(&o)
		if told[id] {
			still[id] = true
		}
		return told[id] || o.DeletionTimestamp != nil && (r != pods || graceOf(&o) == 0)
	})
	var mu sync.Mutex
	err = Each(ctx, len(todo), abreast, func(ctx context.Context, i int) error {
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
		still[identity(o)] = true
		accepted++
		return nil
	})
	if err == nil && c.bare && r == namespaces {
		err = c.finalize(ctx, left)
	}
	return accepted, err
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

// mostNamed is how many objects the error names that remain, and mostIdentity how long the name, namespace and uid of
// one may be together, in bytes: a real server's have at most half as many.
const (
	mostNamed    = 5
	mostIdentity = 1 << 10
)

// remnant names an object that remains, and what holds it.
func remnant(o *metav1.PartialObjectMetadata) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	if len(o.Finalizers) > 0 {
		name += " (finalizers " + strings.Join(o.Finalizers, ", ") + ")"
	}
	return clean(name)
}

// stuck returns an error that names some of the objects that remain.
func stuck(n int, names []string) error {
	if more := n - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%d did not go: %s", n, strings.Join(names, ", "))
}
