package protocol

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tare/areas/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// k8sSAR returns the adapter for the authorization webhook of Kubernetes
// (https://kubernetes.io/docs/reference/access-authn-authz/webhook/), and the API server itself with path
// apis/authorization.k8s.io/v1/subjectaccessreviews.
//
//	request   POST <url>
//	          {"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user","groups","extra",
//	          "resourceAttributes":{"verb","resource","name",…}}}, see sarOf
//	answer    200 (201 from the API server), the same kind with status {"allowed","denied","reason","evaluationError"}:
//	          allowed is Permit, denied is Deny, both is no answer at all
//	refusals  400, 422 the request · 401, 403 the caller · 5xx: the API server then asks the next authorizer, or refuses
//	no policy neither allowed nor denied: no opinion, which is not-applicable; with an evaluationError: Indeterminate.
//	          From the API server itself, which asks all its authorizers, it means that access is refused.
func k8sSAR() Adapter {
	return Adapter{
		Name: "k8s-sar", Help: "Kubernetes authorization webhook: SubjectAccessReview",
		Schemes: []string{"https", "http"}, Path: true, title: sarKind,
		decisions: []model.Decision{model.Permit, model.Deny, model.NotApplicable}, call: askSAR,
	}
}

const (
	sarVersion = "authorization.k8s.io/v1"
	sarKind    = "SubjectAccessReview"
	// sarURL is the type of resources that are paths of the API instead of its objects.
	sarURL = "url"
	// sarGroups is the subject's property that lists its groups, with commas; the model's role is one as well.
	sarGroups = "groups"
)

func askSAR(s *Session, q model.Question) (call, error) {
	r, err := posted(below(s.Options.Path, ""), jsonMedia, q.Body, sarOf(q))
	expect := map[model.Decision]string{
		model.Permit: "allowed true", model.Deny: "denied true", model.NotApplicable: "neither allowed nor denied",
	}
	return call{request: r, expect: "200 or 201 with " + expect[q.Want], judge: wantsReview(q.Want), more: reasonOf}, err
}

type sar struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Spec       sarSpec `json:"spec"`
}

type sarSpec struct {
	User        string              `json:"user,omitempty"`
	Groups      []string            `json:"groups,omitempty"`
	Extra       map[string][]string `json:"extra,omitempty"`
	Resource    *sarResource        `json:"resourceAttributes,omitempty"`
	NonResource *sarPath            `json:"nonResourceAttributes,omitempty"`
}

type sarResource struct {
	Namespace   string `json:"namespace,omitempty"`
	Verb        string `json:"verb,omitempty"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`
}

type sarPath struct {
	Path string `json:"path"`
	Verb string `json:"verb"`
}

// sarOf returns a question as a review: the subject's ID is the user; its properties role and groups are groups, all
// others extra. The resource's type and ID are resource and name, its properties namespace, group, version and
// subresource what they are called; with type url, its ID is the path of a non-resource request. The context has no
// place in a review.
func sarOf(q model.Question) sar {
	out := sar{APIVersion: sarVersion, Kind: sarKind, Spec: sarSpec{User: q.Subject.ID}}
	for _, name := range slices.Sorted(maps.Keys(q.Subject.Properties)) {
		value := q.Subject.Properties[name]
		switch name {
		case model.RoleKey:
			out.Spec.Groups = append(out.Spec.Groups, value)
		case sarGroups:
			out.Spec.Groups = append(out.Spec.Groups, strings.Split(value, ",")...)
		default:
			if out.Spec.Extra == nil {
				out.Spec.Extra = map[string][]string{}
			}
			out.Spec.Extra[name] = []string{value}
		}
	}
	if q.Resource.Type == sarURL {
		out.Spec.NonResource = &sarPath{Path: q.Resource.ID, Verb: q.Action}
		return out
	}
	p := q.Resource.Properties
	out.Spec.Resource = &sarResource{
		Namespace: p["namespace"], Verb: q.Action, Group: p["group"], Version: p["version"],
		Resource: q.Resource.Type, Subresource: p["subresource"], Name: q.Resource.ID,
	}
	return out
}

// wantsReview is wants, with the status of things that were created.
func wantsReview(want model.Decision) judge {
	return func(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
		if status != 200 && status != 201 {
			o, v := refusal(status)
			return o, v, model.None
		}
		return judgeBody(want, readReview, body)
	}
}

// readReview reads the answer to one question.
func readReview(body []byte) (model.Decision, Verdict) {
	var f [3][]byte
	if !jsonscan.Pick(body, f[:], "apiVersion", "kind", "status") {
		return model.None, malformed(body)
	}
	if !jsonscan.Is(f[0], sarVersion) || !jsonscan.Is(f[1], sarKind) {
		return model.None, NotJSON
	}
	if isNull(f[2]) {
		return model.None, NoDecision
	}
	if !jsonscan.Pick(f[2], f[:], "allowed", "denied", "evaluationError") {
		return model.None, NotJSON
	}
	allowed, known := isTrue(f[0])
	if f[0] == nil {
		return model.None, NoDecision
	}
	denied, knownToo := isTrue(f[1])
	switch {
	case !known || (!knownToo && f[1] != nil) || (allowed && denied):
		return model.None, NotJSON
	case allowed:
		return model.Permit, Fine
	case denied:
		return model.Deny, Fine
	case !isNull(f[2]) && !jsonscan.Is(f[2], ""):
		return model.Indeterminate, Fine
	}
	return model.NotApplicable, Fine
}

// reasonOf returns what an answer says besides its decision.
func reasonOf(body []byte) string {
	var r struct {
		Status struct{ Reason, EvaluationError string }
	}
	if json.Unmarshal(body, &r) != nil {
		return ""
	}
	var said []string
	if r.Status.EvaluationError != "" {
		said = append(said, "evaluationError: "+r.Status.EvaluationError)
	}
	if r.Status.Reason != "" {
		said = append(said, "reason: "+r.Status.Reason)
	}
	return strings.Join(said, ", ")
}
