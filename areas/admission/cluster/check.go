package cluster

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Right is a permission: a verb on a resource in all namespaces, or on a non-resource path.
type Right struct {
	Verb, Group, Resource string
	Path                  string // "/metrics"; then there is no resource
}

// String returns "delete pods" or "create validatingadmissionpolicies.admissionregistration.k8s.io".
func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	return r.Verb + " " + schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
}

// metricsPath is the path of the server's own metrics.
const metricsPath = "/metrics"

// MetricsRight returns the right to read the server's own metrics.
func MetricsRight() Right { return Right{Verb: "get", Path: metricsPath} }

// Optional says what a run loses without the right; ok is false for a right that a run needs.
func (r Right) Optional() (lost string, ok bool) {
	if r.Path != metricsPath {
		return "", false
	}
	return "how many policies looked at a request is known from samples alone (the first, one in the middle and the " +
		"last are tried), " +
		"and attribution, requests by the server's own clock and the objectives of API calls are missing", true
}

// Rights splits rules into single rights.
func Rights(rules []rbacv1.PolicyRule) []Right {
	var out []Right
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, path := range rule.NonResourceURLs {
				out = append(out, Right{Verb: verb, Path: path})
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					out = append(out, Right{Verb: verb, Group: group, Resource: resource})
				}
			}
		}
	}
	return out
}

// Check returns the rights that the server's user lacks, by one SelfSubjectAccessReview each. It stores nothing.
func (c *Cluster) Check(ctx context.Context, rules []rbacv1.PolicyRule) ([]Right, error) {
	rights := Rights(rules)
	allowed := make([]bool, len(rights))
	err := Each(ctx, len(rights), 4, func(ctx context.Context, i int) (err error) {
		allowed[i], err = c.may(ctx, rights[i])
		return err
	})
	if err != nil {
		return nil, c.scrub(fmt.Errorf("ask %s for the user's rights: %w", c.location, err))
	}
	var missing []Right
	for i, r := range rights {
		if !allowed[i] {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

var (
	accessReviews = schema.GroupVersionResource{
		Group: "authorization.k8s.io", Version: "v1",
		Resource: "selfsubjectaccessreviews",
	}
	selfReviews = schema.GroupVersionResource{
		Group: "authentication.k8s.io", Version: "v1",
		Resource: "selfsubjectreviews",
	}
)

func (c *Cluster) may(ctx context.Context, r Right) (bool, error) {
	spec := map[string]any{"resourceAttributes": map[string]any{"verb": r.Verb, "group": r.Group, "resource": r.Resource}}
	if r.Path != "" {
		spec = map[string]any{"nonResourceAttributes": map[string]any{"verb": r.Verb, "path": r.Path}}
	}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"metadata": map[string]any{}, "spec": spec,
	}}
	answer, err := c.dynamic.Resource(accessReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, found, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	if err != nil || !found {
		return false, errors.New("the answer to a SelfSubjectAccessReview has no status")
	}
	return allowed, nil
}

// User returns the name of the user as the server knows it; "" where the server cannot report it (before Kubernetes
// 1.28).
func (c *Cluster) User(ctx context.Context) (string, error) {
	has, err := c.Has(ctx, selfReviews)
	if err != nil || !has {
		return "", err
	}
	review := object("authentication.k8s.io/v1", "SelfSubjectReview", "", "")
	answer, err := c.dynamic.Resource(selfReviews).Create(quiet(ctx), review, metav1.CreateOptions{})
	if err != nil {
		return "", c.scrub(fmt.Errorf("ask %s who we are: %w", c.location, err))
	}
	name, _, err := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	if err != nil {
		return "", errors.New("the answer to a SelfSubjectReview has no user")
	}
	return c.guard.scrub(name), nil
}
