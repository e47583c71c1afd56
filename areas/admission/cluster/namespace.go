package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// EnsureNamespace creates a namespace with labels and its default ServiceAccount, without which no pod can be created
// in it.
func (c *Cluster) EnsureNamespace(ctx context.Context, name string, labels map[string]string) error {
	ctx = quiet(ctx)
	ns := object("v1", "Namespace", "", name)
	ns.SetLabels(labels)
	if err := c.Apply(ctx, []*unstructured.Unstructured{ns}, 1); err != nil {
		return err
	}
	if c.bare {
		return c.Apply(ctx, []*unstructured.Unstructured{object("v1", "ServiceAccount", name, "default")}, 1)
	}
	for deadline := c.clock.Now().Add(c.patience); ; {
		_, err := c.of(accounts, name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if apierrors.IsNotFound(err) && c.clock.Now().After(deadline) {
			err = fmt.Errorf("it did not come within %s: no controller-manager seems to run", c.patience)
		} else if apierrors.IsNotFound(err) {
			err = c.clock.Sleep(ctx, poll)
		}
		if err != nil {
			return c.scrub(fmt.Errorf("wait for ServiceAccount %s/default: %w", name, err))
		}
	}
}

// NoControllers returns an error if no controller-manager seems to run: the namespace default has no ServiceAccount.
// Nothing is known where the user may not read it.
func (c *Cluster) NoControllers(ctx context.Context) error {
	_, err := c.of(accounts, metav1.NamespaceDefault).Get(quiet(ctx), "default", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	return errors.New("no controller-manager seems to run there, since the namespace default has no ServiceAccount " +
		"default: no pod could be created in a new namespace, and no namespace would be removed")
}

// finalize completes the deletion of namespaces on a server without the controller for it. They must be empty of what
// matters.
func (c *Cluster) finalize(ctx context.Context, left []metav1.PartialObjectMetadata) error {
	ctx = quiet(ctx)
	for i := range left {
		ns := object("v1", "Namespace", "", left[i].Name)
		ns.Object["spec"] = map[string]any{"finalizers": []any{}}
		_, err := c.dynamic.Resource(namespaces).Update(ctx, ns, metav1.UpdateOptions{}, "finalize")
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("finalize %s: %w", left[i].Name, err)
		}
	}
	return nil
}

// CallerRole is the name of the Role, and of its binding, that EnsureRole creates.
const CallerRole = "tare-caller"

// EnsureRole grants a user the rules in the namespace.
func (c *Cluster) EnsureRole(ctx context.Context, namespace, caller string, rules []rbacv1.PolicyRule) error {
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: CallerRole, Namespace: namespace},
		Rules:      rules,
	}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: CallerRole, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: CallerRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: caller}},
	}
	var objects []*unstructured.Unstructured
	for _, o := range []any{role, binding} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("let %s into namespace %s: %w", caller, namespace, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return c.Apply(ctx, objects, 1)
}

// object returns an object without contents.
func object(version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetName(name)
	if namespace != "" {
		o.SetNamespace(namespace)
	}
	return o
}

// Denied reports whether an error is the server's refusal, of the user or by a policy.
func Denied(err error) bool {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return false
	}
	code := s.Status().Code
	return code == http.StatusForbidden || code == http.StatusUnauthorized
}
