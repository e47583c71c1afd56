package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A decisionRequest is ONAP's request for a decision. Its context, times and time zone change no decision of the
// reference.
type decisionRequest struct {
	ONAPName      string                     `json:"ONAPName"`
	ONAPComponent string                     `json:"ONAPComponent"`
	ONAPInstance  string                     `json:"ONAPInstance"`
	RequestID     string                     `json:"requestId"`
	Action        string                     `json:"action"`
	Resource      map[string]json.RawMessage `json:"resource"`
}

// A decisionResponse is an answer that is not one of the encoded ones.
type decisionResponse struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

// The statuses of guard answers.
const (
	statusPermit = "Permit"
	statusDeny   = "Deny"
	statusError  = "error"
)

func (p *pdpx) decision(w http.ResponseWriter, r *http.Request, body []byte) {
	var q *decisionRequest
	if err := json.Unmarshal(body, &q); err != nil && len(bytes.TrimSpace(body)) > 0 {
		writeJSON(w, http.StatusBadRequest, parseError{"Invalid request"})
		return
	}
	switch {
	case q == nil: // an empty body, or null: ONAP's own code dereferences it
		writeContainerError(w, r, http.StatusInternalServerError, requestFailed)
	case q.Action == "configure" && q.Resource == nil:
		writeContainerError(w, r, http.StatusInternalServerError, requestFailed)
	case q.Action == "configure":
		p.configure(w, q, slices.Contains(r.URL.Query()["abbrev"], "true"))
	case q.Action == "guard":
		p.guarded(w, r, q)
	default:
		p.refuse(w, "No application for action "+q.Action)
	}
}

// configure answers monitoring requests with every policy that permits. Where none does, the answer holds no policies.
func (p *pdpx) configure(w http.ResponseWriter, q *decisionRequest, abbreviated bool) {
	var b bags
	b[attrPolicyID], b[attrPolicyType] = strs(q.Resource["policy-id"]), strs(q.Resource["policy-type"])
	d, documents := p.monitoring.decide(&b)
	switch p.planted() {
	case alwaysPermit:
		var err error
		if d, documents, err = forged(&b); err != nil {
			p.refuse(w, err.Error())
			return
		}
	case indeterminate:
		d, documents = indeterminateDP, nil
	}
	p.counts.monitoring.count(d)
	writeBytes(w, "application/json", policiesAnswer(d, documents, abbreviated))
}

// forged returns the planted fault always-permit: a policy for whatever was asked for.
func forged(b *bags) (xacmlDecision, []*document, error) {
	id, kind := "any", "onap.policies.monitoring.any"
	if len(b[attrPolicyID]) > 0 {
		id = b[attrPolicyID][0]
	}
	d, err := newDocument(id, kind)
	return permits, []*document{d}, err
}

// policiesAnswer returns {"policies":{ID: policy, …}}. Any other decision than Permit has the status "error", and one
// that could not be made has a message besides.
func policiesAnswer(d xacmlDecision, documents []*document, abbreviated bool) []byte {
	out := []byte(`{"policies":{`)
	switch d {
	case permits:
	case notApplicable, denies:
		out = []byte(`{"status":"error","policies":{`)
	case indeterminateP, indeterminateD, indeterminateDP:
		out = []byte(`{"status":"error","message":"the policies could not be evaluated","policies":{`)
	}
	for i, doc := range documents {
		if i > 0 {
			out = append(out, ',')
		}
		out = doc.appendTo(out, abbreviated)
	}
	return append(out, "}}"...)
}

// guarded answers guard requests as ONAP's guard application translates decisions: what is neither Permit nor Deny is a
// Permit, because "there is no guard policy". Only the counts tell.
func (p *pdpx) guarded(w http.ResponseWriter, r *http.Request, q *decisionRequest) {
	b, err := guardBags(q.Resource["guard"])
	switch {
	case errors.Is(err, errVFCount): // ONAP makes no decision then, counts an error, and answers 200
		p.counts.errors.Add(1)
		writePDPX(w, decisionResponse{statusError, err.Error()})
		return
	case err != nil:
		writeContainerError(w, r, http.StatusInternalServerError, requestFailed)
		return
	}
	d, _ := p.guards().decide(b)
	status, planted := statusPermit, p.planted()
	switch {
	case planted == alwaysPermit:
		d = permits
	case planted == indeterminate:
		d = indeterminateDP
	case d == denies:
		status = statusDeny
	}
	p.counts.guard.count(d)
	writeBytes(w, "application/json", []byte(`{"status":"`+status+`"}`))
}

// errVFCount has ONAP's own words.
var errVFCount = errors.New("Failed to decode vfCount") //nolint:staticcheck // they begin with a capital

// guardBags reads the attributes of a guard request. Older releases say recipe for operation.
func guardBags(raw json.RawMessage) (*bags, error) {
	b := &bags{}
	if len(raw) == 0 || string(raw) == "null" {
		return b, nil // no attributes: no policy is about it
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("resource.guard is no object: %w", err)
	}
	for name, a := range map[string]attribute{
		"actor": attrActor, "recipe": attrOperation, "target": attrTarget, "clname": attrLoop, "vfCount": attrVFCount,
	} {
		if v, ok := scalar(fields[name]); ok {
			b[a] = []string{v}
		}
	}
	if v, ok := scalar(fields["operation"]); ok {
		b[attrOperation] = []string{v}
	}
	for _, n := range b[attrVFCount] {
		if _, err := strconv.Atoi(n); err != nil {
			return nil, errVFCount
		}
	}
	return b, nil
}

// scalar returns the text of a string, number or boolean.
func scalar(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, len(raw) > 0 && string(raw) != "null"
	}
	text := strings.TrimSpace(string(raw))
	return text, text != "" && text[0] != '{' && text[0] != '['
}

// strs returns a string, or the texts in a list; anything else names nothing.
func strs(raw json.RawMessage) (out []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil && string(raw) != "null" {
		return []string{one}
	}
	var many []json.RawMessage
	_ = json.Unmarshal(raw, &many) // what is no list has no elements
	for _, each := range many {
		if text, ok := scalar(each); ok {
			out = append(out, text)
		}
	}
	return out
}

// native answers requests of the XACML JSON profile. ONAP decides them with native XACML policies alone. The reference
// deploys none, so all it can say, of any request, is NotApplicable.
func (p *pdpx) native(w http.ResponseWriter, r *http.Request, body []byte) {
	var q struct {
		Request *json.RawMessage
	}
	if err := json.Unmarshal(body, &q); err != nil || q.Request == nil ||
		!strings.HasPrefix(strings.TrimSpace(string(*q.Request)), "{") {
		writeContainerError(w, r, http.StatusInternalServerError, "")
		return
	}
	p.counts.native.count(notApplicable)
	writeBytes(w, xacmlJSON, []byte(`{"Response":[{"Decision":"NotApplicable","Status":{"StatusCode":`+
		`{"Value":"urn:oasis:names:tc:xacml:1.0:status:ok"}}}]}`))
}
