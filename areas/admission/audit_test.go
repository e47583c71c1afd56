package admission

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"tare/internal/design"
	"tare/internal/probe"
	"tare/internal/unit"
)

// TestAuditIsChecked: an interval that no engine would keep is refused, and one that holds for all treatments is about
// those with engines.
func TestAuditIsChecked(t *testing.T) {
	every := unit.Duration(15 * time.Second)
	kyverno, idle := treatment("bundle", "testdata/kyverno"), treatment("bundle", "none", "gatekeeper", "3.23.1")
	for name, c := range map[string]struct {
		spec Spec
		tr   design.Treatment
		want string // programs, or the error
	}{
		"by default":    {Spec{}, kyverno, "kyverno"},
		"of Kyverno":    {Spec{Audit: every}, kyverno, "kyverno kyverno-reports"},
		"as a level":    {Spec{}, treatment("bundle", "testdata/kyverno", "audit", "15s"), "kyverno kyverno-reports"},
		"switched off":  {Spec{Audit: every}, treatment("bundle", "testdata/kyverno", "audit", "0s"), "kyverno"},
		"that generate": {Spec{}, treatment("bundle", "testdata/generating"), "kyverno kyverno-background"},
		"and audit": {
			Spec{Audit: every},
			treatment("bundle", "testdata/generating"),
			"kyverno kyverno-reports kyverno-background",
		},
		"of Gatekeeper":       {Spec{Audit: every}, idle, "gatekeeper"},
		"without engines":     {Spec{Audit: every}, treatment("bundle", "none"), ""},
		"of no engine":        {Spec{}, treatment("bundle", "none", "audit", "15s"), "no engine runs"},
		"no duration":         {Spec{}, treatment("bundle", "none", "audit", "often"), "audit: "},
		"too often":           {Spec{Audit: unit.Duration(time.Millisecond)}, kyverno, "whole seconds"},
		"not a whole second":  {Spec{Audit: every + 1}, kyverno, "whole seconds"},
		"too seldom":          {Spec{Audit: unit.Duration(2 * time.Hour)}, kyverno, "whole seconds"},
		"Kyverno's chart":     {Spec{Audit: unit.Duration(time.Hour)}, kyverno, "kyverno kyverno-reports"},
		"after the run":       {Spec{Audit: unit.Duration(time.Hour)}, idle, "at most 1m"},
		"in a cluster":        {Spec{Kubeconfig: "k", Audit: every}, treatment("mechanism", "none"), "as they were told to"},
		"less than no second": {Spec{Audit: -every}, kyverno, "whole seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := c.spec.plan(c.tr)
			var names []string
			for _, k := range p.neededPrograms() {
				names = append(names, k.Name)
			}
			if got := strings.Join(names, " "); err == nil && got != c.want ||
				err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// wantAudited: a real engine has looked at what exists before anything is measured, and what that takes is read. The
// treatment has been prepared, with an audit every 2 s.
func wantAudited(t *testing.T, tg *target, tr design.Treatment, subject, note string) {
	t.Helper()
	if err := errors.Join(tg.Enter(t.Context(), tr), tg.Verify(t.Context(), tr)); err != nil {
		t.Fatal(err)
	}
	wantCall(t, tg, tr)
	p := armOf(t, tg, tr)
	if err := p.audited(t.Context()); err != nil {
		t.Error(err)
	}
	path := p.prefix + resources()[0].path(p.namespace) + "/tare-probe-good"
	a, err := p.setter.do(t.Context(), http.MethodGet, path, "", nil)
	if err != nil || a.status != http.StatusNotFound {
		t.Errorf("the pod that was audited: %d %s, %v; want it gone", a.status, a.message(), err)
	}
	for _, want := range []string{note, "stand for the whole run"} {
		if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	wantLeftAlone(t, tg, tr)
	if !slices.ContainsFunc(tg.Probes(tr), func(p probe.Probe) bool { return p.Subject() == subject }) {
		t.Errorf("nothing reads what %s uses", subject)
	}
	wantReports := func() {}
	if p.reporting() {
		wantReports = writeReports(t, p)
	}
	if err := tg.Leave(t.Context(), tr); err != nil {
		t.Error(err)
	}
	wantReports()
	const short = "no trial lasted longer than"
	p.longest, p.spec.Audit = time.Second, unit.Duration(2*time.Second)
	if warnings := strings.Join(tg.Warnings(), "\n"); !strings.Contains(warnings, short) {
		t.Errorf("warnings lack that a trial of a second holds no audit: %q", warnings)
	}
	p.longest = 2 * time.Second
	if warnings := strings.Join(tg.Warnings(), "\n"); strings.Contains(warnings, short) {
		t.Errorf("a trial of two seconds is too short: %q", warnings)
	}
}

// writeReports writes reports as Kyverno does: about a pod that is gone, about an account that is not, and about a
// request. The function that it returns wants only the second to have been kept.
func writeReports(t *testing.T, p *arm) (want func()) {
	t.Helper()
	in := func(r schema.GroupVersionResource) dynamic.ResourceInterface {
		return p.policies.keeper.Dynamic().Resource(r).Namespace(p.namespace)
	}
	account, err := in(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Get(t.Context(), "default",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}
	is := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "name": "default", "uid": string(account.GetUID())}
	reports := []struct {
		name     string
		resource schema.GroupVersionResource
		report   map[string]any
		kept     bool
	}{
		{"about-a-pod", policyReports, map[string]any{
			"kind": "PolicyReport", "metadata": map[string]any{"ownerReferences": []any{pod}},
		}, false},
		{"about-an-account", policyReports, map[string]any{
			"kind": "PolicyReport", "metadata": map[string]any{"ownerReferences": []any{is}},
		}, true},
		{"about-a-request", requestReports, map[string]any{
			"kind": "EphemeralReport", "spec": map[string]any{"owner": pod},
			"metadata": map[string]any{"labels": map[string]any{"audit.kyverno.io/source": "admission"}},
		}, false},
	}
	for _, r := range reports {
		o := &unstructured.Unstructured{Object: r.report}
		o.SetAPIVersion(r.resource.GroupVersion().String())
		o.SetName(r.name)
		if _, err := in(r.resource).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		for _, r := range reports {
			_, err := in(r.resource).Get(t.Context(), r.name, metav1.GetOptions{})
			if kept := err == nil; kept != r.kept || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("the report %s: %v, want it kept: %v", r.name, err, r.kept)
			}
		}
		const left = "left that it was yet to report on"
		if notes := strings.Join(p.reportNotes(), "\n"); !strings.Contains(notes, left) {
			t.Errorf("notes lack %q: %s", left, notes)
		}
	}
}
