package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/engine"
	"tare/areas/admission/own"
)

// audits says who looks again at what exists, whether that was seen, and what does not run.
func (p *arm) audits(e *runningEngine) string {
	background := ""
	if e.with(e.kind.Background) {
		background = e.kind.Background.Title + " runs beside it, since policies generate objects or change other ones; "
	}
	every := p.spec.Audit
	switch {
	case every == 0:
		return background + "without reports, audits and its other controllers"
	case !e.with(e.kind.Auditor):
		return fmt.Sprintf("it audits what exists every %v, in the same process", every)
	}
	seen := "it has reported about a pod"
	if !e.reported {
		seen = "it was not seen to report about a pod"
	}
	return fmt.Sprintf("%s%s runs beside it and scans what exists every %v, and it writes a report of each request (%s); "+
		"without its other controllers", background, e.kind.Auditor.Title, every, seen)
}

// awaitAudit waits until each engine that audits has looked at what exists: measured earlier, its cost would be absent.
func (p *arm) awaitAudit(ctx context.Context) error {
	if p.spec.Audit == 0 {
		return nil
	}
	for _, e := range p.engines {
		if e.with(e.kind.Auditor) {
			if err := p.awaitReport(ctx, e); err != nil {
				return err
			}
			continue
		}
		within, what := p.spec.Audit.Std()+settleWithin, e.kind.Title+" has not audited what exists"
		if err := p.awaitWithin(ctx, within, what, func() error { return p.audited(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// auditWarnings says that no trial was as long as the interval of audits.
func (p *arm) auditWarnings() []string {
	if p.longest == 0 || p.longest >= p.spec.Audit.Std() || len(p.engines) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("audit: what exists is looked at every %v, and no trial lasted longer than %v, so that "+
		"most trials hold little or nothing of what that costs: a shorter interval or a longer load.duration has it in the "+
		"numbers", p.spec.Audit, p.longest.Round(time.Second))}
}

// reportWithin bounds the wait for a report about a new pod, which Kyverno writes half a minute later.
const reportWithin = 2 * time.Minute

// awaitReport has an auditor report about a pod. That it does not is no error: policies without background scans have
// none.
func (p *arm) awaitReport(ctx context.Context, e *runningEngine) error {
	in := p.policies.keeper.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
		Namespace(p.namespace)
	pod, err := p.createAudited(ctx)
	if err != nil {
		return err
	}
	err = p.awaitWithin(ctx, reportWithin, errUnreported.Error(), func() error { return p.isReported(ctx, pod) })
	if e.reported = err == nil; errors.Is(err, errUnreported) {
		err = nil
	}
	return errors.Join(err, in.Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// audited reports that a constraint has not been audited.
func (p *arm) audited(ctx context.Context) error {
	for _, o := range p.policies.rendered.Objects {
		if own.EngineOf(o) != engine.Gatekeeper.Name || own.Defines(o) || own.Mutates(o) { // it audits constraints alone
			continue
		}
		r, err := p.resourceOf(ctx, o)
		if err != nil {
			return err
		}
		is, err := p.policies.keeper.Dynamic().Resource(r).Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if at, _, _ := unstructured.NestedString(is.Object, "status", "auditTimestamp"); at == "" {
			return fmt.Errorf("the status of %s %s has no auditTimestamp", o.GetKind(), o.GetName())
		}
	}
	return nil
}

// createAudited creates the pod that the policies must admit, for an auditor to report about, and returns its name.
func (p *arm) createAudited(ctx context.Context) (name string, err error) {
	body, pod := p.policies.proof.Good.Pod, &unstructured.Unstructured{}
	if err := pod.UnmarshalJSON(body); err != nil {
		return "", err
	}
	a, err := p.asker.do(ctx, http.MethodPost, p.prefix+resources()[0].path(p.namespace), jsonType, body)
	if err == nil && a.status != http.StatusCreated {
		err = fmt.Errorf("it is answered by %d %s", a.status, a.message())
	}
	if err != nil {
		return "", fmt.Errorf("create a pod for audits to report about: %w", err)
	}
	return pod.GetName(), nil
}

var errUnreported = errors.New("no report about a pod was written by Kyverno's reports controller")

// isReported reports whether Kyverno's reports controller has written a report about a pod.
func (p *arm) isReported(ctx context.Context, pod string) error {
	found := false
	err := p.policies.keeper.ForEach(ctx, policyReports, p.namespace, "", func(o *unstructured.Unstructured) {
		name, _, _ := unstructured.NestedString(o.Object, "scope", "name")
		found = found || name == pod
	})
	if apierrors.IsNotFound(err) { // a version with reports of another kind
		return errUnreported
	}
	if err == nil && !found {
		err = errUnreported
	}
	return err
}
