package mechanism

import (
	"cmp"
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The base paths of the reference webhook, followed by the short name of the policy that it implements.
const (
	ValidatePath = "/validate/"
	MutatePath   = "/mutate/"
)

// WebhookTimeout is how long the API server waits for a webhook by default, in seconds. It is small: a hanging webhook
// blocks the run's namespace only, and not for long. MostWebhookTimeout is the longest that the API takes.
const (
	WebhookTimeout     = 5
	MostWebhookTimeout = 30
)

// The failure policies: what the API server does with a request whose webhook does not decide.
const (
	Fail   = "Fail"
	Ignore = "Ignore"
)

// Hooks are options of webhooks. The zero value is the default.
type Hooks struct {
	FailurePolicy  string // Fail (default) or Ignore
	TimeoutSeconds int    // default WebhookTimeout
	Match          string // a CEL expression: webhooks are asked only where it is true; empty: everywhere
}

// WithDefaults returns the options with the defaults filled in.
func (h Hooks) WithDefaults() Hooks {
	h.FailurePolicy = cmp.Or(h.FailurePolicy, Fail)
	h.TimeoutSeconds = cmp.Or(h.TimeoutSeconds, WebhookTimeout)
	return h
}

// WebhookDomain ends the names of webhooks.
const WebhookDomain = ".tare.dev"

// WebhookName returns the name of a policy's webhook in answers and metrics. It needs three parts.
func WebhookName(one Policy) string { return one.Name + WebhookDomain }

// hook renders a configuration of one webhook, as engines are installed: each with a configuration of its own. One
// configuration of a hundred webhooks costs the API server the same as a hundred of one (1.36.3: 24 and 21 ms CPU for a
// pod).
func hook(k Kind, p Population, s Scope, one Policy) *unstructured.Unstructured {
	kind, path := "ValidatingWebhookConfiguration", ValidatePath
	selector := namespaceSelector(p, s, one)
	if one.Role == Unbound {
		selector = s.elsewhere()
	}
	o := s.Hooks.WithDefaults()
	h := map[string]any{
		"name":                    WebhookName(one),
		"admissionReviewVersions": []any{"v1"},
		"failurePolicy":           o.FailurePolicy,
		"sideEffects":             "None",
		"timeoutSeconds":          int64(o.TimeoutSeconds),
		"namespaceSelector":       selector,
		"rules":                   rules(p, s, one),
	}
	if k == MutatingWebhook {
		kind, path = "MutatingWebhookConfiguration", MutatePath
		h["reinvocationPolicy"] = "Never"
	}
	if c := conditions(p, s, one); c != nil {
		h["matchConditions"] = c
	} else if o.Match != "" {
		h["matchConditions"] = []any{map[string]any{"name": "match", "expression": o.Match}}
	}
	h["clientConfig"] = map[string]any{
		"url":      strings.TrimSuffix(s.WebhookURL, "/") + path + one.Short,
		"caBundle": base64.StdEncoding.EncodeToString(s.CABundle),
	}
	return s.object(registration, kind, one.Name, map[string]any{"webhooks": []any{h}})
}
