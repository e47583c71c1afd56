package admission

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/engine"
	"tare/areas/admission/own"
	"tare/internal/kit"
)

// installed is what a cluster of the user's shows of an engine: as much as the user may read.
type installed struct {
	replicas int64    // that are ready
	asked    []string // how the API server asks it, each way once: "Fail within 10 s"
	hidden   []string // what the user may not read
}

// findEngine finds an engine in a cluster of the user's. It must serve the kinds of the policies.
func (p *arm) findEngine(ctx context.Context, kind *engine.Kind) error {
	var kinds []schema.GroupVersionKind
	for _, o := range p.policies.rendered.Objects {
		if own.EngineOf(o) == kind.Name && o.GroupVersionKind().Group != own.ConstraintGroup {
			kinds = append(kinds, o.GroupVersionKind())
		}
	}
	_, missing, err := p.policies.keeper.Lookup(ctx, kinds)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("the cluster has no kind %s in %s: install %s, in a version that has it, or leave kubeconfig out",
			missing[0].Kind, missing[0].GroupVersion(), kind.Title)
	}
	e := &runningEngine{engineProcess: engineProcess{kind: kind}, restless: true} // its counts are out of reach
	p.engines = append(p.engines, e)
	return e.hides("its Deployment", p.readDeployment(ctx, e))
}

// lookAtEngines reads how the API server asks the engines of a cluster of the user's, when their policies are in force.
func (p *arm) lookAtEngines(ctx context.Context) error {
	for _, e := range p.engines {
		if !p.foreign {
			continue
		}
		if err := e.hides("its webhooks", p.readWebhooks(ctx, e)); err != nil {
			return err
		}
		p.env.Log.Info("found a policy engine in the cluster", slog.String("engine", e.describe()))
	}
	return nil
}

// hides notes what the user may not read. Other errors it returns.
func (e *runningEngine) hides(what string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		e.installed.hidden = append(e.installed.hidden, what)
	case err != nil:
		return fmt.Errorf("look for %s in the cluster: %w", e.kind.Title, err)
	}
	return nil
}

// readDeployment reads the engine's version and how many of it run.
func (p *arm) readDeployment(ctx context.Context, e *runningEngine) error {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	return p.policies.keeper.ForEach(ctx, deployments, "", e.kind.Deployments, func(d *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers") // others have none
		for _, c := range containers {
			container, _ := c.(map[string]any)
			image, _ := container["image"].(string)
			image, _, _ = strings.Cut(image, "@")
			name, version, _ := strings.Cut(path.Base(image), ":")
			if name != e.kind.Image {
				continue
			}
			e.program.Version = strings.TrimPrefix(version, "v")
			e.installed.replicas, _, _ = unstructured.NestedInt64(d.Object, "status", "readyReplicas") // or none
		}
	})
}

// readWebhooks reads what the API server does if the engine does not answer.
func (p *arm) readWebhooks(ctx context.Context, e *runningEngine) error {
	configurations := schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
	}
	o, err := p.policies.keeper.Dynamic().Resource(configurations).Get(ctx, e.kind.Webhooks, v1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it has another name there
	}
	if err != nil {
		return err
	}
	hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks") // or none
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		if aboutNamespaces(hook) { // Gatekeeper's guard of its own label
			continue
		}
		policy, _, _ := unstructured.NestedString(hook, "failurePolicy")
		seconds, _, _ := unstructured.NestedInt64(hook, "timeoutSeconds")
		if asked := fmt.Sprintf("%s within %d s", policy, seconds); !slices.Contains(e.installed.asked, asked) {
			e.installed.asked = append(e.installed.asked, asked)
		}
	}
	return nil
}

// aboutNamespaces reports whether a webhook is asked about namespaces only.
func aboutNamespaces(hook map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(hook, "rules") // without any it is asked about nothing
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(r any) bool {
		rule, _ := r.(map[string]any)
		resources, _, err := unstructured.NestedStringSlice(rule, "resources")
		return err != nil || !slices.Equal(resources, []string{"namespaces"})
	})
}

// describe says what the cluster shows of the engine: "Kyverno 1.19.1, 3 ready, asked by webhooks with Fail
// within 10 s".
func (e *runningEngine) describe() string {
	x := e.installed
	out := e.kind.Title
	if e.program.Version != "" {
		out += " " + e.program.Version
	} else {
		out += " of an unknown version"
	}
	if x.replicas > 0 {
		out += fmt.Sprintf(", %d ready", x.replicas)
	}
	if len(x.asked) > 0 {
		out += ", asked by webhooks with " + strings.Join(x.asked, " and ")
	}
	if len(x.hidden) > 0 {
		out += "; the user of the kubeconfig may not read " + kit.FirstOf(x.hidden)
	}
	return out
}
