package admission

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tare/areas/admission/cluster"
	"tare/internal/unit"
)

var (
	// policyReports are about an object each, to which they belong.
	policyReports = schema.GroupVersionResource{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}
	// requestReports are about a request each, until Kyverno's reports controller adds them to the report about the
	// object, some ten seconds later.
	requestReports = schema.GroupVersionResource{
		Group: "reports.kyverno.io", Version: "v1", Resource: "ephemeralreports",
	}
	requestReportsOnly = "audit.kyverno.io/source=admission"
)

// reporting reports whether a reports controller runs beside an engine.
func (p *arm) reporting() bool {
	return slices.ContainsFunc(p.engines, func(e *runningEngine) bool { return e.with(e.kind.Auditor) })
}

// noteUnreported keeps how many requests are yet to be reported on when a trial ends.
func (p *arm) noteUnreported(ctx context.Context) error {
	if !p.reporting() {
		return nil
	}
	left := 0
	err := p.policies.keeper.ForEach(ctx, requestReports, p.namespace, requestReportsOnly,
		func(*unstructured.Unstructured) { left++ })
	switch {
	case apierrors.IsNotFound(err): // a version with reports of another kind
		return nil
	case err != nil:
		return fmt.Errorf("look at what Kyverno has yet to report on: %w", err)
	}
	p.policies.unreported = max(p.policies.unreported, left)
	return nil
}

// clearReports deletes, after a trial, what is yet to be reported on, which would slow the trials of others, and the
// reports about objects that are gone, which a controller-manager would delete.
func (p *arm) clearReports(ctx context.Context) error {
	if !p.reporting() {
		return nil
	}
	dynamic := p.policies.keeper.Dynamic()
	requests := dynamic.Resource(requestReports).Namespace(p.namespace)
	err := requests.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: requestReportsOnly})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete what Kyverno has yet to report on: %w", err)
	}
	reports := dynamic.Resource(policyReports).Namespace(p.namespace)
	var all []about
	err = p.policies.keeper.ForEach(ctx, policyReports, p.namespace, "", func(o *unstructured.Unstructured) {
		for _, owner := range o.GetOwnerReferences()[:min(1, len(o.GetOwnerReferences()))] {
			all = append(all, about{o.GetName(), owner.UID, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)})
		}
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look at Kyverno's reports: %w", err)
	}
	gone, err := p.aboutNothing(ctx, all)
	if err != nil {
		return err
	}
	return cluster.Each(ctx, len(gone), applyAbreast, func(ctx context.Context, i int) error {
		if err := reports.Delete(ctx, gone[i], metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete a report about what is gone: %w", err)
		}
		return nil
	})
}

// about is a report, and the object that it belongs to.
type about struct {
	report string
	owner  types.UID
	kind   schema.GroupVersionKind
}

// aboutNothing are the names of reports that belong to objects of the namespace which are gone.
func (p *arm) aboutNothing(ctx context.Context, reports []about) (out []string, err error) {
	there := map[schema.GroupVersionKind]map[types.UID]bool{}
	for _, r := range reports {
		if there[r.kind] == nil {
			if there[r.kind], err = p.objectsOf(ctx, r.kind); err != nil {
				return nil, err
			}
		}
		if !there[r.kind][r.owner] {
			out = append(out, r.report)
		}
	}
	return out, nil
}

// objectsOf has the UIDs of the objects of a kind in the arm's namespace.
func (p *arm) objectsOf(ctx context.Context, kind schema.GroupVersionKind) (map[types.UID]bool, error) {
	out := map[types.UID]bool{}
	resources, _, err := p.policies.keeper.Lookup(ctx, []schema.GroupVersionKind{kind})
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		err := p.policies.keeper.ForEach(ctx, r, p.namespace, "",
			func(o *unstructured.Unstructured) { out[o.GetUID()] = true })
		if err != nil {
			return nil, fmt.Errorf("look for the objects of reports: %w", err)
		}
	}
	return out, nil
}

// reportNotes says what of reports is not in the numbers.
func (p *arm) reportNotes() []string {
	if p.policies.unreported == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: when a trial ended, Kyverno had up to %s left that it was yet to report on, which "+
		"it does some ten seconds later: tare has deleted that, and what it would have taken is not in these numbers; the "+
		"longer a trial, the smaller its share", p.spec.Bundle, unit.Count(p.policies.unreported, "request"))}
}
