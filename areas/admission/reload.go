package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/internal/metric"
)

const (
	// reloads is how often the policies are replaced, each reloadEach, and mostReloaded bounds those that are.
	reloads      = 20
	reloadEach   = 250 * time.Millisecond
	mostReloaded = 10
	// prohibitions is how often a further policy is created, and enforcedWithin bounds the wait until it is enforced.
	prohibitions   = 5
	enforcedWithin = 20 * time.Second
	enforcedEach   = 20 * time.Millisecond
)

// objectPath is the path of an object of admissionregistration.k8s.io; without a name, of all of its kind.
func (p *arm) objectPath(kind, name string) string {
	plural := strings.ToLower(kind) + "s"
	if stem, ok := strings.CutSuffix(plural, "ys"); ok {
		plural = stem + "ies"
	}
	path := p.prefix + "/apis/admissionregistration.k8s.io/v1/" + plural
	if name != "" {
		path += "/" + name
	}
	return path
}

// set makes a request of the setter, which must succeed.
func (p *arm) set(ctx context.Context, method, path, contentType string, body []byte) error {
	a, err := p.setter.do(ctx, method, path, contentType, body)
	if err == nil && a.status >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s", method, path, a.message())
	}
	return err
}

// reload is the condition in which the policies are updated in place: there is always one of each that denies.
func (p *arm) reload() area.Condition {
	objects := slices.DeleteFunc(slices.Clone(p.policies.rendered.Objects), func(o *unstructured.Unstructured) bool {
		return strings.HasSuffix(o.GetKind(), "Binding") || o.GetKind() == "ConfigMap"
	})
	objects = objects[max(0, len(objects)-mostReloaded):] // the relevant ones are the last
	return area.Condition{
		Name: area.Reload,
		Does: fmt.Sprintf("%d policies are updated in place, %d times, every %v", len(objects), reloads, reloadEach),
		Impose: func(ctx context.Context) (func(context.Context) error, error) {
			for n := range reloads {
				for _, o := range objects {
					if err := p.update(ctx, o, n); err != nil {
						return nil, err
					}
				}
				if err := p.env.Clock.Sleep(ctx, reloadEach); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}
}

// update changes a policy so that the API server must load it again, and it still denies the same: the message of a
// ValidatingAdmissionPolicy, or an annotation of a webhook.
func (p *arm) update(ctx context.Context, o *unstructured.Unstructured, n int) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"tare.dev/reload":"%d"}}}`, n)
	contentType := patchType
	if o.GetKind() == "ValidatingAdmissionPolicy" {
		contentType = "application/json-patch+json"
		patch = fmt.Appendf(nil, `[{"op":"replace","path":"/spec/validations/0/message","value":"denied, version %d"}]`, n)
	}
	return p.set(ctx, http.MethodPatch, p.objectPath(o.GetKind(), o.GetName()), contentType, patch)
}

// revoke is the condition in which further policies come, each of which forbids pods that were admitted before: how
// long are they still admitted?
func (p *arm) revoke() area.Condition {
	var took []area.Span
	return area.Condition{
		Name: area.Revoke,
		Does: fmt.Sprintf("a further policy comes that forbids what was allowed, and goes once it is enforced; %d times",
			prohibitions),
		Impose: func(ctx context.Context) (func(context.Context) error, error) {
			for n := range prohibitions {
				span, err := p.prohibit(ctx, n)
				if span.Most > 0 {
					took = append(took, span)
				}
				if err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
		Figures: func() map[string][]area.Span { return map[string][]area.Span{metric.Revoke.Name: took} },
	}
}

// prohibit creates a policy, and returns for how long after its creation pods were admitted that it denies. The zero
// Span says that no answer tells.
func (p *arm) prohibit(ctx context.Context, n int) (_ area.Span, err error) {
	policies := mechanism.Policies(p.population, p.scope())
	pattern := policies[len(policies)-1]
	short := fmt.Sprintf("x-revoked-%05d", n)
	for _, o := range p.policies.rendered.Objects {
		if o.GetName() != pattern.Name {
			continue
		}
		body, err := json.Marshal(o)
		if err != nil {
			return area.Span{}, err
		}
		body = bytes.ReplaceAll(body, []byte(pattern.Short), []byte(short))
		if err := p.set(ctx, http.MethodPost, p.objectPath(o.GetKind(), ""), jsonType, body); err != nil {
			return area.Span{}, err
		}
		defer func() {
			at := p.objectPath(o.GetKind(), strings.Replace(o.GetName(), pattern.Short, short, 1))
			err = errors.Join(err, p.set(context.WithoutCancel(ctx), http.MethodDelete, at, "", nil))
		}()
	}
	pod := mechanism.Pod{
		Name: "tare-revoked", Namespace: p.namespace, Labels: map[string]string{mechanism.DenyLabel: short},
	}.JSON()
	return p.awaitDenial(ctx, pod, strings.Replace(pattern.Name, pattern.Short, short, 1))
}

// awaitDenial asks for a pod until the policy of this name denies it, and returns for how long it was admitted. If the
// policy does not deny it in time, the Span has no end, and there is an error.
func (p *arm) awaitDenial(ctx context.Context, pod []byte, policy string) (area.Span, error) {
	path := p.prefix + resources()[0].path(p.namespace) + dryRunQuery
	begin := p.env.Clock.Now()
	span := area.Span{Most: math.Inf(1)}
	for {
		asked := p.env.Clock.Now().Sub(begin)
		a, err := p.asker.do(ctx, http.MethodPost, path, jsonType, pod)
		since := p.env.Clock.Now().Sub(begin)
		switch {
		case err != nil:
			return span, err
		case a.status == http.StatusCreated:
			span.Least = asked.Seconds()
		case mechanism.RulingOf(a.status, a.body) == mechanism.PolicyDenied && bytes.Contains(a.body, []byte(policy)):
			span.Most = since.Seconds()
			return span, nil
		}
		if since > enforcedWithin {
			return span, fmt.Errorf("the policy %s is not enforced after %v: %s", policy, since, a.message())
		}
		if err := p.env.Clock.Sleep(ctx, enforcedEach); err != nil {
			return span, err
		}
	}
}
