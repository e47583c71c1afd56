package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Names that objects carry.
const (
	// OwnerLabel says which run created an object. Only what carries it is ever removed.
	OwnerLabel = "tare.dev/run"
	// ManagerLabel and Manager are the labels that Kubernetes recommends for tools.
	ManagerLabel = "app.kubernetes.io/managed-by"
	Manager      = "tare"
	// contentKey is an annotation with a hash of what was to be created, so that a second attempt tells the same object from another.
	contentKey = "tare.dev/content"
)

// abreast is how many requests of setting up are under way at once.
const abreast = 32

var runPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

func checkRun(id string) error {
	if !runPattern.MatchString(id) {
		return fmt.Errorf("run id %q is not 1 to 32 lower case letters, digits and dashes", id)
	}
	return nil
}

// Labels are what every object of the run carries.
func (c *Cluster) Labels() map[string]string {
	return map[string]string{OwnerLabel: c.run, ManagerLabel: Manager}
}

// Selector finds the objects of the run.
func (c *Cluster) Selector() string { return OwnerLabel + "=" + c.run }

// Apply creates objects, in their order; those of one kind that follow one another are created up to parallel at once. It never changes an
// object: one that is there already is fine when this run created the same, and else an error that names it.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured, parallel int) error {
	ctx = quiet(ctx)
	for start := 0; start < len(objects); {
		gvk, end := objects[start].GroupVersionKind(), start
		for end < len(objects) && objects[end].GroupVersionKind() == gvk {
			end++
		}
		k, err := c.awaitKind(ctx, gvk)
		if err != nil {
			return c.notCreated(objects[start], err)
		}
		if k.Resource == definitions || k.Resource == "apiservices" {
			c.defined.Store(true)
		}
		same := objects[start:end]
		err = each(ctx, len(same), parallel, func(ctx context.Context, i int) error { return c.create(ctx, k, same[i]) })
		if err != nil {
			return err
		}
		start = end
	}
	return nil
}

// create makes one object, which it copies.
func (c *Cluster) create(ctx context.Context, k kind, o *unstructured.Unstructured) error {
	if err := checkObject(k, o); err != nil {
		return c.notCreated(o, err)
	}
	o = c.own(o)
	for deadline := c.clock.Now().Add(c.patience); ; {
		_, err := c.in(k, o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: Manager})
		if !apierrors.IsAlreadyExists(err) {
			return c.notCreated(o, err)
		}
		gone, err := c.checkExisting(ctx, k, o)
		if err != nil || !gone {
			return c.notCreated(o, err)
		}
		if c.clock.Now().After(deadline) {
			return c.notCreated(o, errors.New("an earlier one of this run is being deleted, and does not go"))
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return c.notCreated(o, err)
		}
	}
}

func (c *Cluster) notCreated(o *unstructured.Unstructured, err error) error {
	if err == nil {
		return nil
	}
	return c.scrub(fmt.Errorf("create %s: %w", nameOf(o), err))
}

// checkExisting judges an object that is there already. gone: it is about to go, or has gone.
func (c *Cluster) checkExisting(ctx context.Context, k kind, want *unstructured.Unstructured) (gone bool, err error) {
	there, err := c.in(k, want.GetNamespace()).Get(ctx, want.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	switch owner, ok := there.GetLabels()[OwnerLabel]; {
	case !ok:
		return false, errors.New("it is there already, and tare did not create it: it is left as it is")
	case owner != c.run:
		return false, fmt.Errorf("it is there already, from another run (%s=%s): undo that run first", OwnerLabel, owner)
	case there.GetDeletionTimestamp() != nil:
		return true, nil
	case there.GetAnnotations()[contentKey] != want.GetAnnotations()[contentKey]:
		return false, errors.New("it is there already, from this run, but with other contents: remove it first")
	}
	return false, nil
}

// own is a copy of o that says whose it is.
func (c *Cluster) own(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, c.Labels())
	o.SetLabels(labels)
	notes := o.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	delete(notes, contentKey)
	o.SetAnnotations(notes)
	notes[contentKey] = contentOf(o)
	o.SetAnnotations(notes)
	return o
}

func contentOf(o *unstructured.Unstructured) string {
	text, err := json.Marshal(o.Object) // sorts the keys
	if err != nil {
		return "none"
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func checkObject(k kind, o *unstructured.Unstructured) error {
	switch {
	case o.GetName() == "":
		return errors.New("it needs a name (metadata.name): one that the server makes up could not be found again")
	case k.Namespaced && o.GetNamespace() == "":
		return errors.New("it needs a namespace (metadata.namespace)")
	case !k.Namespaced && o.GetNamespace() != "":
		return errors.New("objects of its kind have no namespace")
	}
	return nil
}

func (c *Cluster) in(k kind, namespace string) dynamic.ResourceInterface {
	if k.Namespaced {
		return c.dynamic.Resource(k.GroupVersionResource).Namespace(namespace)
	}
	return c.dynamic.Resource(k.GroupVersionResource)
}

// nameOf is "Pod tare-1/a".
func nameOf(o *unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetKind() + " " + name
}

// kind is a resource that the server has.
type kind struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// errNoKind says that the server does not have a kind.
var errNoKind = errors.New("the server does not have this kind")

// awaitKind finds a kind. Where definitions were created before, it waits for one that is not there yet: a CustomResourceDefinition is served
// some time after it was created.
func (c *Cluster) awaitKind(ctx context.Context, gvk schema.GroupVersionKind) (kind, error) {
	for deadline := c.clock.Now().Add(min(c.patience, kindPatience)); ; {
		k, err := c.kindOf(ctx, gvk)
		if !errors.Is(err, errNoKind) || !c.defined.Load() || c.clock.Now().After(deadline) {
			return k, err
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return kind{}, err
		}
	}
}

const (
	// poll is how often it is looked whether something has come or gone.
	poll = 200 * time.Millisecond
	// kindPatience bounds the wait for a kind, which may never come.
	kindPatience = 10 * time.Second
)
