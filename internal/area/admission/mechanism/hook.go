package mechanism

import (
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The base paths of the reference webhook, followed by the short name of the policy that it implements.
const (
	ValidatePath = "/validate/"
	MutatePath   = "/mutate/"
)

// webhookTimeout is how long the API server waits for a webhook, in seconds. It is small: a hanging webhook blocks the
// run's namespace only, and not for long.
const webhookTimeout = 5

// WebhookName returns the name of a policy's webhook in answers and metrics. It needs three parts.
func WebhookName(one Policy) string { return one.Name + ".tare.dev" }

// hook renders a configuration of one webhook, as engines are installed: each with a configuration of its own. One
// configuration of a hundred webhooks costs the API server the same as a hundred of one (1.36.3: 24 and 21 ms CPU for a
// pod).
func hook(k Kind, p Population, s Scope, one Policy) *unstructured.Unstructured {
	kind, path := "ValidatingWebhookConfiguration", ValidatePath
	selector := namespaceSelector(p, s, one)
	if one.Role == Unbound {
		selector = s.elsewhere()
	}
	h := map[string]any{
		"name":                    WebhookName(one),
		"admissionReviewVersions": []any{"v1"},
		"failurePolicy":           "Fail",
		"sideEffects":             "None",
		"timeoutSeconds":          int64(webhookTimeout),
		"namespaceSelector":       selector,
		"rules":                   []any{rule(p, one)},
	}
	if k == MutatingWebhook {
		kind, path = "MutatingWebhookConfiguration", MutatePath
		h["reinvocationPolicy"] = "Never"
	}
	if c := conditions(p, s, one); c != nil {
		h["matchConditions"] = c
	}
	h["clientConfig"] = map[string]any{
		"url":      strings.TrimSuffix(s.WebhookURL, "/") + path + one.Short,
		"caBundle": base64.StdEncoding.EncodeToString(s.CABundle),
	}
	return s.object(registration, kind, one.Name, map[string]any{"webhooks": []any{h}})
}
