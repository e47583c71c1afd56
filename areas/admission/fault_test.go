package admission

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
	"tare/internal/design"
	"tare/rigs/hosttest"
)

// foreignPolicy is a policy of somebody else that denies pods with this label everywhere.
func foreignPolicy(name, expression string) []*unstructured.Unstructured {
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
			"metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	return []*unstructured.Unstructured{
		object("ValidatingAdmissionPolicy", map[string]any{
			"failurePolicy": "Fail",
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups":   []any{""},
				"apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
			}}},
			"validations": []any{map[string]any{"expression": expression, "message": "denied by a stranger"}},
		}),
		object("ValidatingAdmissionPolicyBinding", map[string]any{"policyName": name, "validationActions": []any{"Deny"}}),
	}
}

func plural(kind string) schema.GroupVersionResource {
	r := strings.ToLower(kind) + "s"
	if strings.HasSuffix(kind, "Policy") {
		r = strings.TrimSuffix(strings.ToLower(kind), "y") + "ies"
	}
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: r}
}

// createBehind creates objects that tare does not know of.
func createBehind(t *testing.T, p *arm, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if _, err := p.admin.Dynamic().Resource(plural(o.GetKind())).Create(t.Context(), o,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// deleteBehind deletes an object without telling tare.
func deleteBehind(t *testing.T, p *arm, kind, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also at the end of the test
	if err := p.admin.Dynamic().Resource(plural(kind)).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wantVerifyFails waits until Verify fails, with these words in its error; a | stands between the words of two checks,
// either of which may find the fault first. A fault takes time to show.
func wantVerifyFails(t *testing.T, tg *target, tr design.Treatment, words ...string) {
	t.Helper()
	p := armOf(t, tg, tr)
	begin := p.env.Clock.Now()
	for {
		err := tg.Verify(t.Context(), tr)
		if err == nil && p.env.Clock.Now().Sub(begin) < settleWithin {
			if e := p.env.Clock.Sleep(t.Context(), pause); e != nil {
				t.Fatal(e)
			}
			continue
		}
		for _, w := range words {
			if err == nil || !regexp.MustCompile(w).MatchString(err.Error()) {
				t.Errorf("verify: %v; want %q", err, w)
			}
		}
		return
	}
}

// createStranger creates a policy that denies what expression says, until the end of the test.
func createStranger(t *testing.T, p *arm, expression string) {
	t.Helper()
	objects := foreignPolicy("a-stranger", expression)
	createBehind(t, p, objects)
	t.Cleanup(func() {
		for _, o := range objects {
			deleteBehind(t, p, o.GetKind(), o.GetName())
		}
	})
}

// TestVerifyFindsPlantedFaults: a treatment that is not in force, or that is not the only one in force, is not
// measured.
func TestVerifyFindsPlantedFaults(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	tg, j := openedShared(t, &Spec{}, testEnv(t))
	vap := []string{"mechanism", "vap", "policies", "3"}
	const webhookStopped = "webhook stopped"
	name := func(p *arm, k int) string { return mechanism.Policies(p.population, p.scope())[k].Name }
	for _, c := range []struct {
		name   string
		levels []string
		fault  func(*testing.T, *arm)
		says   []string
	}{
		{
			"policy gone", vap, func(t *testing.T, p *arm) { deleteBehind(t, p, "ValidatingAdmissionPolicy", name(p, 1)) },
			[]string{"c-relevant-00002"},
		},
		{
			"binding gone", vap, func(t *testing.T, p *arm) {
				deleteBehind(t, p, "ValidatingAdmissionPolicyBinding", name(p, 2))
			},
			[]string{"c-relevant-00003"},
		},
		{"all bindings gone", vap, func(t *testing.T, p *arm) {
			for k := range 3 {
				deleteBehind(t, p, "ValidatingAdmissionPolicyBinding", name(p, k))
			}
		}, []string{"not in force", "was admitted, and must be denied"}},
		{"another policy decides too", []string{"mechanism", "webhook", "policies", "2"}, func(t *testing.T, p *arm) {
			createStranger(t, p, "!('tare.dev/deny' in object.metadata.?labels.orValue({}))")
		}, []string{"not these alone", "and not"}},
		{"no baseline", []string{"mechanism", "none"}, func(t *testing.T, p *arm) {
			createStranger(t, p, "object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false))")
		}, []string{"the baseline is none", "denied by a stranger"}},
		{"webhook not asked", []string{"mechanism", "webhook", "policies", "2"}, func(t *testing.T, p *arm) {
			deleteBehind(t, p, "ValidatingWebhookConfiguration", name(p, 1))
		}, []string{"c-relevant-00002"}},
		{"another namespace label", []string{"mechanism", "psa"}, func(t *testing.T, p *arm) {
			patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
			if err := p.set(t.Context(), "PATCH", "/api/v1/namespaces/"+p.namespace, patchType, patch); err != nil {
				t.Fatal(err)
			}
		}, []string{"not in force"}},
		{"mutation missing", []string{"mechanism", "map", "policies", "2"}, func(t *testing.T, p *arm) {
			deleteBehind(t, p, "MutatingAdmissionPolicyBinding", name(p, 1))
		}, []string{"annotation|should have put there"}},
		{"caller without rights", []string{"mechanism", "none"}, func(t *testing.T, p *arm) {
			path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + p.namespace + "/rolebindings/tare-caller"
			if err := p.set(t.Context(), "DELETE", path, "", nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"cannot create resource"}},
		{webhookStopped, []string{"mechanism", "webhook", "policies", "2"}, func(t *testing.T, p *arm) {
			if err := p.webhook.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}, []string{"webhook"}}, // the last, since a webhook that has ended stays so
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := treatment(c.levels...)
			if _, err := tg.arms.Of(tr); err != nil {
				if err := tg.Prepare(t.Context(), tr, j); err != nil {
					t.Fatal(err)
				}
			}
			if err := tg.Enter(t.Context(), tr); err != nil {
				t.Fatalf("enter: %v", err)
			}
			if err := tg.Verify(t.Context(), tr); err != nil {
				t.Fatalf("before the fault: %v", err)
			}
			c.fault(t, armOf(t, tg, tr))
			wantVerifyFails(t, tg, tr, c.says...)
			err := tg.Leave(t.Context(), tr)
			if stopped := c.name == webhookStopped; stopped != (err != nil) ||
				stopped && !strings.Contains(err.Error(), "ended by itself") {
				t.Errorf("leave: %v", err)
			}
		})
	}
}
