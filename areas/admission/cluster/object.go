package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Names that objects carry.
const (
	// OwnerLabel names the run that created an object. Only objects that carry it are ever removed.
	OwnerLabel = "tare.dev/run"
	// ManagerLabel and Manager are the label that Kubernetes recommends for tools.
	ManagerLabel = "app.kubernetes.io/managed-by"
	Manager      = "tare"
	// contentKey is an annotation with a hash of the object as it was to be created, so that a second attempt recognizes
	// it.
	contentKey = "tare.dev/content"
)

// abreast is how many requests of setup are in flight at once.
const abreast = 32

var runPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

func checkRun(id string) error {
	if !runPattern.MatchString(id) {
		return fmt.Errorf("run id %q is not 1 to 32 lower case letters, digits and dashes", id)
	}
	return nil
}

// Labels returns the labels of every object of the run.
func (c *Cluster) Labels() map[string]string {
	return map[string]string{OwnerLabel: c.run, ManagerLabel: Manager}
}

// Selector selects the objects of the run.
func (c *Cluster) Selector() string { return OwnerLabel + "=" + c.run }

// Apply creates objects in order; consecutive objects of one kind are created up to parallel at once. It never changes
// an object: an existing one is accepted if this run created the same, and else an error that names it. It waits for
// what an object brings about: a kind that a definition or an engine creates, and a webhook that does not answer yet. A
// creation that is not answered in time is tried again.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured, parallel int) error {
	ctx = quiet(ctx)
	for start := 0; start < len(objects); {
		gvk, end := objects[start].GroupVersionKind(), start
		for end < len(objects) && objects[end].GroupVersionKind() == gvk {
			end++
		}
		k, err := c.awaitKind(ctx, gvk, start > 0)
		if err != nil {
			return c.notCreated(objects[start], err)
		}
		same := objects[start:end]
		err = Each(ctx, len(same), parallel, func(ctx context.Context, i int) error { return c.create(ctx, k, same[i]) })
		if err != nil {
			return err
		}
		start = end
	}
	return nil
}

// create creates a copy of one object.
func (c *Cluster) create(ctx context.Context, k kind, o *unstructured.Unstructured) error {
	if err := checkObject(k, o); err != nil {
		return c.notCreated(o, err)
	}
	o = c.own(o)
	for deadline := c.clock.Now().Add(c.patience); ; {
		_, err := c.in(k, o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: Manager})
		again, err := c.judgeCreation(ctx, k, o, err)
		if !again || c.clock.Now().After(deadline) {
			return c.notCreated(o, err)
		}
		if err := c.clock.Sleep(ctx, poll); err != nil {
			return c.notCreated(o, err)
		}
	}
}

// judgeCreation decides whether a failed creation is worth another attempt, and returns the error to report if not.
func (c *Cluster) judgeCreation(ctx context.Context, k kind, o *unstructured.Unstructured,
	err error,
) (again bool, _ error) {
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsAlreadyExists(err):
		gone, err := c.checkExisting(ctx, k, o)
		if err == nil && gone {
			err = errors.New("an earlier one of this run is being deleted, and does not go")
		}
		return gone, err
	}
	return isUnsettled(err) || ranOut(ctx, err), err
}

// ranOut reports whether a request was not answered in time, or the API server says that it ran out of time itself. The
// object may have been created all the same, which a second attempt recognizes.
func ranOut(ctx context.Context, err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ctx.Err() == nil && (ok && timeout.Timeout() || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err))
}

// isUnsettled reports whether the API server's answer is transient: it lists a kind some moments before it serves it
// and after the kind is gone, refuses objects of a kind that is being removed, calls webhooks whose server is not up
// yet, and refuses what a policy is about until it has found the kind of the policy's parameter, for which it looks
// every half minute.
func isUnsettled(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch s := status.Status(); {
	case LacksParamKind(s.Message):
		return true
	case apierrors.IsNotFound(err):
		return s.Details == nil || s.Details.Kind != "namespaces"
	case apierrors.IsMethodNotSupported(err):
		return true
	case apierrors.IsInternalError(err):
		return strings.Contains(s.Message, "failed calling webhook")
	}
	return false
}

// LacksParamKind reports whether an API server says that it has not found the kind of a policy's parameter yet.
func LacksParamKind(message string) bool {
	return strings.Contains(message, "failed to find resource referenced by paramKind")
}

func (c *Cluster) notCreated(o *unstructured.Unstructured, err error) error {
	if err == nil {
		return nil
	}
	return &NotCreatedError{o, c.scrub(fmt.Errorf("create %s: %w", nameOf(o), err))}
}

// A NotCreatedError says that an object was not created.
type NotCreatedError struct {
	Object *unstructured.Unstructured
	err    error
}

func (e *NotCreatedError) Error() string { return e.err.Error() }

// Unwrap implements what errors.Is needs.
func (e *NotCreatedError) Unwrap() error { return e.err }

// checkExisting checks an object that already exists. gone: it is being deleted, or has been.
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

// own returns a copy of o with this run's labels.
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

// nameOf returns "Pod tare-1/a".
func nameOf(o *unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetKind() + " " + name
}

// poll is the interval at which a wait checks whether something has appeared or disappeared.
const poll = 200 * time.Millisecond
